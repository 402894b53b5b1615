"""`ottla serve` with a port for metrics and logs for programs."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from ottla.cli.main import app
from ottla.sync import Admin

SERVE = [sys.executable, "-m", "ottla", "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]


@pytest.fixture
def serving(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    words = [*SERVE, "--data", str(tmp_path), "--log-format", "json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_logs_are_json_and_say_where_metrics_are_and_who_did_what(serving: "subprocess.Popen[str]") -> None:
    assert serving.stdout is not None
    assert serving.stderr is not None
    ready = re.search(r"ready at (\S+),", serving.stdout.readline())
    assert ready is not None
    first = json.loads(serving.stderr.readline())
    assert (first["level"], first["logger"]) == ("INFO", "ottla.broker")
    where = first["message"].removeprefix("metrics at ")
    with urlopen(where.replace("/metrics", "/ready"), timeout=30) as reply:
        assert reply.read() == b"ready\n"
    with Admin(ready[1], client_id="keeper") as admin:
        admin.create_topics(["orders"])
    with urlopen(where, timeout=30) as reply:
        assert b'ottla_partition_end_offset{partition="0",topic="orders"} 0.0\n' in reply.read()
    serving.send_signal(signal.SIGTERM)
    lines = [json.loads(line) for line in serving.stderr]
    assert serving.wait(30) == 0
    (audited,) = [line for line in lines if line["logger"] == "ottla.audit"]
    assert audited["action"] == "CreateTopics"
    assert audited["client_id"] == "keeper"
    assert audited["outcome"] == ["topic 'orders': ok"]


def test_a_port_for_metrics_that_is_taken_is_refused_in_words(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        words = ["serve", "--listen", "127.0.0.1:0", "--metrics", address, "--data", str(tmp_path)]
        refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 1
    assert f"ottla.metrics.listen: cannot listen on {address}: " in refused.output


@pytest.mark.parametrize("address", ["somewhere", "127.0.0.1:99999", "PLAINTEXT://127.0.0.1:9101"])
def test_an_address_that_is_none_is_refused_in_words(tmp_path: Path, address: str) -> None:
    refused = CliRunner().invoke(app, ["serve", "--metrics", address, "--data", str(tmp_path)])
    assert refused.exit_code == 1
    assert "INVALID_CONFIG: ottla.metrics.listen = " in refused.output
