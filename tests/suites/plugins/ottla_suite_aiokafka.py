"""A pytest plugin for aiokafka's suite: a broker that already runs in place of the container it would start."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

# Their conftest imports Docker's client before any fixture is asked for.
sys.modules.setdefault("docker", MagicMock(name="docker"))


def _kafka_server() -> SimpleNamespace:
    address = os.environ["OTTLA_SUITE_ADDRESS"]
    host, port = address.rsplit(":", 1)
    # No listener speaks TLS or SASL; what asks for one of these ports is left out.
    return SimpleNamespace(
        host=host, port=int(port), ssl_port=0, sasl_plain_port=0, sasl_ssl_port=0, container=None, hosts=[address]
    )


STAND_INS: dict[str, Callable[[], object]] = {
    "kafka_server": _kafka_server,
    "kafka_image": lambda: "ottla",
    "docker": lambda: None,
    "ssl_folder": lambda: Path("no-certificates"),
    "acl_manager": lambda: MagicMock(name="acl_manager"),
    "kafka_config": lambda: MagicMock(name="kafka_config"),
    "kerberos_utils": lambda: MagicMock(name="kerberos_utils"),
}
"""Fixtures of theirs that would need a container. A conftest's fixture wins over a plugin's, hence the hook below."""


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> object:
    stand_in = STAND_INS.get(fixturedef.argname)
    if stand_in is None:
        return None
    value = stand_in()
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)  # type: ignore[arg-type]
    # The first hook that answers ends the call, and only an answer other than None does.
    return value if value is not None else fixturedef


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that talk to a broker; the others say nothing about ours."""
    talking = [item for item in items if "kafka_server" in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(talking)])
    items[:] = talking
