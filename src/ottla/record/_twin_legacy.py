"""Reading old message sets in Python; the twin of `_kernels_legacy.pxi`."""

from collections.abc import Iterator
from struct import Struct
from zlib import crc32

from ottla.record._kernel_types import LARGEST_INT32, LARGEST_INT64, SMALLEST_INT64, Buffer
from ottla.record._legacy_types import (
    CODEC_MASK,
    LOG_APPEND_TIME,
    SMALLEST_MESSAGE,
    MessageFault,
    MessageRun,
    MessageTotals,
    StoredMessage,
    message_error,
    range_error,
)
from ottla.record._twin_read import Record, int64, view_of
from ottla.record._twin_write import RecordWriter
from ottla.wire.errors import EncodeError

_ENTRY_START = Struct(">qi")
# By magic: offset, CRC, attributes, in magic 1 the timestamp, and the key's length; size and magic are skipped.
_ENTRY = (Struct(">q4xIxbi"), Struct(">q4xIxbqi"))
_INT32 = Struct(">i")


def run_end(run: MessageRun, position: int) -> int:
    """Where the plain messages end that begin at a position.

    What lies there, if it is not the end of the run, is compressed, malformed or cut short. Of the messages before it
    nothing but the bounds is checked.
    """
    view = _view_at(run, position)
    while run.stop - position >= _ENTRY_START.size + SMALLEST_MESSAGE[0]:
        _, size = _ENTRY_START.unpack_from(view, position)
        following = position + _ENTRY_START.size + size
        if size < SMALLEST_MESSAGE[0] or following > run.stop:
            break
        if view[position + 16] > 1 or view[position + 17] & CODEC_MASK:
            break
        position = following
    return position


def last_offset(data: Buffer) -> int:
    """The offset of the last message of a set, 0 if there is none, with no check but that it ends."""
    view = view_of(data)
    position = offset = 0
    while len(view) - position >= _ENTRY_START.size:
        offset, size = _ENTRY_START.unpack_from(view, position)
        position += _ENTRY_START.size + max(size, 0)
    return offset


def message_at(run: MessageRun, position: int) -> StoredMessage | None:
    """The message at a position, plain or compressed, or None if it is cut short."""
    return _parse(run, _view_at(run, position), position)


def scan_run(run: MessageRun) -> MessageTotals:
    """Check that a run is one of well-formed plain messages, and sum up what they hold."""
    totals = _Totals()
    for _, message in walk_messages(run):
        totals.add(message)
    return totals.result()


def read_run(run: MessageRun) -> list[Record]:
    """The plain messages of a run as records."""
    return [Record(message.offset, message.timestamp, message.key, message.value) for _, message in walk_messages(run)]


def append_run(writer: RecordWriter, run: MessageRun, renumber: bool = False) -> MessageTotals:
    """Add the plain messages of a run to a writer of v2 records, at their own offsets or at the next ones.

    After an error the writer holds the messages before the one at fault.
    """
    totals = _Totals()
    for position, message in walk_messages(run):
        offset = None if renumber else message.offset
        if offset is not None:
            base_offset = writer.base_offset
            check_order(position, offset, base_offset, base_offset + writer.last_offset_delta)
        first = message.timestamp if writer._base_timestamp is None else writer._base_timestamp
        if not SMALLEST_INT64 <= message.timestamp - first <= LARGEST_INT64:
            raise message_error(MessageFault.TIMESTAMP_FAR, position, message.timestamp, first)
        try:
            delta = writer.append(message.timestamp, message.key, message.value, (), offset)
        except EncodeError:
            delta = None
        if delta is None:
            raise message_error(MessageFault.TOO_MANY, position, message.offset)
        totals.add(message)
    return totals.result()


class _Totals:
    def __init__(self) -> None:
        self.count = self.magic_1 = self.null_keys = self.log_append_times = 0
        self.first_offset = self.last_offset = 0
        self.consecutive = False
        self.min_timestamp = self.max_timestamp = 0

    def add(self, message: StoredMessage) -> None:
        if self.count == 0:
            self.first_offset, self.consecutive = message.offset, True
            self.min_timestamp = self.max_timestamp = message.timestamp
        elif message.offset != self.last_offset + 1:
            self.consecutive = False
        self.count += 1
        self.magic_1 += message.magic
        self.null_keys += message.key is None
        self.log_append_times += message.log_append_time
        self.last_offset = message.offset
        self.min_timestamp = min(self.min_timestamp, message.timestamp)
        self.max_timestamp = max(self.max_timestamp, message.timestamp)

    def result(self) -> MessageTotals:
        return MessageTotals(
            self.count,
            self.magic_1,
            self.null_keys,
            self.log_append_times,
            self.first_offset,
            self.consecutive,
            self.min_timestamp,
            self.max_timestamp,
        )


