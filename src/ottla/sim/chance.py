"""Chance that repeats itself."""

import random


class SimChance(random.Random):
    """Random numbers and ids from a seed: what the `Chance` port asks for, and all else that a simulation draws.

    >>> SimChance("a seed").uuid() == SimChance("a seed").uuid()
    True
    """

    def uuid(self) -> bytes:
        """Sixteen bytes, never all zero, whose text form does not begin with a dash."""
        return bytes([self.randrange(1, 0x80)]) + self.randbytes(15)

    def secret(self, size: int) -> bytes:
        """Bytes that nobody can guess who does not know the seed."""
        return self.randbytes(size)
