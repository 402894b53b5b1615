"""Requests as bytes, made before the clock starts, and what is read of replies."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from bench.caller import FETCH_VERSION, PRODUCE_VERSION, TIMEOUT_S, frame
from ottla.record.build import build_batch
from ottla.record.compression import Codec
from ottla.record.kernels import Record
from ottla.wire import api
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.frame import decode_response
from ottla.wire.schema import schema_of

TIMESTAMP_MS = 1_700_000_000_000
BATCHES_PER_FETCH = 4
"""Whole batches of a partition that one reply brings: limits are given so that nothing is cut."""
LARGEST_REPLY = 1 << 26

WORDS = [
    stem + ending
    for stem in ("sea", "sun", "rain", "moss", "birch", "stone")
    for ending in ("", "s", "ward", "light", "shore", "field", "-1", "-20", "-300")
]


def values(count: int, size: int) -> list[bytes]:
    """Text of a few dozen words: as compressible as logs and JSON are, and the same in every run."""
    # No word has fewer than three letters, and a space comes after it.
    text = " ".join(random.Random(size).choices(WORDS, k=1 + count * size // 4)).encode() + b" "
    return [text[start : start + size] for start in range(0, count * size, size)]


@dataclass(frozen=True)
class Batch:
    """A record batch as it goes over the wire, and what is in it."""

    data: bytes
    records: int
    value_bytes: int
    """Of all records together, before they are compressed."""


@cache
def batch(value_size: int, batch_bytes: int, codec: Codec = Codec.NONE) -> Batch:
    """A batch of about that many bytes before it is compressed."""
    count = max(1, batch_bytes // (value_size + 8))
    records = [Record(number, TIMESTAMP_MS, None, value) for number, value in enumerate(values(count, value_size))]
    return Batch(build_batch(records, codec), count, count * value_size)


def produce_frame(topic: str, partitions: Sequence[int], batch: Batch, acks: int) -> bytes:
    """The same batch for each of the partitions."""
    data = [PartitionProduceData(index=partition, records=batch.data) for partition in partitions]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    return frame(ProduceRequest(acks=acks, timeout_ms=TIMEOUT_S * 1000, topic_data=topics), PRODUCE_VERSION)


def fetch_frame(topic: str, partitions: Sequence[int], offset: int, batch: Batch) -> bytes:
    """A few whole batches of each of the partitions, all from the same offset on."""
    most = BATCHES_PER_FETCH * len(batch.data)
    wanted = [FetchPartition(partition=each, fetch_offset=offset, partition_max_bytes=most) for each in partitions]
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=LARGEST_REPLY, topics=[FetchTopic(topic=topic, partitions=wanted)]
    )
    return frame(request, FETCH_VERSION)


def reply_to(request: type, version: int, reply: bytes) -> Any:
    """The message in a reply."""
    key = schema_of(request).key
    assert key is not None
    return decode_response(api.response(key), version, reply)[1]


def check_produced(reply: bytes) -> None:
    """RuntimeError if a partition refused its batch."""
    for topic in reply_to(ProduceRequest, PRODUCE_VERSION, reply).responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise RuntimeError(f"partition {partition.index} refused a batch with error {partition.error_code}")


def check_fetched(reply: bytes, partitions: int, batch: Batch) -> None:
    """RuntimeError unless each partition gave as many whole batches as it was asked for."""
    response = reply_to(FetchRequest, FETCH_VERSION, reply)
    found = [partition for topic in response.responses for partition in topic.partitions]
    if len(found) != partitions:
        raise RuntimeError(f"{len(found)} of {partitions} partitions were in the reply to a fetch")
    for partition in found:
        size = len(partition.records or b"")
        if partition.error_code or size != BATCHES_PER_FETCH * len(batch.data):
            raise RuntimeError(
                f"a fetch got {size} bytes of partition {partition.partition_index} with error {partition.error_code}, "
                f"not {BATCHES_PER_FETCH} batches of {len(batch.data)} bytes"
            )
