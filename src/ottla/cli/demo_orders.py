"""The orders of `ottla demo`: the same ones each time, and what must come of them."""

from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

TOPIC = "orders"
PARTITIONS = 4
START_MS = 1_767_225_600_000
"""The first order's time, the first of January 2026; the last comes an hour later."""
HOUR_MS, MINUTE_MS = 3_600_000, 60_000
COUNTRIES = ("AT", "CZ", "DE", "PL")
USERS = 10_000
LATE_EVERY, LATE_MS = 16, 240_000
"""Each 16th order comes late, by up to four minutes."""
BROKEN_EVERY = 1_000
"""Each 1000th is cut off, and so is no JSON."""
NUMBER = slice(12, 21)
"""Where a value has the order's number, with zeros in front: later orders have a greater one."""


class Sum(NamedTuple):
    """Orders of a minute and a country, or of all."""

    orders: int = 0
    cents: int = 0


Sums = dict[tuple[int, str], Sum]
"""By minute since the start, and country."""


class Orders:
    """Makes orders as keys and values, and keeps the books on those that were made.

    >>> orders = Orders(2)
    >>> for key, value in orders:
    ...     print(key.decode(), value.decode())
    0 {"order": "A000000000", "user": 0, "country": "AT", "cents": 100, "at_ms": 1767225600000}
    503 {"order": "A000000001", "user": 503, "country": "PL", "cents": 15861, "at_ms": 1767227400000}
    >>> orders.sums()
    {(0, 'AT'): Sum(orders=1, cents=100), (30, 'PL'): Sum(orders=1, cents=15861)}
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.broken = 0
        self.bytes = 0
        self.checksum = 0
        """Of all values, in any order."""
        cells = HOUR_MS // MINUTE_MS * len(COUNTRIES)
        self._orders, self._cents = [0] * cells, [0] * cells

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        for number in range(self.count):
            chance = number * 2_654_435_761 & 0xFFFFFFFF
            user = (chance >> 16) % USERS
            if number % BROKEN_EVERY == BROKEN_EVERY - 1:
                self.broken += 1
                value = b'{"order": "A%09d", "user": ' % number
            else:
                at_ms = number * HOUR_MS // self.count
                if number % LATE_EVERY == LATE_EVERY - 1:
                    at_ms = max(0, at_ms - chance % LATE_MS)
                country, cents = user % len(COUNTRIES), 100 + chance % 20_000
                value = b'{"order": "A%09d", "user": %d, "country": "%b", "cents": %d, "at_ms": %d}' % (
                    number,
                    user,
                    COUNTRIES[country].encode(),
                    cents,
                    START_MS + at_ms,
                )
                cell = at_ms // MINUTE_MS * len(COUNTRIES) + country
                self._orders[cell] += 1
                self._cents[cell] += cents
            self.bytes += len(value)
            self.checksum += crc32(value)
            yield b"%d" % user, value

    def sums(self) -> Sums:
        """What the orders that are JSON come to."""
        return {
            (cell // len(COUNTRIES), COUNTRIES[cell % len(COUNTRIES)]): Sum(orders, cents)
            for cell, (orders, cents) in enumerate(zip(self._orders, self._cents, strict=True))
            if orders
        }


def total(sums: Sums) -> Sum:
    """All of them together.

    >>> total({(0, "AT"): Sum(1, 100), (7, "PL"): Sum(2, 350)})
    Sum(orders=3, cents=450)
    """
    return Sum(sum(one.orders for one in sums.values()), sum(one.cents for one in sums.values()))
