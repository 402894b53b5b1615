"""The walk over what a fetch brought, in Python; the twin of `_kernels_entries.pxi`."""

from struct import Struct

from ottla.record._kernel_types import Buffer

_ENTRY = Struct(">qiib")
"""How entries of all formats begin: an offset, a length, something else, and the format."""
_COUNT = Struct(">i")
_COUNT_AT = 57
_LENGTH_END = 12
_HEADER_BYTES = 61
_FIRST_MAGIC_OF_BATCHES = 2


def whole_entries(data: Buffer) -> tuple[int, int, int]:
    """Where the last whole entry of a run ends, where it begins, or -1 if there is none, and how many records there
    are, as far as that can be told without looking into what is compressed: messages of old formats count as one.

    Only what leads from one entry to the next is looked at.
    """
    view = memoryview(data).cast("B")
    end, last, count, size = 0, -1, 0, len(view)
    while size - end >= _ENTRY.size:
        _, length, _, magic = _ENTRY.unpack_from(view, end)
        if length < 0 or length > size - end - _LENGTH_END:
            break
        is_batch = magic >= _FIRST_MAGIC_OF_BATCHES and _LENGTH_END + length >= _HEADER_BYTES
        count += _COUNT.unpack_from(view, end + _COUNT_AT)[0] if is_batch else 1
        last = end
        end += _LENGTH_END + length
    return end, last, count
