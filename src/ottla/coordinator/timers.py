"""Timers as data: when something is due, and nothing that runs by itself."""

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count

_FEW = 64


class Timers:
    """Deadlines by key. Setting one again moves it.

    >>> timers = Timers()
    >>> timers.set("session", 1000)
    >>> timers.set("session", 2000)
    >>> timers.next_ms, list(timers.due(1999)), list(timers.due(2000)), timers.next_ms
    (2000, [], ['session'], None)
    """

    __slots__ = ("_deadlines", "_heap", "_order")

    def __init__(self) -> None:
        self._deadlines: dict[Hashable, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._deadlines)

    def set(self, key: Hashable, deadline_ms: int) -> None:
        """Have this due then, and no longer when it was before."""
        order = next(self._order)
        self._deadlines[key] = deadline_ms, order
        heappush(self._heap, (deadline_ms, order, key))
        # Every heartbeat leaves an entry behind that no longer counts: they are thrown out when they are the most.
        if len(self._heap) > 2 * len(self._deadlines) + _FEW:
            self._heap = [(at_ms, order, key) for key, (at_ms, order) in self._deadlines.items()]
            heapify(self._heap)

    def cancel(self, key: Hashable) -> None:
        """Have it due no more; fine if it was not."""
        self._deadlines.pop(key, None)

    def deadline_ms(self, key: Hashable) -> int | None:
        """When it is due, or None."""
        found = self._deadlines.get(key)
        return None if found is None else found[0]

    @property
    def next_ms(self) -> int | None:
        """When the first one is due, or None."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> Iterator[Hashable]:
        """Take out what is due, in order of time. Timers that are set meanwhile for now or earlier come too."""
        while (next_ms := self.next_ms) is not None and next_ms <= now_ms:
            key = heappop(self._heap)[2]
            del self._deadlines[key]
            yield key

    def _drop_stale(self) -> None:
        while self._heap:
            at_ms, order, key = self._heap[0]
            if self._deadlines.get(key) == (at_ms, order):
                return
            heappop(self._heap)


class Turns:
    """Moments for those who have long work to do a slice at a time: each its own, so that they never come together.

    >>> turns = Turns(pause_ms=5)
    >>> turns.next_ms(1000), turns.next_ms(1001), turns.next_ms(2000)
    (1005, 1010, 2005)
    """

    __slots__ = ("_pause_ms", "_taken_ms")

    def __init__(self, pause_ms: int = 5) -> None:
        self._pause_ms = pause_ms
        self._taken_ms = 0

    def next_ms(self, now_ms: int) -> int:
        """When to go on."""
        self._taken_ms = max(now_ms, self._taken_ms) + self._pause_ms
        return self._taken_ms
