"""Whose turn it is, where one thing is done at a time and strangers may ask for as much of it as they like."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv6Address

MOST_LINES = 1000
MOST_WAITING = 200
"""In one line."""

OTHERS = ""
"""The line of all addresses that come when there are too many lines."""


class FullLineError(Exception):
    """Too many wait already: nothing was looked at, so whoever is too many can only come again."""


class Turns:
    """One at a time, and each address in turn: a crowd from one address waits for itself, and not others for it.

    Addresses of IPv6 stand in line by network, since whoever has one has 2**64.

    >>> async def order() -> list[str]:
    ...     turns, served = Turns(), []
    ...     async def visit(host: str) -> None:
    ...         async with turns.turn(host):
    ...             await asyncio.sleep(0)
    ...             served.append(host)
    ...     await asyncio.gather(*[visit(host) for host in ("crowd", "crowd", "crowd", "alice")])
    ...     return served
    >>> asyncio.run(order())
    ['crowd', 'crowd', 'alice', 'crowd']
    """

    def __init__(self, most_lines: int = MOST_LINES, most_waiting: int = MOST_WAITING) -> None:
        self._most_lines = most_lines
        self._most_waiting = most_waiting
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}
        """Those who wait, by where they are from; whose turn is next, in front."""
        self._taken = False

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait until it is this address's turn, which lasts as long as the block; FullLineError if too many wait."""
        if self._taken:
            await self._wait(host)
        self._taken = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, host: str) -> None:
        name = self._line_of(host)
        line = self._lines.setdefault(name, deque())
        if len(line) >= self._most_waiting:
            raise FullLineError(f"{len(line)} logins from there wait to be checked")
        place = asyncio.get_running_loop().create_future()
        line.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                # It was his turn at the very moment when he left.
                self._pass_on()
            elif place in line:
                line.remove(place)
                if not line:
                    del self._lines[name]
            raise

    def _line_of(self, host: str) -> str:
        name = network_of(host)
        return name if name in self._lines or len(self._lines) < self._most_lines else OTHERS

    def _pass_on(self) -> None:
        while self._lines:
            name = next(iter(self._lines))
            line = self._lines.pop(name)
            place = line.popleft()
            if line:
                self._lines[name] = line
            if not place.done():
                place.set_result(None)
                return
        self._taken = False


def network_of(host: str) -> str:
    """What an address stands in line as.

    >>> network_of("10.0.0.7"), network_of("2001:db8::7:1"), network_of("fe80::1%eth0")
    ('10.0.0.7', '2001:db8::', 'fe80::')
    """
    if ":" not in host:
        return host
    return str(IPv6Address(int(IPv6Address(host.partition("%")[0])) >> 64 << 64))
