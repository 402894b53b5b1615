"""Warnings that others can provoke as often as they like, told one by one only so often."""

import asyncio
import logging
from typing import Any

MOST_TOLD = 20
"""In a second, unless told otherwise."""

NEVER = float("-inf")


class Telling:
    """Warnings of one kind: so many in a while are logged as they are, and of more their number is.

    Whoever makes the same mistake a thousand times a second shall not fill the disk with it. `more` is the message for
    those that were left out, with a place for their number; it comes when the while is over.
    """

    def __init__(self, log: logging.Logger, more: str, *, most: int = MOST_TOLD, seconds: float = 1.0) -> None:
        self._log = log
        self._more = more
        self._most = most
        self._seconds = seconds
        self._since = NEVER
        self._told = 0
        self._left_out = 0

    def tell(self, message: str, *values: object, level: int = logging.WARNING, extra: Any = None) -> None:
        """Log this, or count it."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now - self._since >= self._seconds:
            self._since, self._told = now, 0
        if self._told < self._most:
            self._told += 1
            self._log.log(level, message, *values, extra=extra)
            return
        self._left_out += 1
        if self._left_out == 1:
            loop.call_at(self._since + self._seconds, self._sum_up)

    def _sum_up(self) -> None:
        left_out, self._left_out = self._left_out, 0
        self._log.warning(self._more, left_out)
