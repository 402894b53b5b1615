"""Batches as requests of any version, and what answers say."""

import pytest

from ottla.client.errors import UnsupportedCompressionTypeError, UnsupportedForMessageFormatError
from ottla.client.picture import NO_TOPIC_ID, Leader, Picture, Topic
from ottla.client.producer.accumulator import PartitionQueue
from ottla.client.producer.batch import PendingBatch
from ottla.client.producer.idempotence import NOBODY
from ottla.client.producer.request import answers, payload, produce_request, version_for
from ottla.client.types import TopicPartition
from ottla.record import BatchBuilder, Codec, LegacyEntry, batches
from ottla.wire.api.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

ID = bytes(15) + b"\7"


def batch_of(topic: str = "t", partition: int = 0, codec: Codec = Codec.NONE, headers: bool = False) -> PendingBatch:
    builder = BatchBuilder(codec)
    builder.append(5, b"k", b"v", [("h", b"v")] if headers else ())
    queue = PartitionQueue(TopicPartition(topic, partition), 1000, idempotent=False)
    batch = PendingBatch(queue, builder, serial=1, deadline=0.0, charged=0)
    batch.has_headers = headers
    batch.seal(NOBODY, -1)
    return batch


def picture_of(**topics: bytes) -> Picture:
    picture = Picture()
    for name, topic_id in topics.items():
        picture.topics[name] = Topic(name, topic_id, False, {0: Leader(1)}, 0.0)
    return picture


def test_topics_without_an_id_are_named_in_the_last_version_that_has_names() -> None:
    picture = picture_of(t=ID, old=NO_TOPIC_ID)
    assert version_for(13, [batch_of("t")], picture) == 13
    assert version_for(13, [batch_of("t"), batch_of("old")], picture) == 12
    assert version_for(9, [batch_of("old")], picture) == 9


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 2), (13, 2)])
def test_every_version_gets_its_format(version: int, magic: int) -> None:
    (entry,) = batches(payload(batch_of(), version))
    assert (entry.magic if isinstance(entry, LegacyEntry) else 2) == magic


def test_what_a_version_cannot_carry_is_said() -> None:
    with pytest.raises(UnsupportedCompressionTypeError, match="too old for zstd"):
        payload(batch_of(codec=Codec.ZSTD), 6)
    with pytest.raises(UnsupportedForMessageFormatError, match="too old for headers"):
        payload(batch_of(headers=True), 2)
    assert payload(batch_of(codec=Codec.ZSTD), 7)
    assert payload(batch_of(headers=True), 3)


@pytest.mark.parametrize("version", [12, 13])
def test_answers_find_their_batches_by_name_or_by_id(version: int) -> None:
    sent_batches = [batch_of("t", 0), batch_of("t", 1), batch_of("u", 0)]
    parts = [(batch, batch.data or b"") for batch in sent_batches]
    picture = picture_of(t=ID, u=bytes(15) + b"\x08")
    request, sent = produce_request(parts, version, -1, 1000, picture)
    assert [(topic.name, len(topic.partition_data)) for topic in request.topic_data] == [("t", 2), ("u", 1)]
    failed = PartitionProduceResponse(
        index=1,
        error_code=6,
        error_message="moved",
        current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=4),
        record_errors=[BatchIndexAndErrorMessage(batch_index=number) for number in range(5)],
    )
    stranger = PartitionProduceResponse(index=9)
    answered = TopicProduceResponse(
        name="t" if version < 13 else "",
        topic_id=ID if version >= 13 else NO_TOPIC_ID,
        partition_responses=[failed, PartitionProduceResponse(index=0, base_offset=7), stranger],
    )
    found = dict(answers(ProduceResponse(responses=[answered]), version, sent))
    moved, written, silence = found[sent_batches[1]], found[sent_batches[0]], found[sent_batches[2]]
    assert moved is not None
    assert (moved.code, moved.leader) == (6, Leader(2, 4))
    assert moved.message.startswith("t-1: moved; record 0 of the batch: no reason given")
    assert moved.message.endswith("and 2 more")
    assert written is not None
    assert (written.code, written.base_offset) == (0, 7)
    assert silence is None
