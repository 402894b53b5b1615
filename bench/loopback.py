"""What plain sockets carry on this machine with no broker at all: the limit beside a client's figures."""

import multiprocessing
import socket
import time
from multiprocessing.connection import Connection as Pipe

CHUNK_BYTES = 1024 * 1024


def loopback_bytes_per_second(total_bytes: int) -> float:
    """Send that many bytes from one process to another over loopback, with large buffers on both sides."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=_send, args=(theirs, total_bytes))
    child.start()
    port = ours.recv()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        buffer = bytearray(CHUNK_BYTES)
        received = 0
        started = time.perf_counter()
        while received < total_bytes:
            count = connection.recv_into(buffer)
            assert count, "the sender stopped early"
            received += count
        elapsed = time.perf_counter() - started
    child.join()
    return total_bytes / elapsed


def _send(pipe: Pipe, total_bytes: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        pipe.send(server.getsockname()[1])
        connection, _ = server.accept()
        with connection:
            chunk = bytes(CHUNK_BYTES)
            for _ in range(-(-total_bytes // CHUNK_BYTES)):
                try:
                    connection.sendall(chunk)
                except (BrokenPipeError, ConnectionResetError):
                    return
