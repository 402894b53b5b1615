"""A pytest plugin for aiokafka's suite: a broker that already runs in place of the container it would start."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

# Their conftest imports Docker's client before any fixture is asked for.
sys.modules.setdefault("docker", MagicMock(name="docker"))


class Commands:
    """Stands in for the container in which their suite runs Kafka's commands, and has Ottla's do the same."""

    def exec_run(self, command: str) -> tuple[int, bytes]:
        """Run a command of Kafka's; its exit code and what it printed."""
        script, *options = shlex.split(command)
        arguments = self._acl(options) if script.endswith("kafka-acls.sh") else self._user(options)
        # Their users' passwords are their names.
        environment = {**os.environ, "OTTLA_BOOTSTRAP": os.environ["OTTLA_SUITE_ADDRESS"], "OTTLA_PASSWORD": "test"}
        done = subprocess.run(
            [sys.executable, "-m", "ottla", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.returncode, done.stdout

    def _acl(self, options: list[str]) -> list[str]:
        """`ottla acl` has the options of kafka-acls.sh, but for how to reach the cluster."""
        without = [option for option in options if option != "--force"]
        place = without.index("--authorizer-properties")
        action, *rule = without[:place] + without[place + 2 :]
        return ["acl", action.removeprefix("--"), *rule]

    def _user(self, options: list[str]) -> list[str]:
        name = options[options.index("--entity-name") + 1]
        assert name == "test", f"the password of {name} is not known here"
        return ["user", "add", name, "--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512"]


def _kafka_server() -> SimpleNamespace:
    address = os.environ["OTTLA_SUITE_ADDRESS"]
    host, port = address.rsplit(":", 1)
    ports = {f"{name}_port": int(os.environ[f"OTTLA_SUITE_{name.upper()}_PORT"]) for name in ("ssl", "sasl_ssl")}
    sasl_plain_port = int(os.environ["OTTLA_SUITE_SASL_PLAINTEXT_PORT"])
    return SimpleNamespace(
        host=host, port=int(port), sasl_plain_port=sasl_plain_port, container=Commands(), hosts=[address], **ports
    )


STAND_INS: dict[str, Callable[[], object]] = {
    "kafka_server": _kafka_server,
    "kafka_image": lambda: "ottla",
    "docker": lambda: None,
    "ssl_folder": lambda: Path(os.environ["OTTLA_SUITE_TLS"]),
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
