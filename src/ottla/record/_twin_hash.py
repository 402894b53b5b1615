"""Hashes of keys in Python; the twin of `_kernels_hash.pxi`."""

from array import array
from collections.abc import Callable
from zlib import crc32

from ottla.record._kernel_types import BinaryColumn, Buffer, RowFault
from ottla.record._twin_read import int64, view_of
from ottla.record._twin_write import BinarySource

_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def murmur2(data: Buffer) -> int:
    """The 32-bit murmur2 hash, with Kafka's seed.

    >>> hex(murmur2(b"kafka"))
    '0xd067cf64'
    """
    view = view_of(data)
    value = (_SEED ^ len(view)) & _MASK
    whole = len(view) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(view[position : position + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        value = value * _MULTIPLIER & _MASK ^ word
    if whole < len(view):
        value = (value ^ int.from_bytes(view[whole:], "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15


def murmur2_rows(column: BinaryColumn, start: int, stop: int) -> bytearray:
    """The murmur2 hashes of rows `start` to `stop` as an array of uint32; a null row has 0."""
    return _hashes_of(column, start, stop, murmur2)


def crc32_rows(column: BinaryColumn, start: int, stop: int) -> bytearray:
    """The CRC-32 of rows `start` to `stop` as an array of uint32; a null row has 0."""
    return _hashes_of(column, start, stop, crc32)


def _hashes_of(column: BinaryColumn, start: int, stop: int, hashed: Callable[[bytes], int]) -> bytearray:
    if int64(start) < 0 or int64(stop) < start:
        raise IndexError(f"rows {start} to {stop} are not a range")
    source = BinarySource(column, stop)
    rows = (source.get(row, row, RowFault.KEY_BOUNDS) for row in range(start, stop))
    return bytearray(array("I", [0 if key is None else hashed(key) for key in rows]).tobytes())
