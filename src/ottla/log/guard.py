"""Readers that go on while another thread takes files away, and look again if that came between."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from ottla.wire.errors import KafkaError

T = TypeVar("T")


class Guard:
    """Readers take no lock: they see afterwards whether files were replaced meanwhile, and if so repeat their look.

    >>> guard = Guard()
    >>> with guard.change():
    ...     pass
    >>> guard.look(lambda: 42)
    42
    """

    __slots__ = ("_changing", "_version")

    def __init__(self) -> None:
        self._changing = Lock()
        self._version = 0
        """Odd during a change."""

    @contextmanager
    def change(self) -> Iterator[None]:
        """Files are taken away or replaced in here."""
        with self._changing:
            self._version += 1
            try:
                yield
            finally:
                self._version += 1

    def look(self, look: Callable[..., T], *arguments: Any) -> T:
        """What a look at files gives, between changes."""
        while True:
            version = self._version
            if version % 2 == 0:
                try:
                    found = look(*arguments)
                except (KafkaError, OSError):
                    if version == self._version:
                        raise
                else:
                    if version == self._version:
                        return found
            with self._changing:
                pass
