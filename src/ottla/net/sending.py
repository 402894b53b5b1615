"""Replies on their way to a transport, no faster than the peer reads them.

A reply is a list of buffers, some of which may be slices of files. Large slices that are in the page cache the system
sends by itself. Others are read in chunks, from the page cache if they are there and by a thread if not, and the next
chunk is read when the transport has room for it. So a connection holds a chunk or two, however long the reply and
however slow the reader.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, cast

from ottla.net.outlet import Buffer, Outlet
from ottla.net.porter import MOST_BYTES, Porter
from ottla.ports import FileSlice

Sendable = Buffer | FileSlice

CHUNK_BYTES: Final = 256 * 1024
"""How much of a file is read at once, and how much the transport takes before it asks for a pause."""

LARGE_BYTES: Final = 32 * 1024
"""From what size on a buffer is worth a call of its own."""

SHIPPED_BYTES: Final = 16 * 1024
"""From what size on a slice is sent without being read; smaller ones take as long either way."""

MANY_SLICES: Final = 4
"""From how many slices on a reply is for the porter; what little there is to do about fewer is done sooner here."""

MOST_LONG: Final = 2
"""Replies of one client that the porter has; with so many no further request is handled."""

TURN_BYTES: Final = 4 * CHUNK_BYTES
"""How much one connection may send before the event loop looks after the others."""


def write_all(transport: asyncio.Transport, buffers: Sequence[Any]) -> None:
    """Hand buffers to a transport, which says when it has no more room.

    asyncio's own transports put buffers together before they send them, and from Python 3.12 to 3.13.1 their
    `writelines` does not say it when there is no more room; `write` always does. So large ones go one by one, which
    spares a copy of them, and small ones together. uvloop sends them as they are.
    """
    if not type(transport).__module__.startswith("asyncio"):
        transport.writelines(buffers)
        return
    small: list[Any] = []
    for buffer in buffers:
        if len(buffer) < LARGE_BYTES:
            small.append(buffer)
            continue
        if small:
            transport.write(b"".join(small))
            small.clear()
        transport.write(buffer)
    if small:
        transport.write(b"".join(small))


def _has_slices(reply: Sequence[Sendable]) -> bool:
    return any(isinstance(part, FileSlice) for part in reply)


class Sender:
    """Hands one reply at a time to a transport.

    `when_sent` is called once a reply that `send` could not hand over at once is with the transport and the transport
    has room again; `when_moving` whenever the peer has read some of it; `when_failed` if a file cannot be read, after
    which the rest of the reply cannot follow.
    """

    __slots__ = (
        "_aside",
        "_busy",
        "_closes",
        "_full",
        "_lane",
        "_long",
        "_loop",
        "_outlet",
        "_owes_word",
        "_porter",
        "_returned",
        "_ships",
        "_transport",
        "_under_way",
        "_unsent",
        "_when_failed",
        "_when_moving",
        "_when_sent",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        when_sent: Callable[[], None],
        when_moving: Callable[[], None],
        when_failed: Callable[[Exception], None],
        porter: Porter | None = None,
    ) -> None:
        transport.set_write_buffer_limits(high=CHUNK_BYTES)
        self._transport = transport
        self._loop = loop
        self._when_sent = when_sent
        self._when_moving = when_moving
        self._when_failed = when_failed
        self._unsent: list[Sendable] = []
        self._owes_word = False
        """Whether somebody waits to hear that there is room again."""
        self._full = False
        self._busy = False
        self._ships = True
        """Whether there is an outlet, as far as is known."""
        self._outlet: Outlet | None = None
        self._under_way = False
        """Whether the next slice is the rest of one that the system sends."""
        self._porter = None if transport.get_extra_info("ssl_object") is not None else porter
        self._lane: Any = None
        """The way by the porter, once there is one."""
        self._aside: list[Buffer] = []
        """What the porter is to have at the end of the turn."""
        self._long = 0
        """How many long replies are with it."""
        self._returned: list[Sendable] = []
        """What it gave back."""
        self._closes = False

    @property
    def stuck(self) -> bool:
        """Whether the peer has to read before anything more can be sent."""
        return self._full or (self._outlet is not None and self._outlet.waits)

    def send(self, reply: list[Sendable]) -> bool:
        """Send a reply; False if it, or room for the next one, has to be waited for."""
        is_sent = self._send(reply)
        self._owes_word = not is_sent
        return is_sent

    def _send(self, reply: list[Sendable]) -> bool:
        if not (self._unsent or self._returned or self._busy):
            if self._carry(reply):
                return self._long < MOST_LONG
            if not self._long:
                if self._lane is not None or self._aside:
                    self.settle()
                if not (self.is_sending or _has_slices(reply)):
                    write_all(self._transport, reply)
                    return not self._full
        # Behind what the porter gave back, if he did.
        self._unsent[:0] = reply[::-1]
        return not self._busy and self._advance()

    def pause(self) -> None:
        """The transport has no more room."""
        self._full = True

    def resume(self) -> None:
        """The transport has room again."""
        self._full = False
        if not self._busy and self._advance():
            self._tell()

    @property
    def is_sending(self) -> bool:
        """Whether there is something left that is not with the transport."""
        return bool(self._unsent or self._returned or self._long or self._busy)

    def close(self) -> None:
        """Close the transport once all is sent."""
        self._closes = True
        if not self.is_sending:
            self.settle()
            if not self.is_sending:
                self._transport.close()

    def fail(self, error: Exception) -> None:
        """Give up what is in line, since something of it cannot be sent, and say so."""
        self._unsent.clear()
        self._busy = False
        self._when_failed(error)

    def drop(self) -> None:
        """Forget what is not sent, with the files it holds open."""
        self._unsent.clear()
        self._returned.clear()
        self._aside.clear()
        self._long = 0
        self._ships = False
        porter, self._porter = self._porter, None
        if porter is not None:
            porter.forget(self)
            lane, self._lane = self._lane, None
            if lane is not None:
                porter.close(lane)
        if self._outlet is not None:
            self._outlet.close()
            self._outlet = None

    # How the porter carries, and is passed by.

    def _carry(self, reply: list[Sendable]) -> bool:
        """Have the porter take a reply, if it is one for him."""
        porter = self._porter
        if porter is None or not reply:
            return False
        size = slices = 0
        for part in reply:
            size += len(part)
            slices += isinstance(part, FileSlice)
        if self._long or (slices >= MANY_SLICES and size >= CHUNK_BYTES):
            return self._carry_long(porter, reply)
        if slices or self._full or not porter.serves(self):
            return False
        for buffer in self._aside:
            size += len(buffer)
        if size > MOST_BYTES:
            return False
        waits = bool(self._aside)
        self._aside.extend(cast(list[Buffer], reply))
        if not waits:
            porter.wait(self)
        return True

    def _carry_long(self, porter: Porter, reply: list[Sendable]) -> bool:
        self.post()
        # Whatever is in line or with the transport comes before it.
        if self._full or self._unsent or self._returned or self._transport.get_write_buffer_size():
            return False
        lane = self._open_lane(porter)
        if lane is None or not porter.post_long(lane, reply):
            return False
        self._long += 1
        return True

    def _open_lane(self, porter: Porter) -> Any:
        if self._lane is None and not self._transport.is_closing():
            own = self._transport.get_extra_info("socket")
            if own is not None:
                self._lane = porter.lane(own.fileno(), self)
        return self._lane

    def post(self) -> None:
        """Have what was put aside carried."""
        porter, aside = self._porter, self._aside
        if porter is None or not aside:
            return
        lane = self._open_lane(porter)
        is_held = self._unsent or self._returned or self._busy or self._transport.get_write_buffer_size()
        if lane is None or is_held:
            self.settle()
            return
        data = bytes(aside[0]) if len(aside) == 1 else b"".join(aside)
        if porter.post(lane, data):
            aside.clear()
        else:
            self.settle()

    def write(self) -> None:
        """Send what was put aside by the event loop."""
        if self._aside:
            self.settle()

    def settle(self) -> None:
        """See to it that nothing is with the porter, and what was put aside with the transport, or else in line."""
        lane, porter = self._lane, self._porter
        if lane is not None and porter is not None and lane.outstanding:
            porter.drain(lane)
        if not self._aside:
            return
        aside, self._aside = self._aside, []
        if self._unsent or self._returned or self._busy:
            self._unsent[:0] = aside[::-1]
        else:
            write_all(self._transport, aside)

    def take_back(self, part: Sendable) -> None:
        """Keep what the socket did not take."""
        self._returned.append(part)

    def carried(self) -> None:
        """A long reply is not with the porter any more."""
        self._long -= 1

    def go_on(self) -> None:
        """Look what is next, after the porter has told of something."""
        lane = self._lane
        if self._returned:
            if lane is not None and lane.outstanding:
                # More of it is on its way back.
                return
            self._unsent.extend(reversed(self._returned))
            self._returned.clear()
        if self._busy or self._full or self._transport.is_closing():
            return
        self._when_moving()
        has_room = self._advance() if self._unsent else self._long < MOST_LONG
        if has_room:
            self._tell()

    def _continue(self) -> None:
        self._busy = False
        self._when_moving()
        if not self._transport.is_closing() and not self._full and self._advance():
            self._tell()

    def _tell(self) -> None:
        # Whoever was told may have sent the next reply by now.
        if self._unsent or self._busy or self._full or self._long >= MOST_LONG:
            return
        # What was carried may come back and fill the transport, long after whoever sent it was told that all is well.
        if self._owes_word:
            self._owes_word = False
            self._when_sent()
        elif self._closes:
            self.close()

    def _advance(self) -> bool:
        """Send what can be sent without waiting; whether that was all."""
        if self._long:
            # The porter says when it is done.
            return False
        if self._lane is not None or self._aside:
            self.settle()
            if self._busy:
                return False
        ready: list[Buffer] = []
        size = sent = 0
        while self._unsent and not self._full:
            buffer = self._unsent.pop()
            if isinstance(buffer, FileSlice):
                if (self._under_way or buffer.length >= SHIPPED_BYTES) and self._can_ship(ready):
                    ready, size = [], 0
                    shipped = self._ship(buffer)
                    if shipped == 0:
                        return False
                    if shipped is not None:
                        sent += shipped
                        if sent >= TURN_BYTES and self._unsent:
                            self._give_way()
                            return False
                        continue
                wanted = min(buffer.length, CHUNK_BYTES)
                try:
                    found = buffer.file.read_cached(buffer.position, wanted)
                    if found is None:
                        write_all(self._transport, ready)
                        self._read_in_thread(buffer, wanted)
                        return False
                    self._take(buffer, found)
                except OSError as error:
                    self.fail(error)
                    return False
                buffer = found
            ready.append(buffer)
            size += len(buffer)
            if size >= CHUNK_BYTES:
                write_all(self._transport, ready)
                sent += size
                ready, size = [], 0
                if sent >= TURN_BYTES and self._unsent and not self._full:
                    self._give_way()
                    return False
        if ready:
            write_all(self._transport, ready)
        return not self._unsent and not self._full

    def _give_way(self) -> None:
        self._busy = True
        self._loop.call_soon(self._continue)

    def _can_ship(self, ready: list[Buffer]) -> bool:
        """Whether the system can send what comes after these buffers by itself; if so, they are on their way."""
        if not self._ships or self._transport.get_write_buffer_size():
            return False
        if self._outlet is None:
            self._outlet = Outlet.of(self._transport, self._loop)
            self._ships = self._outlet is not None
        if self._outlet is None:
            return False
        try:
            left = self._outlet.send_before(ready)
        except OSError:
            # The transport will meet with the same.
            return False
        if left:
            self._transport.write(left)
        ready.clear()
        return not left

    def _ship(self, part: FileSlice) -> int | None:
        """Have the system send the beginning of a slice; 0 if it has to wait, None if the slice must be read."""
        assert self._outlet is not None
        try:
            sent = self._outlet.send(part, TURN_BYTES)
        except ConnectionError:
            self._unsent.clear()
            self._transport.abort()
            return 0
        except OSError as error:
            self.fail(error)
            return 0
        self._under_way = sent is not None and sent < part.length
        if sent is None:
            return None
        if self._under_way:
            self._unsent.append(FileSlice(part.file, part.position + sent, part.length - sent))
        if sent == 0:
            self._busy = True
            self._outlet.wait(self._continue)
        return sent

    def _take(self, part: FileSlice, found: Buffer) -> None:
        """Put what was not read of a slice back."""
        if not found and part.length:
            raise OSError(f"the file ends before byte {part.position + part.length}, which was to be sent")
        if len(found) < part.length:
            self._unsent.append(FileSlice(part.file, part.position + len(found), part.length - len(found)))

    def _read_in_thread(self, part: FileSlice, wanted: int) -> None:
        self._busy = True
        reading = self._loop.run_in_executor(None, part.file.read_at, part.position, wanted)
        reading.add_done_callback(partial(self._has_read, part))

    def _has_read(self, part: FileSlice, reading: "asyncio.Future[bytes]") -> None:
        if reading.cancelled() or self._transport.is_closing():
            return
        try:
            found = reading.result()
            self._take(part, found)
        except OSError as error:
            self.fail(error)
            return
        self._transport.write(found)
        self._continue()
