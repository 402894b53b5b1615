"""Which partition a key belongs to: the same one as Java's clients choose."""

_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash, with Kafka's seed.

    >>> hex(murmur2(b"kafka"))
    '0xd067cf64'
    """
    value = _SEED ^ len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        value = value * _MULTIPLIER & _MASK ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15


def partition_for_key(key: bytes, partition_count: int) -> int:
    """The partition that a key goes to.

    >>> partition_for_key(b"kafka", 7)
    3
    """
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