def _view(run: MessageRun) -> memoryview:
    view = view_of(run.data)
    if not 0 <= run.start <= run.stop <= len(view):
        raise range_error(run, len(view))
    int64(run.shift)
    int64(run.append_time or 0)
    return view


def _view_at(run: MessageRun, position: int) -> memoryview:
    view = _view(run)
    if not run.start <= position <= run.stop:
        raise range_error(run._replace(start=position), len(view))
    return view


def walk_messages(run: MessageRun) -> Iterator[tuple[int, StoredMessage]]:
    """The messages of a run with their positions; it must be a run of whole plain ones."""
    view = _view(run)
    position = run.start
    while position < run.stop:
        message = _parse(run, view, position)
        if message is None:
            raise message_error(MessageFault.CUT, position, run.stop - position)
        if message.codec:
            raise message_error(MessageFault.COMPRESSED, position + 17, message.codec)
        yield position, message
        position = message.end


def _parse(run: MessageRun, view: memoryview, start: int) -> StoredMessage | None:
    left = run.stop - start - _ENTRY_START.size
    if left < 0:
        return None
    offset, size = _ENTRY_START.unpack_from(view, start)
    if size < SMALLEST_MESSAGE[0]:
        raise message_error(MessageFault.SIZE, start + 8, size, SMALLEST_MESSAGE[0])
    if size > left:
        return None
    end = start + _ENTRY_START.size + size
    magic = view[start + 16]
    if magic > 1:
        raise message_error(MessageFault.MAGIC, start + 16, magic)
    if size < SMALLEST_MESSAGE[magic]:
        raise message_error(MessageFault.SIZE, start + 8, size, SMALLEST_MESSAGE[magic])
    timestamp = -1
    if magic:
        offset, crc, attributes, timestamp, key_length = _ENTRY[1].unpack_from(view, start)
    else:
        offset, crc, attributes, key_length = _ENTRY[0].unpack_from(view, start)
    actual = crc32(view[start + 16 : end])
    if actual != crc:
        raise message_error(MessageFault.CRC, start + 12, crc, actual)
    key_at = start + _ENTRY[magic].size
    # The value's length has its place in any case, so a key may not reach into the last four bytes.
    if not -1 <= key_length <= end - _INT32.size - key_at:
        raise message_error(MessageFault.KEY_LENGTH, key_at - _INT32.size, key_length)
    value_at = key_at + max(key_length, 0) + _INT32.size
    (value_length,) = _INT32.unpack_from(view, value_at - _INT32.size)
    # Kafka looks at nothing after the value, and neither does this.
    if not -1 <= value_length <= end - value_at:
        raise message_error(MessageFault.VALUE_LENGTH, value_at - _INT32.size, value_length)
    if run.shift:
        if not 0 <= offset + run.shift <= LARGEST_INT64:
            raise message_error(MessageFault.OFFSET_RANGE, start, offset, run.shift)
        offset += run.shift
    # The type of timestamp is the wrapper's to say, and with it whose timestamp it is.
    log_append_time = bool(magic) and bool(run.append_time is not None if run.codec else attributes & LOG_APPEND_TIME)
    if magic and run.append_time is not None:
        timestamp = run.append_time
    key, value = slice_of(view, key_at, key_length), slice_of(view, value_at, value_length)
    return StoredMessage(offset, timestamp, key, value, magic, attributes & CODEC_MASK, log_append_time, end)


def check_order(position: int, offset: int, first_offset: int, last_offset: int) -> None:
    if offset <= last_offset:
        raise message_error(MessageFault.OFFSET_ORDER, position, offset, last_offset)
    if offset - first_offset > LARGEST_INT32:
        raise message_error(MessageFault.OFFSET_FAR, position, offset, first_offset)


def slice_of(view: memoryview, at: int, length: int) -> bytes | None:
    return None if length < 0 else bytes(view[at : at + length])
