"""Sending that stands still for a moment, unnoticed by those who send."""

import asyncio
from collections.abc import Iterable
from typing import Any


class HeldTransport(asyncio.Transport):
    """Stands in for a transport and keeps what is written, until it is released to that.

    While a client logs in again, a broker takes nothing else. Requests that come in the meantime are held here, so that
    sending them costs nothing more at any other time.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self.transport = transport
        """The real one."""
        self._held: list[bytes] = []

    def write(self, data: Any) -> None:
        """Keep a copy: whoever wrote it may use the buffer again."""
        self._held.append(bytes(data))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Keep copies."""
        self._held.extend(map(bytes, list_of_data))

    def release(self) -> None:
        """Write what was kept."""
        held, self._held = self._held, []
        if held and not self.transport.is_closing():
            self.transport.write(b"".join(held))

    def abort(self) -> None:
        """Close at once."""
        self._held.clear()
        self.transport.abort()

    def close(self) -> None:
        """Close."""
        self.transport.close()

    def is_closing(self) -> bool:
        """Whether it closes."""
        return self.transport.is_closing()

    def get_write_buffer_size(self) -> int:
        """Bytes that have not left."""
        return self.transport.get_write_buffer_size() + sum(map(len, self._held))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the real one says."""
        return self.transport.get_extra_info(name, default)
