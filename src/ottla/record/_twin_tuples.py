"""Records as instances of a NamedTuple that the caller hands in; the twin of `_kernels_tuples.pxi`."""

from typing import TypeVar

from ottla.record._kernel_types import CONSUMER_FIELDS, LARGEST_INT32, Buffer, record_type_error
from ottla.record._legacy_types import MessageRun
from ottla.record._twin_legacy import walk_messages
from ottla.record._twin_read import int64, record_fields

Made = TypeVar("Made", bound=tuple[object, ...])


def read_tuples(
    data: Buffer,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
    start_offset: int,
    record_type: type[Made],
    topic: str,
    partition: int,
    timestamp_type: int,
) -> list[Made]:
    """The records of a section from `start_offset` on, as `read` has them, in a NamedTuple with more fields.

    These are topic, partition, offset, timestamp, timestamp_type, key, value and headers.
    """
    _check(record_type, topic, partition, timestamp_type)
    start_offset = int64(start_offset)
    return [
        tuple.__new__(record_type, (topic, partition, offset, timestamp, timestamp_type, key, value, headers))
        for offset, timestamp, key, value, headers in record_fields(
            data, count, base_offset, base_timestamp, append_time
        )
        if offset >= start_offset
    ]


def read_run_tuples(
    run: MessageRun, start_offset: int, record_type: type[Made], topic: str, partition: int
) -> list[Made]:
    """The plain messages of a run from `start_offset` on, as `read_tuples` has records.

    A message says by itself whose clock its timestamp is of; one of magic 0 has none, and its type is -1.
    """
    _check(record_type, topic, partition)
    start_offset = int64(start_offset)
    records = []
    for _, message in walk_messages(run):
        if message.offset >= start_offset:
            kind = int(message.log_append_time) if message.magic else -1
            fields = (topic, partition, message.offset, message.timestamp, kind, message.key, message.value, ())
            records.append(tuple.__new__(record_type, fields))
    return records


def _check(record_type: type, topic: str, *numbers: int) -> None:
    fitting = issubclass(record_type, tuple) and record_type.__basicsize__ == tuple.__basicsize__
    if not fitting or record_type.__dictoffset__ or getattr(record_type, "_fields", None) != CONSUMER_FIELDS:
        raise record_type_error(record_type)
    if type(topic) is not str:
        raise TypeError(f"a topic is a str, not {type(topic).__name__}")
    if any(not -LARGEST_INT32 - 1 <= int64(number) <= LARGEST_INT32 for number in numbers):
        raise OverflowError(f"{numbers} do not fit in 32 bits")
