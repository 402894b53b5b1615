"""What Java sends to a task is acknowledged at once: until then Java holds the rest back."""

import os
import socket
import struct
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="the kernel is not Linux")

TRIES = 15

# A worker as Java sees it: it says something, hears of a task, unpickles it and says no more.
WORKER = """
import pickle, socket, sys
from ottla.spark.batch_reader import BatchReader
from ottla.spark.options import SourceOptions
from ottla.spark.schema import source_schema
from ottla.spark.sink import SinkStreamWriter, SinkWriter
from ottla.spark.sink_options import SinkOptions
from ottla.spark.stream_reader import StreamReader
servers = {"kafka.bootstrap.servers": "127.0.0.1:9"}
source = {**servers, "subscribe": "orders"}
schema = source_schema(include_headers=False)
sink = SinkOptions.parse({**servers, "topic": "orders"})
java = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
pickled = pickle.dumps(
    {
        "nothing": "nothing",
        "batch": BatchReader(SourceOptions.parse(source, streaming=False), schema),
        "stream": StreamReader(SourceOptions.parse(source, streaming=True), schema),
        "sink": SinkWriter(sink, ("value",)),
        "stream sink": SinkStreamWriter(sink, ("value",)),
    }[sys.argv[2]]
)
while task := java.recv(1):
    if task == b"t":
        pickle.loads(pickled)
        print("unpickled", flush=True)
    else:
        java.send(b"a")
"""


def unacknowledged(connection: socket.socket) -> int:
    """Segments that were sent and not acknowledged: `tcpi_unacked` of Linux."""
    return int(struct.unpack_from("=I", connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 24)[0])


def acknowledged_by(what: str, environment: dict[str, str]) -> int:
    """In how many of many tasks Java's bytes were acknowledged when the worker had unpickled its task."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [sys.executable, "-c", WORKER, str(listener.getsockname()[1]), what]
        worker = subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True)
        assert worker.stdout is not None
        listener.settimeout(60)
        java, _ = listener.accept()
        found = 0
        with java, worker.stdout:
            for _ in range(TRIES):
                # Linux acknowledges at once as long as it takes a connection for one that only receives.
                for _ in range(3):
                    java.send(b"q")
                    assert java.recv(1) == b"a"
                java.send(b"t")
                assert worker.stdout.readline() == "unpickled\n"
                found += unacknowledged(java) == 0
                time.sleep(0.05)
    assert worker.wait(60) == 0
    return found


@pytest.mark.parametrize("what", ["batch", "stream", "sink", "stream sink"])
def test_a_task_is_acknowledged_when_it_is_unpickled(what: str) -> None:
    assert acknowledged_by(what, {"SPARK_REUSE_WORKER": "1"}) == TRIES


def test_the_kernel_would_wait_otherwise() -> None:
    # On a busy machine a few are looked at too late.
    assert acknowledged_by("nothing", {"SPARK_REUSE_WORKER": "1"}) < TRIES / 2


def test_other_programs_keep_their_sockets_as_they_are() -> None:
    assert acknowledged_by("batch", {}) < TRIES / 2
