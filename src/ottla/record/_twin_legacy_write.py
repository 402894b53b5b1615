"""Writing old message sets in Python; the twin of `_kernels_legacy_write.pxi`."""

from collections.abc import Iterable
from struct import Struct
from zlib import crc32

from ottla.record._kernel_types import LARGEST_INT32, LARGEST_INT64, SMALLEST_INT64, Buffer
from ottla.record._legacy_types import (
    LOG_APPEND_TIME,
    SMALLEST_MESSAGE,
    MessageRun,
    headers_error,
    magic_error,
    order_error,
    unfit_error,
)
from ottla.record._twin_legacy import check_order, slice_of, walk_messages
from ottla.record._twin_read import Record, check_count, headers_of, int64, place, view_of, walk

_ENTRY_START = Struct(">qiI")
# Magic, attributes and, in magic 1, the timestamp.
_BODY = (Struct(">bb"), Struct(">bbq"))
_INT32 = Struct(">i")


class MessageWriter:
    """Writes plain messages of one format, from records, from v2 sections or from messages.

    In a set that is going to be wrapped offsets increase, and in magic 1 they count from the first message.
    After an error the writer holds what came before the record at fault.

    >>> writer = MessageWriter(magic=1, wrapped=True)
    >>> writer.extend_records([Record(7, 1500, None, b"v"), Record(9, 1400, b"k", b"w")])
    >>> writer.count, writer.last_offset, writer.max_timestamp, len(writer.messages())
    (2, 9, 1500, 71)
    """

    def __init__(self, magic: int, wrapped: bool = False) -> None:
        if magic not in (0, 1):
            raise magic_error(magic)
        self._magic = magic
        self._wrapped = bool(wrapped)
        self._count = 0
        self._first_offset = self._last_offset = -1
        self._max_timestamp = -1
        self._data = bytearray()

    @property
    def magic(self) -> int:
        """The format that is written."""
        return self._magic

    @property
    def count(self) -> int:
        """Messages written so far."""
        return self._count

    @property
    def last_offset(self) -> int:
        """The offset of the last message, or -1."""
        return self._last_offset

    @property
    def max_timestamp(self) -> int:
        """The largest of the timestamps, also where the format does not keep them, or -1."""
        return self._max_timestamp

    def messages(self) -> memoryview:
        """What was written so far. Release the view before writing more."""
        return memoryview(self._data)

    def extend_records(
        self, records: Iterable[Record], drop_headers: bool = False, log_append_time: bool = False
    ) -> None:
        """Add records. Their offsets must increase, and headers are an error unless they are to be dropped."""
        for item in records:
            record = item if type(item) is Record else _as_record(item)
            if record.headers and not drop_headers:
                raise headers_error(record.offset, self._magic)
            if self._count and record.offset <= self._last_offset:
                raise order_error(record.offset, self._last_offset)
            self._put(record.offset, record.timestamp, record.key, record.value, log_append_time)

    def extend_section(
        self,
        data: Buffer,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None = None,
        first_offset: int = SMALLEST_INT64,
    ) -> None:
        """Add the records of a v2 section from `first_offset` on, without headers.

        `append_time`, where given, is the timestamp of every one of them.
        """
        view = view_of(data)
        check_count(count, len(view))
        base_offset, base_timestamp, first_offset = int64(base_offset), int64(base_timestamp), int64(first_offset)
        append_time = None if append_time is None else int64(append_time)
        position = 0
        for number, record in walk(view, count, True):
            offset, timestamp = place(record, position, number, base_offset, base_timestamp, append_time)
            for _ in headers_of(view, record, number):
                pass
            if offset >= first_offset:
                key = slice_of(view, record.key_at, record.key_length)
                value = slice_of(view, record.value_at, record.value_length)
                self._put(offset, timestamp, key, value, append_time is not None)
            position = record.end

    def extend_run(self, run: MessageRun, first_offset: int = SMALLEST_INT64) -> None:
        """Add the plain messages of a run from `first_offset` on, each with its type of timestamp."""
        first_offset = int64(first_offset)
        for position, message in walk_messages(run):
            if message.offset < first_offset:
                continue
            if self._wrapped and self._count:
                check_order(position, message.offset, self._first_offset, self._last_offset)
            self._put(message.offset, message.timestamp, message.key, message.value, message.log_append_time)

    def _put(self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, log_append_time: bool) -> None:
        first = self._first_offset if self._count else offset
        stored = offset - first if self._wrapped and self._magic else offset
        size = SMALLEST_MESSAGE[self._magic] + len(key or b"") + len(value or b"")
        if stored > LARGEST_INT64 or size > LARGEST_INT32:
            raise unfit_error(offset)
        if self._magic:
            fixed = _BODY[1].pack(1, LOG_APPEND_TIME if log_append_time else 0, timestamp)
        else:
            fixed = _BODY[0].pack(0, 0)
        body = b"".join((fixed, _field(key), _field(value)))
        self._data += _ENTRY_START.pack(stored, size, crc32(body)) + body
        self._first_offset, self._last_offset = first, offset
        self._max_timestamp = max(self._max_timestamp, timestamp)
        self._count += 1


def _as_record(item: Record) -> Record:
    """What looks like a record, as one."""
    try:
        return Record(item.offset, item.timestamp, item.key, item.value, item.headers)
    except OverflowError as error:
        raise unfit_error(item.offset) from error


def _field(data: bytes | None) -> bytes:
    return _INT32.pack(-1) if data is None else _INT32.pack(len(data)) + data
