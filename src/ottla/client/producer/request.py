"""Batches as a Produce request of any version, and what a broker answers."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ottla.client.errors import UnsupportedCompressionTypeError, UnsupportedForMessageFormatError
from ottla.client.picture import NO_TOPIC_ID, Leader, Picture
from ottla.client.producer.batch import PendingBatch
from ottla.client.types import TopicPartition
from ottla.record._kernel_types import Buffer
from ottla.record.batch import CODEC_MASK
from ottla.record.compression import Codec
from ottla.record.convert import downconvert
from ottla.wire.api.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

FIRST_VERSION_WITH_TIMESTAMPS = 2
FIRST_VERSION_WITH_BATCHES = 3
FIRST_VERSION_WITH_ZSTD = 7
LAST_VERSION_WITH_NAMES = 12

_ATTRIBUTES_END = 23
_LIMIT = 2**28
_NAMED_RECORDS = 3


Sent = dict[tuple[str | bytes, int], PendingBatch]
"""The batches of a request by what its version calls their topic, and by partition."""


class Answer(NamedTuple):
    """What a broker says of one partition."""

    code: int
    message: str
    base_offset: int
    append_time: int
    leader: Leader | None
    """Who leads the partition by now, if that is why it was refused and the broker knows."""


def version_for(version: int, batches: Sequence[PendingBatch], picture: Picture) -> int:
    """The version to use with a broker that has `version`: topics without an id can only be named in older ones."""
    if version > LAST_VERSION_WITH_NAMES:
        for batch in batches:
            if picture.topic_id(batch.partition.topic) == NO_TOPIC_ID:
                return LAST_VERSION_WITH_NAMES
    return version


def payload(batch: PendingBatch, version: int) -> Buffer:
    """A batch in the format that a version of the request carries; KafkaError if it cannot."""
    assert batch.data is not None, "a batch is sealed before it is sent"
    data = batch.data
    if version >= FIRST_VERSION_WITH_ZSTD:
        return data
    if data[_ATTRIBUTES_END - 1] & CODEC_MASK == Codec.ZSTD:
        raise UnsupportedCompressionTypeError("the broker is too old for zstd")
    if version >= FIRST_VERSION_WITH_BATCHES:
        return data
    if batch.has_headers:
        raise UnsupportedForMessageFormatError("the broker is too old for headers")
    return downconvert(data, 1 if version >= FIRST_VERSION_WITH_TIMESTAMPS else 0, _LIMIT)


def produce_request(
    parts: Sequence[tuple[PendingBatch, Buffer]], version: int, acks: int, timeout_ms: int, picture: Picture
) -> tuple[ProduceRequest, Sent]:
    """A request with one batch for each of some partitions."""
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms)
    sent: Sent = {}
    topics: dict[str, TopicProduceData] = {}
    for batch, data in parts:
        name, index = batch.partition
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = TopicProduceData(name=name, topic_id=picture.topic_id(name))
            request.topic_data.append(topic)
        topic.partition_data.append(PartitionProduceData(index=index, records=data))
        sent[topic.topic_id if version > LAST_VERSION_WITH_NAMES else name, index] = batch
    return request, sent


def answers(response: ProduceResponse, version: int, sent: Sent) -> Iterator[tuple[PendingBatch, Answer | None]]:
    """What a response says of each batch; None for those that it leaves out."""
    missing = dict(sent)
    for topic in response.responses:
        name = topic.topic_id if version > LAST_VERSION_WITH_NAMES else topic.name
        for one in topic.partition_responses:
            batch = missing.pop((name, one.index), None)
            if batch is not None:
                yield batch, _answer(batch.partition, one)
    for batch in missing.values():
        yield batch, None


def _answer(partition: TopicPartition, answer: PartitionProduceResponse) -> Answer:
    if not answer.error_code:
        return Answer(0, "", answer.base_offset, answer.log_append_time_ms, None)
    hint = answer.current_leader
    leader = None if hint is None or hint.leader_id < 0 else Leader(hint.leader_id, hint.leader_epoch)
    return Answer(answer.error_code, _reason(partition, answer), answer.base_offset, answer.log_append_time_ms, leader)


def _reason(partition: TopicPartition, answer: PartitionProduceResponse) -> str:
    text = str(partition) if answer.error_message is None else f"{partition}: {answer.error_message}"
    blamed = [
        f"record {one.batch_index} of the batch: {one.batch_index_error_message or 'no reason given'}"
        for one in answer.record_errors[:_NAMED_RECORDS]
    ]
    if len(answer.record_errors) > _NAMED_RECORDS:
        blamed.append(f"and {len(answer.record_errors) - _NAMED_RECORDS} more")
    return "; ".join([text, *blamed])
