"""While a broker wants to be left alone: it answers whoever has used up a quota, and does not read for a while then.

So it has been since Kafka 2.0 (KIP-219); brokers before that have waited by the time they answer.
"""

import asyncio
from math import inf

from ottla.net.failures import RequestTimedOutError
from ottla.net.negotiate import Offer

_FETCH, _FETCH_OF_BROKERS_THAT_MUTE = 1, 8
"""A request, and the version that came with Kafka 2.0."""


class Quiet:
    """When a broker may be asked again, on one connection, which `closed` says the end of.

    >>> async def story() -> list[float]:
    ...     loop = asyncio.get_running_loop()
    ...     quiet = Quiet("localhost:9092", loop, loop.create_future())
    ...     return [quiet.lasts, round(quiet.keep(60.0)), quiet.keep(30.0), quiet.lasts]
    >>> asyncio.run(story())
    [False, 60, 0.0, True]
    """

    __slots__ = ("_broker", "_closed", "_loop", "until")

    def __init__(self, broker: str, loop: asyncio.AbstractEventLoop, closed: "asyncio.Future[None]") -> None:
        self._broker = broker
        self._loop = loop
        self._closed = closed
        self.until = 0.0
        """By the event loop's clock; 0 if nobody knows of a pause, or it was waited for."""

    @property
    def lasts(self) -> bool:
        """Whether the broker is to be left alone now."""
        return self.until > 0 and self.until > self._loop.time()

    def keep(self, pause_s: float) -> float:
        """Leave the broker alone for so long; by how much longer than was known before."""
        now = self._loop.time()
        known = max(self.until, now)
        if now + pause_s <= known:
            return 0.0
        self.until = now + pause_s
        return self.until - known

    async def over(self, timeout_s: float = inf) -> None:
        """Wait until the broker may be asked again, or the connection is closed, or for so long."""
        until = self._loop.time() + timeout_s
        while not self._closed.done() and (wait_s := min(self.until, until) - self._loop.time()) > 0:
            await asyncio.wait([self._closed], timeout=wait_s)
        if self._closed.done() or not self.lasts:
            self.until = 0.0

    async def over_in_time(self, timeout_ms: int) -> None:
        """The same, but RequestTimedOutError if the broker may not be asked by then."""
        await self.over(timeout_ms / 1000)
        if self.lasts:
            left_ms = int((self.until - self._loop.time()) * 1000)
            raise RequestTimedOutError(
                f"{self._broker} could not be asked in {timeout_ms} ms: it wants to be left alone for another "
                f"{left_ms} ms, since a quota was used up; ask less often, or have the quota raised"
            )


def mutes(offer: Offer) -> bool:
    """Whether a broker that offers these versions does not read while it says that it throttles."""
    return _FETCH in offer and offer[_FETCH].last >= _FETCH_OF_BROKERS_THAT_MUTE
