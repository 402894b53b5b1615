"""Turns what a producer sent for one partition into batches that the log can take, or says why not.

Nothing here touches a single record in Python unless the topic asks for something that only that can give: another
compression, another format.
"""

from typing import Final, NamedTuple

from ottla.config.topic import TopicConfig
from ottla.record.batch import CONTROL, MAGIC_AT, TRANSACTIONAL, Batch, batches, records, scan
from ottla.record.build import build_batch
from ottla.record.compression import Codec
from ottla.record.convert import upconvert
from ottla.record.kernels import Summary
from ottla.wire.errors import ErrorCode, KafkaError, ProtocolError
from ottla.wire.schema import Bytes

MOST_DECOMPRESSED_BYTES: Final = 2**28
"""What the records of one batch may decompress to."""


FIRST_WITH_ZSTD: Final = 7


class Checked(NamedTuple):
    """A batch in a writable buffer, fit for the log; the sum of what is in it; and when it was checked."""

    batch: Batch
    summary: Summary
    now_ms: int


def check_records(data: Bytes | None, config: TopicConfig, version: int, now_ms: int) -> Checked:
    """Check the records of a produce request of this version against the topic's configs.

    Raises KafkaError with the code that Kafka answers.
    """
    if data is None or len(data) == 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, "there are no records")
    if len(data) > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"{len(data)} bytes are more than segment.bytes = {config.segment_bytes}"
        )
    try:
        return _check(data, config, version, now_ms)
    except ProtocolError as error:
        raise KafkaError(error.code, str(error)) from error


def _check(data: Bytes, config: TopicConfig, version: int, now_ms: int) -> Checked:
    batch = _single_batch(data, version)
    if batch is None:
        # Old clients set no offsets that matter and may leave a wrapper's inner offsets as they like.
        batch = Batch(bytearray(upconvert(data, MOST_DECOMPRESSED_BYTES, base_offset=0)))
        _check_size(batch, config)
    else:
        _check_size(batch, config)
        if version < FIRST_WITH_ZSTD and batch.codec is Codec.ZSTD:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce v7 or later, this request is v{version}"
            )
    _check_header(batch)
    summary = scan(batch, MOST_DECOMPRESSED_BYTES)
    if summary.null_keys and "compact" in config.cleanup_policy:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"{summary.null_keys} records have no key, which a compacted topic needs"
        )
    if config.compression_type != "producer":
        batch = _recompressed(batch, config)
    _set_timestamps(batch, summary, config, now_ms)
    return Checked(batch, summary, now_ms)


def _single_batch(data: Bytes, version: int) -> Batch | None:
    """The one batch of magic 2, in a buffer that can be written to; None for a message set."""
    if len(data) > MAGIC_AT and data[MAGIC_AT] == 2:
        # A large request is in a buffer of its own, where the log may put its numbers; a small one is soon copied.
        is_readonly = data.readonly if isinstance(data, memoryview) else isinstance(data, bytes)
        first = Batch(bytearray(data) if is_readonly else data)
    else:
        entry = next(iter(batches(data)), None)
        if entry is None:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{len(data)} bytes hold no whole batch")
        if version >= 3:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"Produce v{version} takes batches of magic 2, not {entry.magic}"
            )
        return None
    if first.size != len(data):
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"one batch per partition: the first has {first.size} of {len(data)} bytes"
        )
    return first


def _check_size(batch: Batch, config: TopicConfig) -> None:
    if batch.size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {batch.size} bytes is over max.message.bytes = {config.max_message_bytes}",
        )


def _check_header(batch: Batch) -> None:
    batch.check_crc()
    count = batch.count
    # Producers count offsets from 0; what they wrote there does not matter, the log gives its own.
    if count <= 0 or batch.last_offset_delta != count - 1:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"{count} records with a last offset delta of {batch.last_offset_delta}"
        )
    if batch.attributes & (CONTROL | TRANSACTIONAL):
        if batch.control:
            raise KafkaError(ErrorCode.INVALID_RECORD, "clients write no control batches")
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, "transactions are not served yet")
    if batch.producer_id >= 0 and (batch.producer_epoch < 0 or batch.base_sequence < 0):
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"producer {batch.producer_id} with epoch {batch.producer_epoch} and sequence {batch.base_sequence}",
        )


def _recompressed(batch: Batch, config: TopicConfig) -> Batch:
    wanted = Codec.NONE if config.compression_type == "uncompressed" else Codec[config.compression_type.upper()]
    if wanted is batch.codec:
        return batch
    rebuilt = build_batch(
        records(batch, MOST_DECOMPRESSED_BYTES),
        wanted,
        base_offset=batch.base_offset,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )
    fresh = Batch(bytearray(rebuilt))
    _check_size(fresh, config)
    return fresh


def _set_timestamps(batch: Batch, summary: Summary, config: TopicConfig, now_ms: int) -> None:
    if config.message_timestamp_type == "LogAppendTime":
        # The log stamps the batch when it appends it.
        return
    largest = batch.base_timestamp + summary.max_timestamp_delta
    if largest - now_ms > config.message_timestamp_after_max_ms:
        raise _bad_timestamp(largest, now_ms, "after", config.message_timestamp_after_max_ms)
    if now_ms - config.message_timestamp_before_max_ms > 0:
        smallest = batch.base_timestamp + summary.min_timestamp_delta
        if 0 <= smallest < now_ms - config.message_timestamp_before_max_ms:
            raise _bad_timestamp(smallest, now_ms, "before", config.message_timestamp_before_max_ms)
    if batch.log_append_time or batch.max_timestamp != largest:
        batch.set_max_timestamp(largest, append_time=False)


def _bad_timestamp(timestamp: int, now_ms: int, side: str, limit: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TIMESTAMP,
        f"timestamp {timestamp} is {abs(timestamp - now_ms)} ms from the broker's {now_ms}; "
        f"message.timestamp.{side}.max.ms = {limit}",
    )
