"""`ottla serve` is run with the same settings, whoever reads the command line."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.main import get_command
from typer.testing import CliRunner

from ottla.cli import entry, serve
from ottla.cli.main import app

VALUES = ["localhost:0", "SSL://localhost:0", "a=b=c", "text", "json", "warning", "/data", "", "-", "-x"]
OPTIONS = ["--set", "--listen", "--advertise", "--data", "--metrics", "--log-format", "--log-level", "--no", "-h", "--"]


def as_typer_reads(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any] | None:
    """What Typer would run a broker with; None if it would not run one."""
    calls: list[dict[str, Any]] = []

    def run(
        file: Path | None, overrides: list[str], listen: list[str], advertise: list[str], data: Path | None, **rest: Any
    ) -> None:
        given = {"file": file, "overrides": overrides, "listen": listen, "advertise": advertise, "data": data, **rest}
        calls.append({name: value for name, value in given.items() if value})

    with monkeypatch.context() as patch:
        patch.setattr(serve, "run", run)
        CliRunner().invoke(app, arguments)
    return calls[0] if calls else None


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "broker.toml"
    path.touch()
    return str(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_read_here_is_what_typer_reads(data: st.DataObject, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value = st.sampled_from([*VALUES, file, file + ".not"])
    option = st.sampled_from(OPTIONS)
    piece = st.one_of(
        st.tuples(option, value).map(list),
        st.tuples(option, value).map(lambda pair: ["=".join(pair)]),
        option.map(lambda name: [name]),
        value.map(lambda text: [text]),
    )
    arguments = ["serve", *(one for piece in data.draw(st.lists(piece, max_size=4)) for one in piece)]
    found = entry.read_serve(arguments)
    if found is not None:
        defaults = {"log_format": "text", "log_level": "info"}
        assert {**defaults, **found} == as_typer_reads(arguments, monkeypatch)


def test_every_option_is_known_here() -> None:
    command: Any = get_command(app)
    parameters = {parameter.name: parameter for parameter in command.get_command(None, "serve").params}
    del parameters["config"]
    opts = {option for parameter in parameters.values() for option in parameter.opts}
    for option in opts - {"--help", "-h"}:
        assert entry.read_serve(["serve", option, "text" if option == "--log-format" else "info"]) is not None, option


def test_all_of_it_at_once_needs_no_typer(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["serve", "--listen", "A://localhost:1", file, "--listen=B://localhost:2", "--advertise", "B://b:2"]
    arguments += ["--data", "/data", "--set", "a=b", "--metrics", "localhost:3"]
    arguments += ["--log-format", "json", "--log-level=debug"]
    found = entry.read_serve(arguments)
    assert (
        found
        == as_typer_reads(arguments, monkeypatch)
        == {
            "file": Path(file),
            "overrides": ["a=b"],
            "listen": ["A://localhost:1", "B://localhost:2"],
            "advertise": ["B://b:2"],
            "data": Path("/data"),
            "metrics": "localhost:3",
            "log_format": "json",
            "log_level": "debug",
        }
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--version"],
        ["topic", "list"],
        ["serve", "--help"],
        ["serve", "--listen"],
        ["serve", "--data", "a", "--data", "b"],
        ["serve", "--log-level", "loud"],
        ["serve", "no-such-file.toml"],
        ["serve", "."],
    ],
)
def test_what_typer_has_something_to_say_about_is_left_to_it(arguments: list[str]) -> None:
    assert entry.read_serve(arguments) is None


def test_a_broker_that_cannot_start_says_so_and_leaves_with_one(tmp_path: Path) -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "ottla", "serve", "--data", str(tmp_path), "--set", "no.such.setting=1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: INVALID_CONFIG: "), refused.stderr


def test_a_start_loads_neither_the_clients_nor_what_explains_commands() -> None:
    """Each of these would be a good part of the time in which a broker starts."""
    program = (
        "import sys, ottla.cli.entry, ottla.cli.serve; "
        "print([name for name in ('typer', 'pydantic', 'rich', 'email', 'http', 'tomllib', 'ottla.client', "
        "'ottla.net.connection', 'ottla.coordinator.group.shard', 'prometheus_client') if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"
