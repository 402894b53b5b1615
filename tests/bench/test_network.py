"""Benchmarks leave a loopback that is paced, and take nobody with them who did not come of them."""

import os
import subprocess
import sys

import pytest

from tests.conformance.oracle import PROJECT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="how connections are paced is Linux's to say")

TELL = """
import os, socket, sys
from bench.network import leave_pacing
told = leave_pacing(wanted=sys.argv[1] == "leave")
with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
    one.sendall(b"x")
    other, _ = server.accept()
    with other:
        assert other.recv(1) == b"x"
        name = other.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(bytes(1)).decode()
print(told, name, os.readlink("/proc/thread-self/ns/net"), sep="|")
"""


def told(wish: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", TELL, wish], cwd=PROJECT, capture_output=True, text=True, check=True)
    return done.stdout.strip().split("|")


def test_who_does_not_leave_stays_where_all_are() -> None:
    words, name, network = told("stay")
    assert words.startswith("loopback, ")
    assert name in words
    assert network == os.readlink("/proc/thread-self/ns/net")


def test_a_paced_loopback_is_left_for_one_of_its_own_that_works_and_is_not() -> None:
    words, name, network = told("leave")
    has_left = network != os.readlink("/proc/thread-self/ns/net")
    assert has_left == words.startswith("a loopback of its own")
    assert name in words
    assert name.startswith("bbr") == words.startswith("loopback, paced")
    assert not (has_left and name.startswith("bbr"))
