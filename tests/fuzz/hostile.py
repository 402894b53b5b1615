"""Inputs that no well-meaning peer would send, made from ones that it would."""

from random import Random

_EXTREMES = [bytes.fromhex(text) for text in ("ffffffff", "7fffffff", "80000000", "00000000", "ffff", "7fff", "8000")]
_VARINTS = [
    bytes.fromhex(text) for text in ("ffffffff0f", "ffffffff07", "8080808010", "ff01", "80", "ffffffffffffffffff01")
]


def hostile(random: Random, sound: bytes) -> bytes:
    """Noise, a cut of the sound bytes, or the sound bytes with some damage done to them."""
    kind = random.randrange(8)
    if kind == 0:
        return random.randbytes(random.randrange(200))
    if kind == 1:
        return sound[: random.randrange(len(sound) + 1)]
    data = bytearray(sound)
    for _ in range(random.randint(1, 4)):
        _damage(random, data)
    return bytes(data)


def _damage(random: Random, data: bytearray) -> None:
    position = random.randrange(len(data) + 1)
    kind = random.randrange(5)
    if kind == 0 and data:
        data[position % len(data)] = random.randrange(256)
    elif kind == 1 and data:
        data[position % len(data)] ^= 1 << random.randrange(8)
    elif kind == 2:
        extreme = random.choice(_EXTREMES + _VARINTS)
        data[position : position + len(extreme)] = extreme
    elif kind == 3:
        data[position:position] = random.randbytes(random.randrange(1, 9))
    else:
        del data[position : position + random.randrange(1, 20)]
