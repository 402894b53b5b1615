"""Loads that cost the client next to nothing: bytes made beforehand, and replies that are counted by their size.

All replies of a load have the same size, which a first one tells, looked into by the caller. Each function returns when
all replies are there, and gives back seconds.
"""

import gc
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

RECEIVE_BYTES = 1 << 20
TIMEOUT_S = 120.0

Address = tuple[str, int]


@contextmanager
def connected(address: Address, count: int = 1, greeting: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many connections, which block.

    With a request as a greeting, its reply is waited for before the next connection is made: where a server's queue of
    new connections is full, the system drops the next, which then tries again after a second.
    """
    found: list[socket.socket] = []
    try:
        for _ in range(count):
            one = socket.create_connection(address, TIMEOUT_S)
            found.append(one)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Python's own timeouts cost a system call each time; the system's are free.
            one.settimeout(None)
            for which in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                one.setsockopt(socket.SOL_SOCKET, which, struct.pack("ll", int(TIMEOUT_S), 0))
            if greeting:
                call(one, greeting)
        yield found
    finally:
        for one in found:
            one.close()


@contextmanager
def _no_collections() -> Iterator[None]:
    """Python's search for garbage would fall on some requests and not on others."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def call(connection: socket.socket, request: bytes) -> bytes:
    """One request and its reply, without the size in front."""
    connection.sendall(request)
    size = int.from_bytes(_exactly(connection, 4), "big")
    return _exactly(connection, size)


def pipeline(connection: socket.socket, requests: Sequence[bytes], count: int, reply_bytes: int, window: int) -> float:
    """So many large requests over one connection, the given ones again and again, some of them always under way."""
    buffer = bytearray(RECEIVE_BYTES)
    variety = len(requests)
    sent = replied = received = 0
    with _no_collections():
        began = time.perf_counter()
        while replied < count:
            while sent < count and sent - replied < window:
                connection.sendall(requests[sent % variety])
                sent += 1
            received += _some(connection, buffer)
            replied = received // reply_bytes
        elapsed = time.perf_counter() - began
    _check_sizes(received, count * reply_bytes)
    return elapsed


def flood(connections: Sequence[socket.socket], request: bytes, count: int, reply_bytes: int, window: int) -> float:
    """The same small request over and over, on every connection as many under way as the window says."""
    buffer = bytearray(RECEIVE_BYTES)
    burst, size = memoryview(request * window), len(request)
    by_number = {one.fileno(): one for one in connections}
    started = dict.fromkeys(by_number, 0)
    sent = received = 0
    poller = select.epoll()
    for number in by_number:
        poller.register(number, select.EPOLLIN)
    with _no_collections(), poller:
        began = time.perf_counter()
        for one in connections:
            more = min(window, count - sent)
            one.sendall(burst[: more * size])
            sent += more
        while received < count * reply_bytes:
            ready = poller.poll(TIMEOUT_S)
            if not ready:
                raise TimeoutError(f"{received // reply_bytes} of {count} replies, and then none for {TIMEOUT_S:.0f} s")
            for number, _ in ready:
                one = by_number[number]
                got = _some(one, buffer)
                received += got
                # A reply may come in two pieces.
                whole, started[number] = divmod(started[number] + got, reply_bytes)
                more = min(whole, count - sent)
                if more:
                    one.sendall(burst[: more * size])
                    sent += more
        elapsed = time.perf_counter() - began
    _check_sizes(received, count * reply_bytes)
    return elapsed


def read_all(connections: Sequence[socket.socket], requests: Sequence[bytes], reply_bytes: int, window: int) -> float:
    """All requests on every connection, each at its own pace."""
    buffer = bytearray(RECEIVE_BYTES)
    count = len(requests)
    by_number = {one.fileno(): one for one in connections}
    received = dict.fromkeys(by_number, 0)
    sent = dict.fromkeys(by_number, 0)
    total, expected = 0, len(connections) * count * reply_bytes
    poller = select.epoll()
    for number in by_number:
        poller.register(number, select.EPOLLIN)
    with _no_collections(), poller:
        began = time.perf_counter()
        for number, one in by_number.items():
            for request in requests[:window]:
                one.sendall(request)
            sent[number] = min(window, count)
        while total < expected:
            ready = poller.poll(TIMEOUT_S)
            if not ready:
                raise TimeoutError(f"{total:,} of {expected:,} bytes, and then none for {TIMEOUT_S:.0f} s")
            for number, _ in ready:
                one = by_number[number]
                got = _some(one, buffer)
                total += got
                received[number] += got
                replied = received[number] // reply_bytes
                while sent[number] < count and sent[number] - replied < window:
                    one.sendall(requests[sent[number]])
                    sent[number] += 1
        elapsed = time.perf_counter() - began
    _check_sizes(total, expected)
    return elapsed


def one_by_one(connection: socket.socket, request: bytes, count: int, reply_bytes: int) -> list[float]:
    """The same request so many times, each sent when the reply to the last is there; the seconds that each took."""
    buffer = bytearray(RECEIVE_BYTES)
    found = []
    clock = time.perf_counter
    with _no_collections():
        for _ in range(count):
            began = clock()
            connection.sendall(request)
            received = _some(connection, buffer)
            while received < reply_bytes:
                received += _some(connection, buffer)
            found.append(clock() - began)
            _check_sizes(received, reply_bytes)
    return found


def _some(connection: socket.socket, buffer: bytearray) -> int:
    got = connection.recv_into(buffer)
    if not got:
        raise ConnectionError("the broker closed the connection")
    return got


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        got = connection.recv_into(view)
        if not got:
            raise ConnectionError("the broker closed the connection")
        view = view[got:]
    return bytes(data)


def _check_sizes(received: int, expected: int) -> None:
    if received != expected:
        raise RuntimeError(
            f"replies have {received:,} bytes together and should have {expected:,}: one was not like the first"
        )
