"""Telling of trouble once, however often it is met."""

import logging
from collections import Counter
from collections.abc import Iterable

MOST_REASONS = 10
"""How many reasons are logged at once."""


class Outage:
    """Something that fails again and again: the log gets a warning when it begins, and a line when it is over.

    >>> outage = Outage(logging.getLogger("example"), "fetching")
    >>> outage.met("localhost:9092 closed the connection")
    >>> outage.goes_on
    True
    >>> outage.over()
    >>> outage.goes_on
    False
    """

    def __init__(self, log: logging.Logger, what: str) -> None:
        self.goes_on = False
        self._log = log
        self._what = what

    def met(self, reason: object) -> None:
        """It failed, perhaps not for the first time."""
        if self.goes_on:
            self._log.debug("%s still fails: %s", self._what, reason)
        else:
            self._log.warning("%s fails, and is tried again: %s", self._what, reason)
        self.goes_on = True

    def over(self) -> None:
        """It works, perhaps as it always did."""
        if self.goes_on:
            self._log.info("%s works again", self._what)
        self.goes_on = False


def tell_others(log: logging.Logger, failures: Iterable[BaseException | None]) -> None:
    """Log failures beside the one that is raised, each reason once.

    >>> tell_others(logging.getLogger("example"), [ValueError("too large"), ValueError("too large")])
    """
    for reason, count in Counter(map(str, failures)).most_common(MOST_REASONS):
        log.error("%d more of what was sent failed: %s", count, reason)
