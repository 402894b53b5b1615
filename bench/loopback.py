"""What plain sockets carry on this machine with no broker at all: the limits beside a client's figures."""

import multiprocessing
import os
import socket
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe

from crc32c import crc32c

from ottla.ports import SystemDisk

from .memory import Reserve

CHUNK_BYTES = 1024 * 1024
KEPT_CHUNK_BYTES = 256 * 1024
"""What is in a core's cache still when it is looked at a second time."""
TOTAL_BYTES = 512 * 1024 * 1024
"""Enough for connections to have found their pace, and not so much that the system begins to write it to the disk."""


def loopback_bytes_per_second() -> float:
    """Send bytes from one process to another over loopback, with large buffers on both sides."""
    return _received_per_second(CHUNK_BYTES, lambda data: None, is_made=False)


def kept_bytes_per_second() -> float:
    """The same into a file: what is sent is copied once and has a checksum, and what arrives is checked and written.

    Each byte costs a client and a broker no less that check what they are given, and keep it.
    """
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        file = SystemDisk(folder).open("kept", create=True)

        def keep(data: memoryview) -> None:
            crc32c(data)
            if file.size() % CHUNK_BYTES == 0:
                # As brokers may: to find room page by page takes a file system longer than to copy.
                file.reserve(file.size() + CHUNK_BYTES)
            file.append(data)

        return _received_per_second(KEPT_CHUNK_BYTES, keep, is_made=True)


def _received_per_second(chunk_bytes: int, take: Callable[[memoryview], object], *, is_made: bool) -> float:
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=_send, args=(theirs, chunk_bytes, is_made))
    child.start()
    # So that a child that fails is not waited for.
    theirs.close()
    port = ours.recv()
    reserve = Reserve()
    reserve.fill(2 * TOTAL_BYTES)
    reserve.release()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        buffer = memoryview(bytearray(chunk_bytes))
        received = 0
        started = time.perf_counter()
        while received < TOTAL_BYTES:
            count = connection.recv_into(buffer, 0, socket.MSG_WAITALL)
            assert count, "the sender stopped early"
            take(buffer[:count])
            received += count
        elapsed = time.perf_counter() - started
    child.join()
    return received / elapsed


def _send(pipe: Pipe, chunk_bytes: int, is_made: bool) -> None:
    source = memoryview(os.urandom(64 * chunk_bytes if is_made else 0))
    chunk = bytearray(chunk_bytes)
    with socket.create_server(("127.0.0.1", 0)) as server:
        pipe.send(server.getsockname()[1])
        connection, _ = server.accept()
        with connection:
            for number in range(TOTAL_BYTES // chunk_bytes):
                if is_made:
                    start = number % 64 * chunk_bytes
                    chunk[:] = source[start : start + chunk_bytes]
                    crc32c(chunk)
                try:
                    connection.sendall(chunk)
                except (BrokenPipeError, ConnectionResetError):
                    return
