"""Rules of appending a batch, and what became of it."""

from typing import NamedTuple, Self

from ottla.config.topic import TopicConfig
from ottla.log.aborted import AbortedTransaction
from ottla.log.producers import ProducedBatch
from ottla.log.segment import Segment
from ottla.record.batch import Batch
from ottla.wire.errors import ErrorCode, KafkaError


class Appended(NamedTuple):
    """Where a batch went. A duplicate went there before."""

    base_offset: int
    last_offset: int
    log_append_time: int = -1
    """The time that the log gave to the records; -1 if they keep their own."""
    duplicate: bool = False
    rolled: bool = False
    """Whether the batch began a new segment, so that the one before it can be flushed."""

    @classmethod
    def before(cls, batch: ProducedBatch, config: TopicConfig) -> Self:
        """What is said of a batch whose producer repeats it."""
        stamped = batch.timestamp if config.message_timestamp_type == "LogAppendTime" else -1
        return cls(batch.first_offset, batch.last_offset, stamped, duplicate=True)


def too_large(batch: Batch, config: TopicConfig) -> KafkaError:
    """What is said of a batch that is too large for any segment."""
    return KafkaError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"a batch of {batch.size} bytes does not fit in a segment; segment.bytes is {config.segment_bytes}",
    )


def append_marker(segment: Segment, batch: Batch, abort: AbortedTransaction | None, config: TopicConfig) -> None:
    """Write the end of a transaction. With OSError nothing has changed.

    The list of aborted transactions comes first: without it, readers would take void records for good.
    """
    try:
        if abort is not None:
            segment.aborted.append(abort)
        segment.append(batch, config.index_interval_bytes)
    except OSError:
        segment.aborted.truncate(batch.base_offset)
        raise
