"""A transport that stands still for a while."""

import asyncio
from typing import Any

from ottla.net.holding import HeldTransport


class Recording(asyncio.Transport):
    """Remembers what is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = ""

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return 3

    def is_closing(self) -> bool:
        return bool(self.closed)

    def abort(self) -> None:
        self.closed = "aborted"

    def close(self) -> None:
        self.closed = "closed"


def test_what_is_written_waits_and_then_leaves_in_order() -> None:
    real = Recording()
    held = HeldTransport(real)
    buffer = bytearray(b"one")
    held.write(buffer)
    buffer[:] = b"xxx"
    held.writelines([b"two", memoryview(b"three")])
    assert real.written == b""
    assert held.get_write_buffer_size() == 3 + len(b"onetwothree")
    held.release()
    held.release()
    assert real.written == b"onetwothree"


def test_nothing_leaves_after_the_end() -> None:
    real = Recording()
    held = HeldTransport(real)
    held.write(b"one")
    held.abort()
    held.release()
    assert (real.closed, real.written, held.is_closing()) == ("aborted", b"", True)
