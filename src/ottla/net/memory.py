"""What the requests and the unread replies of all connections may take together.

Beyond the bound, whoever is in the middle of a large request is not read from until there is room; then those that
lack the least come first. One at a time, whoever has waited longest, goes on regardless, so that a request of any
allowed size gets through. Small requests go on always. What that can add to the bound is one large request and, for
each connection, what comes with one read, or twice that from clients that have just sent as much.

Pausing alone would let clients that stop in the middle of a request keep the room for themselves. So while room is
short, a client that takes its time over a request is closed; nobody is while there is enough.
"""

import asyncio
import logging
from collections.abc import Mapping
from heapq import nsmallest
from operator import attrgetter
from typing import Final, Protocol

NO_BOUND: Final = 2**63 - 1
SMALL_BYTES: Final = 64 * 1024
"""What a connection may hold of unfinished requests however short the room is."""

READ_BYTES: Final = 256 * 1024
"""What event loops read at once."""

LEAST_PROGRESS_BYTES: Final = 16 * 1024
"""What a client has to send of an unfinished request within the patience while others wait for room."""

PATIENCE_MS: Final = 2_000

_bytes_missing = attrgetter("bytes_missing")

log = logging.getLogger(__name__)


class Holder(Protocol):
    """A connection as this module sees it."""

    peer: str
    bytes_waiting: int
    bytes_handled: int

    @property
    def identity(self) -> Mapping[str, str | None]:
        """Who the client is, as structured logs have it."""
        ...

    @property
    def unfinished_since(self) -> float | None:
        """When the request began that is being read from the socket; None if there is none, or it is not being read."""
        ...

    @property
    def bytes_missing(self) -> int:
        """What the request lacks that is being read."""
        ...

    def read_on(self) -> None:
        """There is room: read again."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...


class Memory:
    """The room for all connections, in bytes of requests and as many again of unread replies; below 1, no bound."""

    def __init__(self, limit: int = NO_BOUND, *, patience_ms: int = PATIENCE_MS) -> None:
        self.limit = limit if limit > 0 else NO_BOUND
        self.used = 0
        """Bytes of requests that have arrived and are not answered yet, parts of requests included. Connections count
        theirs here by themselves."""
        self.unfinished: set[Holder] = set()
        """The connections that are in the middle of a request."""
        self.wanting: dict[Holder, None] = {}
        """Those that are not read from until there is room, in the order in which they came."""
        self.turn: Holder | None = None
        """The one that goes on regardless, until its request is answered."""
        self._patience_s = patience_ms / 1000
        self._timer: asyncio.TimerHandle | None = None
        self._progress: dict[Holder, tuple[float, int]] = {}
        self._stuck: dict[Holder, tuple[float, int]] = {}
        self._unread = 0

    @property
    def unread(self) -> int:
        """Bytes of replies that clients leave unread."""
        return self._unread

    @property
    def short(self) -> bool:
        """Whether requests take all the room there is."""
        return self.used >= self.limit

    # Requests.

    def must_wait(self, holder: Holder) -> bool:
        """Whether a connection in the middle of a large request must stop reading; `read_on` tells it to go on."""
        if self.turn is None and not self.wanting:
            self.turn = holder
        if self.turn is holder:
            return False
        self.wanting[holder] = None
        return True

    def released(self, holder: Holder) -> None:
        """A request was answered, and its bytes are counted no more."""
        if self.turn is holder:
            self.turn = None
        self._share_out()

    def forget(self, holder: Holder) -> None:
        """A connection is closed. What its handler may still hold is released when that is done."""
        self.unfinished.discard(holder)
        self.wanting.pop(holder, None)
        self.read_again(holder)
        if self.turn is holder and not holder.bytes_handled:
            self.turn = None
        if self.wanting:
            self._share_out()

    def _share_out(self) -> None:
        reads = (self.limit - self.used) // READ_BYTES
        if reads > 0:
            for holder in nsmallest(reads, self.wanting, key=_bytes_missing):
                del self.wanting[holder]
                holder.read_on()
        if self.wanting and self.turn is None:
            self.turn = next(iter(self.wanting))
            del self.wanting[self.turn]
            self.turn.read_on()

    def watch(self) -> None:
        """Look after those who take their time, for as long as room is short."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._patience_s, self._look_after)

    def _look_after(self) -> None:
        self._timer = None
        if not self.short and not self.wanting:
            self._progress = {}
            return
        before, self._progress = self._progress, {}
        for holder in list(self.unfinished):
            since = holder.unfinished_since
            if since is None:
                continue
            began, had = before.get(holder, (-1.0, 0))
            if began == since and holder.bytes_waiting - had < LEAST_PROGRESS_BYTES:
                log.warning(
                    "closing the connection from %s: it takes its time over a request, and others need the memory",
                    holder.peer,
                    extra=holder.identity,
                )
                holder.abort()
            else:
                self._progress[holder] = (since, holder.bytes_waiting)
        # Those who were told to go on and did not send anything have used up nothing.
        self._share_out()
        self.watch()

    # Replies.

    def not_read(self, holder: Holder, size: int, now: float) -> None:
        """A client leaves so many bytes of replies unread. If all of them together leave too much, whoever has read
        nothing for longest is closed."""
        self.read_again(holder)
        self._stuck[holder] = (now, size)
        self._unread += size
        while self._unread > self.limit:
            oldest, (since, _) = next(iter(self._stuck.items()))
            if now - since < self._patience_s:
                break
            log.warning(
                "closing the connection from %s: it does not read, and others need the memory",
                oldest.peer,
                extra=oldest.identity,
            )
            self.read_again(oldest)
            oldest.abort()

    def read_again(self, holder: Holder) -> None:
        """A client has read what it had left unread, or is gone."""
        _, size = self._stuck.pop(holder, (0.0, 0))
        self._unread -= size
