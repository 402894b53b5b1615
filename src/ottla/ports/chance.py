"""Randomness and unique ids."""

import os
import random
from typing import Protocol


class Chance(Protocol):
    """Where random numbers and ids come from."""

    def uuid(self) -> bytes:
        """Sixteen bytes that nobody else has; never all zero, which means "none" in the protocol."""
        ...

    def secret(self, size: int) -> bytes:
        """Bytes that nobody can guess."""
        ...

    def uniform(self, low: float, high: float) -> float:
        """A number between the two."""
        ...


class SystemChance:
    """The operating system's randomness.

    >>> len(SystemChance().uuid())
    16
    """

    def uuid(self) -> bytes:
        """A random (version 4) uuid as raw bytes."""
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        # Kafka's tools choke on ids whose text form begins with a dash, and so never make them.
        return bytes(raw) if raw[0] >> 2 != 62 else self.uuid()

    def secret(self, size: int) -> bytes:
        """Bytes that nobody can guess."""
        return os.urandom(size)

    def uniform(self, low: float, high: float) -> float:
        """A number between the two."""
        return random.uniform(low, high)
