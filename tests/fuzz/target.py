"""What hostile bytes are thrown at, one decoder each."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

LIMIT = 1 << 18
"""What compressed records may grow to here."""


class Target(NamedTuple):
    """A decoder: how to make bytes that it accepts, and how to give it bytes.

    It returns, or raises ProtocolError that says where; anything else is a finding.
    """

    group: str
    name: str
    make: Callable[[Random], bytes]
    take: Callable[[bytes], object]
    weight: int = 1
    mend: Callable[[bytes], bytes] | None = None
    """Makes checksums right again, which is done in half of the cases: else they hide most of what is behind them."""
    inflates: bool = False
    """Whether what it takes may be compressed, and so come to `LIMIT` bytes however small it is."""


def agree(first: Callable[[], object], second: Callable[[], object]) -> None:
    """Require two ways to come to the same end: equal results, or the same exception in the same words."""
    ends = [_end(first), _end(second)]
    assert ends[0] == ends[1], f"one says {ends[0]!r}, the other {ends[1]!r}"
    if isinstance(ends[0], _Raised):
        raise ends[0].error


class _Raised:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Raised) and repr(self) == repr(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}"


def _end(action: Callable[[], object]) -> object:
    try:
        return action()
    except Exception as error:  # noqa: BLE001
        return _Raised(error)
