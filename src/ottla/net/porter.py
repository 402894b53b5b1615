"""Replies to a crowd, and long ones, leave by a second thread.

More than a third of the time that a small request takes is the system's for sending the reply: it brings the bytes to
the other end, and wakes up who waits there. Where many connections ask at once, a thread that needs no GIL does that,
while the event loop handles the next requests. Handing over takes a moment, for which a client that is alone would
wait; so that is done only while replies go to many connections, one right after the other.

Half of what a long reply takes, one of many slices of files, is the system's too. It is carried likewise, while the
next request of that client is handled already.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from ottla.native import load_compiled
from ottla.net.vigil import cores
from ottla.ports import FileSlice
from ottla.ports.descriptors import most_descriptors

Buffer = bytes | bytearray | memoryview

MOST_BYTES: Final = 16 * 1024
"""What of one connection is carried at once; more is worth a call of the event loop's own."""

STREAK: Final = 8
"""So many replies, each to another connection than the one before, tell a crowd ..."""
STREAK_S: Final = 50e-6 * STREAK
"""... if they come within this time."""

NEVER: Final = float("-inf")

ENOUGH: Final = 3
"""With fewer connections to send to in a turn the event loop sends by itself, ..."""
QUIET_TURNS: Final = 8
"""... and after so many such turns in a row there is no crowd any more."""

AT_ONCE: Final = 32
"""So many connections' replies are not kept waiting for the end of the turn."""

_compiled: Final[Any] = load_compiled("ottla.net._carrier")


class Sends(Protocol):
    """Who has replies for a connection: a `Sender`."""

    def post(self) -> None:
        """Have what was put aside carried."""
        ...

    def write(self) -> None:
        """Send what was put aside by the event loop."""
        ...

    def take_back(self, part: bytes | FileSlice) -> None:
        """Keep what the socket did not take, until `go_on`."""
        ...

    def carried(self) -> None:
        """A long reply is not with the thread any more."""
        ...

    def go_on(self) -> None:
        """Look what is next."""
        ...

    def fail(self, error: Exception) -> None:
        """Close the connection: what was to be done for it cannot be done."""
        ...


