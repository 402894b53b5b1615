"""Which partition a key belongs to: the same one as Java's clients choose."""

from ottla.record.kernels import murmur2

__all__ = ["murmur2", "partition_for_key"]


def partition_for_key(key: bytes, partition_count: int) -> int:
    """The partition that a key goes to.

    >>> partition_for_key(b"kafka", 7)
    3
    """
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
