"""What the kernels for old message sets share: the faults they report and the shapes they exchange."""

from enum import IntEnum, unique
from typing import NamedTuple

from ottla.record._kernel_types import Buffer
from ottla.wire.errors import EncodeError, ErrorCode, ProtocolError

SMALLEST_MESSAGE = (14, 22)
"""Bytes of a message without key and value, by magic: CRC, magic, attributes, timestamp and the two lengths."""

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08


class MessageRun(NamedTuple):
    """Messages one after another in a buffer, and what the wrapper around them says of them all."""

    data: Buffer
    start: int
    stop: int
    codec: int = 0
    """That of the wrapper, or 0 where there is none."""
    shift: int = 0
    """What to add to the messages' offsets."""
    append_time: int | None = None
    """The timestamp of all messages of magic 1, if the wrapper's is the time of the append."""


class StoredMessage(NamedTuple):
    """A message as its run has it, and the position after it. The value of a compressed one is a set of its own."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    magic: int
    codec: int
    log_append_time: bool
    end: int


class MessageTotals(NamedTuple):
    """What one pass over a run learns without making an object per message. All are 0 for an empty run."""

    messages: int
    magic_1: int
    """How many of them are of magic 1."""
    null_keys: int
    log_append_times: int
    """How many messages have the time of the append."""
    first_offset: int
    consecutive: bool
    """Whether each offset is one more than that before it."""
    min_timestamp: int
    max_timestamp: int


@unique
class MessageFault(IntEnum):
    """Why a message was refused. Both kernels report these numbers; the words are in one place, here."""

    CUT = 1
    SIZE = 2
    MAGIC = 3
    CRC = 4
    KEY_LENGTH = 5
    VALUE_LENGTH = 6
    OFFSET_RANGE = 7
    COMPRESSED = 8
    OFFSET_ORDER = 9
    OFFSET_FAR = 10
    TIMESTAMP_FAR = 11
    TOO_MANY = 12


_CORRUPT, _INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD

# What the CRC vouches for is invalid rather than corrupt: sending it again cannot help.
_REASONS = {
    MessageFault.CUT: (_CORRUPT, "the last message is cut short: {value} bytes are left"),
    MessageFault.SIZE: (_CORRUPT, "message size {value} is below {other}"),
    MessageFault.MAGIC: (_CORRUPT, "magic {value} is not that of a message set"),
    MessageFault.CRC: (_CORRUPT, "the message's CRC is {value:#010x}, its bytes give {other:#010x}"),
    MessageFault.KEY_LENGTH: (_INVALID, "key length {value} is below -1 or beyond the message"),
    MessageFault.VALUE_LENGTH: (_INVALID, "value length {value} is below -1 or beyond the message"),
    MessageFault.OFFSET_RANGE: (_INVALID, "offset {value} relative to {other} is out of range"),
    MessageFault.COMPRESSED: (_INVALID, "the message is compressed with codec {value}, where a plain one is wanted"),
    MessageFault.OFFSET_ORDER: (_INVALID, "offset {value} follows {other}, and they must increase"),
    MessageFault.OFFSET_FAR: (_INVALID, "offset {value} follows {other}, the first of its set, by 2**31 or more"),
    MessageFault.TIMESTAMP_FAR: (_INVALID, "timestamps {other} and {value} are too far apart for one batch"),
    MessageFault.TOO_MANY: (ErrorCode.MESSAGE_TOO_LARGE, "the messages up to offset {value} pass the batch's limit"),
}


def message_error(fault: int, position: int, value: int, other: int = 0) -> ProtocolError:
    """The exception for a fault at a byte of the message set."""
    code, reason = _REASONS[MessageFault(fault)]
    return ProtocolError(reason.format(value=value, other=other), offset=position, where="message set", code=code)


def range_error(run: MessageRun, size: int) -> IndexError:
    """The exception for a run that is not within its buffer."""
    return IndexError(f"bytes {run.start} to {run.stop} are not a range of {size} bytes")


def magic_error(magic: int) -> EncodeError:
    """The exception for a format that is not one of message sets."""
    return EncodeError(f"a message set has magic 0 or 1, not {magic}")


def headers_error(offset: int, magic: int) -> EncodeError:
    """The exception for a record with headers."""
    return EncodeError(f"record {offset} has headers, which magic {magic} cannot carry")


def order_error(offset: int, last_offset: int) -> EncodeError:
    """The exception for a record whose offset is not larger than the one before."""
    return EncodeError(f"offset {offset} does not follow {last_offset}")


def unfit_error(offset: int) -> EncodeError:
    """The exception for a record that the fields of a message cannot hold."""
    return EncodeError(
        f"the message at offset {offset} does not fit the format: it is over 2 GiB, or its numbers take over 64 bits"
    )