class Porter:
    """The thread, and when to use it. One serves all connections of an event loop; `stop` ends it.

    >>> async def story() -> bool:
    ...     porter = Porter.of(asyncio.get_running_loop(), iter(range(99)).__next__)
    ...     if porter is not None:
    ...         porter.stop()
    ...     return porter is None or not porter.crowded
    >>> asyncio.run(story())
    True
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, monotonic: Callable[[], float], compiled: Any) -> None:
        self.crowded = False
        """Whether replies are carried now."""
        self._loop = loop
        self._monotonic = monotonic
        self._compiled = compiled
        self._carrier: Any = None
        self._bell: tuple[int, int] | None = None
        self._last: object = None
        self._streak = 0
        self._streak_began = NEVER
        self._quiet = 0
        self._waiting: list[Sends] = []
        self._is_due = False
        self.most_descriptor = most_descriptors() // 2
        """Connections whose sockets have higher numbers get no second one, so that there are enough for all."""

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop, monotonic: Callable[[], float]) -> "Porter | None":
        """A porter, if there is a processor for it and it was compiled."""
        if _compiled is None or cores() < 2:
            return None
        return cls(loop, monotonic, _compiled)

    def serves(self, sender: Sends) -> bool:
        """Whether a reply that is about to be sent is for the thread to carry."""
        if self.crowded:
            return True
        if sender is self._last:
            return False
        self._last = sender
        self._streak += 1
        if self._streak < STREAK:
            return False
        self._streak = 0
        now = self._monotonic()
        self.crowded = now - self._streak_began < STREAK_S
        self._streak_began = now
        return self.crowded

    def wait(self, sender: Sends) -> None:
        """Tell a sender when to post, or write, what it has put aside."""
        self._waiting.append(sender)
        if len(self._waiting) >= AT_ONCE:
            self._hand_out()
        elif not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._is_due = False
        if self._waiting:
            self._hand_out()

    def _hand_out(self) -> None:
        waiting, self._waiting = self._waiting, []
        self.collect()
        if len(waiting) < ENOUGH:
            self._quiet += 1
            if self._quiet >= QUIET_TURNS:
                self.crowded = False
            for sender in waiting:
                try:
                    sender.write()
                except Exception as error:  # noqa: BLE001 - whatever it is, this connection alone suffers
                    sender.fail(error)
            return
        self._quiet = 0
        for sender in waiting:
            try:
                sender.post()
            except Exception as error:  # noqa: BLE001
                sender.fail(error)
        if self._carrier is not None:
            self._carrier.wake()

    def lane(self, descriptor: int, sender: Sends) -> Any:
        """A way to a socket by the thread; None if there are too few descriptors for two of each connection."""
        if descriptor > self.most_descriptor:
            return None
        try:
            if self._carrier is None:
                self._start()
            return self._compiled.Lane(os.dup(descriptor), sender)
        except OSError:
            # No descriptor is left, or no thread. Without them it goes as it always went.
            return None

    def _start(self) -> None:
        bell = os.pipe()
        try:
            for end in bell:
                os.set_blocking(end, False)
            self._carrier = self._compiled.Carrier(bell[1])
        except OSError:
            for end in bell:
                os.close(end)
            raise
        self._bell = bell
        self._loop.add_reader(bell[0], self._rung)

    def post(self, lane: Any, data: bytes) -> bool:
        """Have bytes carried; False if there is too much to carry already."""
        return bool(self._carrier.post(lane, data))

    def post_long(self, lane: Any, reply: Sequence[Buffer | FileSlice]) -> bool:
        """Have a reply carried that is a list of bytes and slices; False if it must be sent in another way."""
        parts: list[Any] = []
        small: list[Buffer] = []
        for part in reply:
            if not isinstance(part, FileSlice):
                small.append(part)
                continue
            descriptor = part.file.sendable(part.position, part.length)
            if descriptor is None:
                return False
            if small:
                parts.append(b"".join(small))
                small.clear()
            parts.append((part.file, descriptor, part.position, part.length))
        if small:
            parts.append(b"".join(small))
        if not self._carrier.post_heavy(lane, parts):
            return False
        self._carrier.wake()
        return True

    def drain(self, lane: Any) -> None:
        """Return when nothing of a lane is with the thread any more, so that others may send."""
        self._tell(self._carrier.drain(lane))

    def close(self, lane: Any) -> None:
        """Let go of a lane, which closes when all is done that was posted for it."""
        lane.owner = None
        self.collect()
        if lane.outstanding and self._carrier is not None:
            # If there is too much to do for that, it closes when the last of its own was collected.
            self._carrier.close(lane)
            self._carrier.wake()

    def forget(self, sender: Sends) -> None:
        """A connection is gone."""
        if self._last is sender:
            self._last = None

    def collect(self) -> None:
        """See what is done."""
        if self._carrier is not None:
            self._tell(self._carrier.collect())

    def _tell(self, found: list[tuple[Any, Any]] | None) -> None:
        if found is None:
            return
        for lane, part in found:
            owner: Sends | None = lane.owner
            if owner is None:
                continue
            if part is None:
                owner.carried()
            elif isinstance(part, bytes):
                owner.take_back(part)
            else:
                file, _, position, length = part
                owner.take_back(FileSlice(file, position, length))
        # Only when all is noted: what follows may have more collected.
        for lane, _ in found:
            owner = lane.owner
            if owner is not None:
                try:
                    owner.go_on()
                except Exception as error:  # noqa: BLE001
                    owner.fail(error)

    def _rung(self) -> None:
        if self._bell is not None:
            os.read(self._bell[0], 4096)
        self.collect()

    def stop(self) -> None:
        """Finish what is posted, and end."""
        carrier, self._carrier = self._carrier, None
        if carrier is not None:
            carrier.stop()
        bell, self._bell = self._bell, None
        if bell is not None:
            self._loop.remove_reader(bell[0])
            os.close(bell[0])
            os.close(bell[1])
