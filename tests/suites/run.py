"""Run a suite against a fresh broker, and hold what came out against the allow list."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ottla.client.admin import ScramMechanism, UserScramCredentialUpsertion
from ottla.sync import Admin
from ottla.testing import TestBroker
from tests.certificates import Authority
from tests.conformance.oracle import download

from .lists import read_allowed, read_left_out
from .suite import HERE, Suite

PYTEST_PLUGINS = ("pytest-asyncio==1.3.0", "pytest-mock==3.15.1", "pytest-timeout==2.4.0")
"""What their suites use beside pytest; kept apart from the project's own environment, whose tests use none of it."""

COMPLETE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
POLL_SECONDS = 0.2


class SuiteError(Exception):
    """Their pytest ended before it had collected its tests, or was cut off in the middle of them."""


@dataclass(frozen=True)
class Ending:
    """How one test ended: `passed`, `failed` or `skipped`, and why if it did not pass."""

    outcome: str
    summary: str


@dataclass(frozen=True)
class Verdict:
    """A run of a suite against what the lists expect."""

    client: str
    endings: dict[str, Ending]
    allowed: frozenset[str]
    left_out: dict[str, str]
    """Those of the checkout's tests that were not run, with their reasons."""
    seconds: float

    @property
    def passed(self) -> list[str]:
        """All tests that passed."""
        return sorted(test for test, ending in self.endings.items() if ending.outcome == "passed")

    @property
    def regressions(self) -> dict[str, Ending]:
        """Tests of the allow list that did not pass; one that the checkout does not even have proves nothing."""
        gone = Ending("missing", "the checkout has no such test, or it was not run")
        endings = {test: self.endings.get(test, gone) for test in sorted(self.allowed)}
        return {test: ending for test, ending in endings.items() if ending.outcome != "passed"}

    @property
    def newly_passing(self) -> list[str]:
        """Tests that the allow list can grow by."""
        return [test for test in self.passed if test not in self.allowed]

    @property
    def unlisted(self) -> dict[str, Ending]:
        """Tests that stand in no list and did not pass: they want a finding."""
        return {
            test: ending
            for test, ending in sorted(self.endings.items())
            if ending.outcome != "passed" and test not in self.allowed
        }


def run(
    suite: Suite,
    checkout: Path,
    *,
    everything: bool = False,
    timeout_seconds: int = 120,
    log: Path | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Verdict:
    """Run the suite, with `everything` also what is left out; `log` receives what their pytest prints."""
    if not (checkout / suite.folder).is_dir():
        raise FileNotFoundError(f"{checkout} is no checkout of {suite.client}: it has no folder {suite.folder}")
    allowed, left_out = read_allowed(suite.allowed), read_left_out(suite.left_out)
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="ottla-suite-") as folder,
        tempfile.TemporaryDirectory(prefix="ottla-suite-tls-") as tls,
        _broker(suite, Path(tls)) as broker,
    ):
        _add_users(suite, broker)
        scratch = Path(folder)
        results = scratch / "results.jsonl"
        results.touch()
        output = log or scratch / "output.txt"
        environment = {
            **_environment(suite, broker, scratch, tls),
            "OTTLA_SUITE_RESULTS": str(results),
            "OTTLA_SUITE_LEFT_OUT": json.dumps([] if everything else list(left_out)),
        }
        command = _command(suite, timeout_seconds)
        status = _wait(command, checkout, environment, output, lambda: on_progress(*_count(results)))
        collected, unrun, endings = _read(results)
        if status not in COMPLETE or collected is None or len(endings) < collected:
            tail = "\n".join(output.read_text(errors="replace").splitlines()[-30:])
            raise SuiteError(f"{suite.client}'s pytest ended (exit {status}) before all its tests had run:\n{tail}")
    seconds = time.monotonic() - started
    return Verdict(suite.client, endings, allowed, {test: left_out[test] for test in unrun}, seconds)


def _wait(
    command: list[str], folder: Path, environment: dict[str, str], output: Path, on_tick: Callable[[], None]
) -> int:
    with (
        output.open("w") as file,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        ) as process,
    ):
        try:
            while process.poll() is None:
                time.sleep(POLL_SECONDS)
                on_tick()
        finally:
            process.kill()
    return process.returncode


def _environment(suite: Suite, broker: TestBroker, scratch: Path, tls: str) -> dict[str, str]:
    # Of a pytest around this run, theirs shall know nothing.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    places = {
        "address": broker.bootstrap_servers,
        "ports": broker.ports,
        "scratch": str(scratch),
        "tls": tls,
    }
    return {
        **inherited,
        **{name: value.format(**places) for name, value in suite.environment.items()},
        "PYTHONPATH": os.pathsep.join((str(HERE / "plugins"), str(fetch_plugins()))),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _broker(suite: Suite, tls: Path) -> TestBroker:
    # The port is chosen before the start, since the settings may name it.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    settings = {name: value.format(address=address) for name, value in suite.broker.items()}
    secure = {
        "ssl.keystore.location": str(tls / "broker.pem"),
        "ssl.truststore.location": str(tls / "ca.crt"),
        "ssl.client.auth": "requested",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    }
    _write_certificates(tls)
    others = (f"{name}://127.0.0.1:0" for name in ("SSL", "SASL_PLAINTEXT", "SASL_SSL"))
    return TestBroker({"listeners": ",".join((f"PLAINTEXT://{address}", *others)), **secure, **settings})


def _add_users(suite: Suite, broker: TestBroker) -> None:
    if not suite.users:
        return
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion(user, mechanism, password)
                for user, password in suite.users.items()
                for mechanism in ScramMechanism
            ]
        )


def _write_certificates(folder: Path) -> None:
    """What their suites would have scripts make, under the names that they know."""
    authority = Authority()
    client = authority.issue("client")
    files = {
        "broker.pem": authority.issue("broker").store,
        "ca.crt": authority.pem,
        "ca-cert": authority.pem,
        "client.crt": client.chain,
        "client.key": client.key,
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)


def _command(suite: Suite, timeout_seconds: int) -> list[str]:
    # Nothing is written into the checkout, and the plugin that Ottla installs for its users stays out of the way.
    command = [sys.executable, "-m", "pytest", suite.folder, "-q", "-p", "no:cacheprovider", "-p", "no:ottla"]
    for plugin in suite.plugins:
        command += ["-p", plugin]
    # Signals end one test; pytest-timeout's other way, which kafka-python asks for, ends the whole run.
    return [*command, f"--timeout={timeout_seconds}", "--timeout-method=signal", *suite.arguments]


def fetch_plugins() -> Path:
    """The folder with pytest's plugins that their suites use, fetched on first use."""

    def install(directory: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--target", str(directory), *PYTEST_PLUGINS], check=True)

    return download("-".join(("pytest-plugins", *PYTEST_PLUGINS)), install)


def _count(results: Path) -> tuple[int, int]:
    collected, _, endings = _read(results)
    return len(endings), collected or 0


def _read(results: Path) -> tuple[int | None, list[str], dict[str, Ending]]:
    collected, left_out, endings = None, [], {}
    for line in results.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            break  # it is being written this moment
        event = json.loads(line)
        if "collected" in event:
            collected, left_out = event["collected"], event["left_out"]
        else:
            endings[event["test"]] = Ending(event["outcome"], event["summary"])
    return collected, left_out, endings
