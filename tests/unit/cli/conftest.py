"""A broker, and the commands with it as their bootstrap."""

from collections.abc import Callable, Iterator

import pytest
import typer
from typer.testing import CliRunner, Result

from ottla.cli.commands import register
from tests.unit.client.fake_broker import FakeBroker

Ottla = Callable[..., Result]


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as running:
        yield running


@pytest.fixture
def ottla(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> Ottla:
    """Run `ottla WORDS...` in this process, as a script would, and look at what it left."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", broker.bootstrap)
    app = typer.Typer()
    register(app)

    def run(*words: str, stdin: bytes = b"") -> Result:
        result = CliRunner().invoke(app, words, input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run
