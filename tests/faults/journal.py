"""What a proxy did, for assertions and for the messages of tests that fail."""

import time
from collections import Counter, deque

from .actions import Exchange
from .rules import Fault

MOST_LINES = 2000


class Journal:
    """Written by the proxy's thread, read by the test's."""

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.connections = 0
        self.failures: list[Exception] = []
        """What the proxy itself did wrong, or a function that a test gave it."""
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._start = time.monotonic()

    def note(self, line: str) -> None:
        """Write a line."""
        self._lines.append(f"{time.monotonic() - self._start:8.3f} {line}")

    def happened(self, exchange: Exchange, fault: Fault) -> None:
        """A fault took place."""
        self.faults[fault.action.name] += 1
        self.note(f"{fault.action}: {exchange}")
        if fault.rule is not None:
            fault.rule.happened()

    def lines(self) -> list[str]:
        """The last lines."""
        return list(self._lines)
