"""Connections to brokers: made when first needed, kept, and made again after a while when they failed."""

import asyncio
from dataclasses import dataclass, field
from enum import Enum

from ottla.client.errors import ClientClosedError
from ottla.client.options import ClientOptions
from ottla.net import Connection
from ottla.net.negotiate import API_VERSIONS
from ottla.ports import Chance

Address = tuple[str, int]

JITTER = 0.2
"""Waits are this much shorter or longer at random, so that many clients do not come back at the same moment."""


class Lane(Enum):
    """Connections to one broker, by what they carry.

    A broker answers the requests of a connection in order, so what waits at the broker has a connection of its own.
    """

    GENERAL = "general"
    FETCH = "fetch"
    """Fetches, which wait for records."""
    JOIN = "join"
    """Joining a group, which waits for its other members."""


def backed_off(first_ms: int, longest_ms: int, failures: int, chance: Chance) -> float:
    """Seconds to wait after so many failures in a row: twice as long each time, and a little at random.

    >>> from ottla.ports import SystemChance
    >>> 0.32 <= backed_off(50, 1000, 4, SystemChance()) <= 0.48
    True
    """
    wait_ms = min(longest_ms, first_ms << min(failures - 1, 30))
    return wait_ms / 1000 * chance.uniform(1 - JITTER, 1 + JITTER)


@dataclass(slots=True)
class _Health:
    """What is remembered of an address."""

    failures: int = 0
    not_before: float = 0.0


@dataclass(slots=True)
class _Place:
    """One connection to one address, or none at the moment. Only one is made at a time."""

    connection: Connection | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Connections:
    """All connections of a client."""

    def __init__(self, options: ClientOptions, chance: Chance) -> None:
        self._options = options
        self._chance = chance
        self._places: dict[tuple[Address, Lane], _Place] = {}
        self._health: dict[Address, _Health] = {}
        self._closed = False
        self.has_versions = False
        """Whether a broker of this cluster has told its versions. Then none of them is so old that it cannot, and one
        that closes the connection is in trouble."""

    async def to(self, address: Address, lane: Lane = Lane.GENERAL) -> Connection:
        """A connection to an address. One that failed lately is left alone for a while before it is tried again."""
        if self._closed:
            # Not an error that passes: those who try again would do so for a minute.
            raise ClientClosedError("the client was stopped while it was in use")
        place = self._places.setdefault((address, lane), _Place())
        found = place.connection
        if found is not None and not found.closed and not self._is_stale(found):
            return found
        async with place.lock:
            found = place.connection
            if found is not None and not found.closed:
                if not self._is_stale(found):
                    return found
                await found.close()
            place.connection = await self._open(address)
            return place.connection

    def any_open(self) -> Connection | None:
        """A connection that is open already and does not carry what waits at the broker. One to a broker that has asked
        to be left alone for now is the last choice."""
        quiet: Connection | None = None
        for (_, lane), place in self._places.items():
            found = place.connection
            if lane is Lane.GENERAL and found is not None and not found.closed and not self._is_stale(found):
                if not found.is_quiet:
                    return found
                quiet = quiet or found
        return quiet

    def by_health(self, addresses: list[Address]) -> list[Address]:
        """Addresses, each once, those first that did not fail lately."""
        unknown = _Health()
        return sorted(dict.fromkeys(addresses), key=lambda one: self._health.get(one, unknown).not_before)

    async def close(self) -> None:
        """Close all connections; none is made any more."""
        self._closed = True
        open_ones = [place.connection for place in self._places.values() if place.connection is not None]
        self._places.clear()
        await asyncio.gather(*[connection.close() for connection in open_ones])

    async def _open(self, address: Address) -> Connection:
        health = self._health.setdefault(address, _Health())
        wait_s = health.not_before - asyncio.get_running_loop().time()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        options = self._options
        try:
            opened = await Connection.open(
                *address,
                client_id=options.client_id,
                timeout_ms=options.request_timeout_ms,
                may_be_old=not self.has_versions,
                security=options.security,
                chance=self._chance,
            )
        except BaseException:
            health.failures += 1
            wait_s = backed_off(
                options.reconnect_backoff_ms, options.reconnect_backoff_max_ms, health.failures, self._chance
            )
            health.not_before = asyncio.get_running_loop().time() + wait_s
            raise
        if self._closed:
            await opened.close()
            raise ClientClosedError(f"the client was stopped while it connected to {opened.broker}")
        health.failures, health.not_before = 0, 0.0
        self.has_versions = self.has_versions or API_VERSIONS in opened.offer
        return opened

    def _is_stale(self, connection: Connection) -> bool:
        """Whether the broker may be about to close it, since it was not used for so long."""
        return connection.idle_ms > self._options.connections_max_idle_ms
