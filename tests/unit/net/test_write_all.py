"""How buffers are handed to transports."""

import asyncio
from typing import Any

from ottla.net.sending import LARGE_BYTES, write_all


class Recorder(asyncio.Transport):
    """A transport of asyncio's that keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Any] = []

    def write(self, data: Any) -> None:
        self.written.append(data)


Recorder.__module__ = "asyncio.recorder"


def test_asyncio_gets_large_buffers_as_they_are_and_small_ones_together() -> None:
    large = memoryview(bytes(LARGE_BYTES))
    transport = Recorder()
    write_all(transport, [b"a", b"b", large, large, b"c", bytearray(b"d")])
    assert transport.written[0] == b"ab"
    assert transport.written[1] is large
    assert transport.written[2] is large
    assert transport.written[3] == b"cd"
    assert len(transport.written) == 4
