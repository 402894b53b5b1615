"""The coordinator over its shards: where groups are, how they are loaded, what they hear of."""

import asyncio
import logging
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.coordinator import shard_index
from ottla.broker.coordinator_load import Loader
from ottla.broker.request import Request
from ottla.cluster.image import ClusterImage
from ottla.cluster.names import OFFSETS_TOPIC
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.outcome import Outcome
from ottla.record import Batch, Record, build_batch
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.api.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.errors import ErrorCode, KafkaError
from tests.unit.broker.small_broker import SmallBroker, Stranger
from tests.waiting import eventually


def commit(small: SmallBroker, group_id: str, offset: int, metadata: str = "", topic: str = "t") -> ErrorCode:
    partition = OffsetCommitRequestPartition(committed_offset=offset, committed_metadata=metadata)
    asked = OffsetCommitRequestTopic(name=topic, partitions=[partition])
    response = small.ask(OffsetCommitRequest(group_id=group_id, topics=[asked]), 8)
    return ErrorCode(response.topics[0].partitions[0].error_code)


def committed(small: SmallBroker, group_id: str, topic: str = "t") -> int:
    asked = OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
    response = small.ask(OffsetFetchRequest(group_id=group_id, topics=[asked]), 7)
    assert response.error_code == 0, ErrorCode(response.error_code)
    offset: int = response.topics[0].partitions[0].committed_offset
    return offset


def load_again(small: SmallBroker, group_id: str) -> None:
    """Have a group's shard thrown away and loaded, as if writing had failed."""
    groups = small.broker.groups
    index = shard_index(group_id, 50)

    async def story() -> None:
        # It may be that it has failed already, and is not loaded yet.
        await eventually(lambda: index in groups._shards, "the shard is there")
        groups._shards[index]._fail()
        await eventually(lambda: index in groups._shards, "the shard is there again")

    small.run(story())


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.broker.coordinator.RELOAD_S", 0.01)


@pytest.mark.parametrize(
    ("group_id", "index"),
    [("", 0), ("orders", 31), ("zahlung-ü-🎉", 2), ("polygenelubricants", 0)],
)
def test_groups_are_where_java_would_put_them(group_id: str, index: int) -> None:
    # From java.lang.String.hashCode; that of the last one is the smallest number, which has no absolute value.
    assert shard_index(group_id, 50) == index


def test_the_offsets_topic_is_made_when_somebody_asks_for_a_group(small: SmallBroker) -> None:
    assert OFFSETS_TOPIC not in small.broker.image.topics
    assert small.ask(ListGroupsRequest(), 0).groups == []
    assert OFFSETS_TOPIC not in small.broker.image.topics, "there are no groups: nothing to be made"
    assert small.ask(FindCoordinatorRequest(key="g"), 0).error_code == 0
    topic = small.broker.image.topics[OFFSETS_TOPIC]
    assert topic.is_internal
    assert len(topic.partitions) == 50
    assert dict(topic.configs) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


def test_files_are_made_when_there_is_something_to_write(small: SmallBroker, tmp_path: Path) -> None:
    small.create("t")
    assert committed(small, "g") == -1
    assert [path.name for path in tmp_path.iterdir() if OFFSETS_TOPIC in path.name] == []
    assert commit(small, "g", 7) == ErrorCode.NONE
    index = shard_index("g", 50)
    assert [path.name for path in tmp_path.iterdir() if OFFSETS_TOPIC in path.name] == [f"{OFFSETS_TOPIC}-{index}"]


def test_loading_is_a_replay_of_the_log(small: SmallBroker) -> None:
    small.create("t")
    for offset in range(20):
        commit(small, "g", offset)
    load_again(small, "g")
    assert committed(small, "g") == 19
    assert commit(small, "g", 20) == ErrorCode.NONE
    assert committed(small, "g") == 20


@pytest.mark.parametrize("settings", [{"offsets.load.buffer.size": "300"}])
def test_loading_goes_in_pieces(small: SmallBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    small.create("t")
    for offset in range(20):
        commit(small, "g", offset)
    pieces = []
    replay_piece = Loader._replay_piece

    def counted(loader: Loader) -> None:
        pieces.append(loader)
        replay_piece(loader)

    monkeypatch.setattr(Loader, "_replay_piece", counted)
    load_again(small, "g")
    assert committed(small, "g") == 19
    assert len(pieces) > 5


@pytest.mark.parametrize("settings", [{"offsets.topic.compression.codec": str(codec)} for codec in range(5)])
def test_what_is_written_can_be_compressed(small: SmallBroker, settings: dict[str, str]) -> None:
    small.create("t")
    assert commit(small, "g", 7, "x" * 4000) == ErrorCode.NONE
    partition = small.broker.leader(OFFSETS_TOPIC, shard_index("g", 50))
    assert (partition.log.size < 1000) == (settings["offsets.topic.compression.codec"] != "0")
    load_again(small, "g")
    assert committed(small, "g") == 7


def test_records_that_cannot_be_read_are_left_out_and_reported(
    small: SmallBroker, caplog: pytest.LogCaptureFixture
) -> None:
    small.create("t")
    commit(small, "g", 7)
    partition = small.broker.leader(OFFSETS_TOPIC, shard_index("g", 50))
    for key in (b"\0\1\0\x7fcut off", None):
        partition.append_own(Batch(bytearray(build_batch([Record(0, 1, key, b"\0\0")]))), 0)
    commit(small, "g", 8)
    with caplog.at_level(logging.ERROR):
        load_again(small, "g")
    assert [record.getMessage().partition(": ")[2].partition(":")[0] for record in caplog.records] == [
        "the record at offset 1 is left out",
        "the record at offset 2 is left out",
    ]
    assert committed(small, "g") == 8


def test_a_damaged_batch_is_left_out_and_reported(small: SmallBroker, caplog: pytest.LogCaptureFixture) -> None:
    small.create("t")
    commit(small, "g", 7)
    partition = small.broker.leader(OFFSETS_TOPIC, shard_index("g", 50))
    damaged = bytearray(build_batch([Record(0, 1, b"key", b"value")]))
    damaged[-2] ^= 1
    partition.append_own(Batch(damaged), 0)
    commit(small, "g", 8)
    with caplog.at_level(logging.ERROR):
        load_again(small, "g")
    assert "the 1 records from offset 1 on are damaged" in caplog.text
    assert committed(small, "g") == 8


def test_loading_that_fails_is_tried_again(small: SmallBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    small.create("t")
    commit(small, "g", 7)
    replay_piece: Callable[[Loader], None] = Loader._replay_piece
    failures: list[Exception] = [OSError("the disk is slow"), ValueError("a bug")]

    def sometimes(loader: Loader) -> None:
        if failures:
            raise failures.pop()
        replay_piece(loader)

    monkeypatch.setattr(Loader, "_replay_piece", sometimes)
    load_again(small, "g")
    assert failures == []
    assert committed(small, "g") == 7


def test_offsets_of_a_deleted_topic_go_with_it(small: SmallBroker) -> None:
    small.create("t")
    small.create("other")
    commit(small, "g", 7)
    commit(small, "g", 8, topic="other")
    small.run(small.broker.topics.delete("t"))
    small.create("t")
    assert committed(small, "g") == -1
    assert committed(small, "g", "other") == 8
    load_again(small, "g")
    assert committed(small, "g") == -1


def test_a_group_hears_at_once_of_topics_that_come(small: SmallBroker) -> None:
    small.create("first")
    assert commit(small, "g", 7, topic="later") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    small.create("later")
    assert commit(small, "g", 7, topic="later") == ErrorCode.NONE


def test_a_group_hears_of_changed_settings(small: SmallBroker) -> None:
    small.create("t")
    assert commit(small, "g", 7, "four") == ErrorCode.NONE
    broker = small.broker
    broker.reconfigure(type(broker.config)({"log.dirs": "unused", "offset.metadata.max.bytes": "3"}))
    assert commit(small, "g", 7, "four") == ErrorCode.OFFSET_METADATA_TOO_LARGE


@pytest.mark.parametrize("settings", [{"group.consumer.assignors": "uniform,nowhere.to:be_found"}])
def test_an_assignor_that_is_not_there_ends_the_start(small: SmallBroker) -> None:
    with pytest.raises(KafkaError, match=r"INVALID_CONFIG: group\.consumer\.assignors: .*nowhere"):
        small.broker.groups.start()


@pytest.mark.parametrize("work", ["delete", "grow"])
def test_nobody_may_lose_the_offsets_topic(small: SmallBroker, work: str) -> None:
    small.ask(FindCoordinatorRequest(key="g"), 0)
    topics: Any = small.broker.topics
    doing = topics.delete(OFFSETS_TOPIC) if work == "delete" else topics.grow(OFFSETS_TOPIC, 60)
    with pytest.raises(KafkaError, match="INVALID_TOPIC_EXCEPTION"):
        small.run(doing)


def test_a_topic_that_was_made_by_hand_is_used_as_it_is(small: SmallBroker) -> None:
    small.create("t")
    small.create(OFFSETS_TOPIC, 3)
    assert small.broker.image.topics[OFFSETS_TOPIC].configs["cleanup.policy"] == "compact"
    for number in range(20):
        assert commit(small, f"g{number}", number) == ErrorCode.NONE
    assert [committed(small, f"g{number}") for number in range(20)] == list(range(20))


def test_a_stopped_coordinator_says_so(small: SmallBroker) -> None:
    small.create("t")
    commit(small, "g", 7)
    small.run(small.broker.groups.stop())
    assert commit(small, "g", 8) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert small.ask(ListGroupsRequest(), 0).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_change_of_topics_reaches_one_shard_after_the_other(
    small: SmallBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.create("t")
    indexes = {shard_index(f"g{number}", 50): f"g{number}" for number in range(10)}
    for group_id in indexes.values():
        commit(small, group_id, 7)
    told: list[ClusterImage] = []
    image_changed = GroupShard.image_changed

    def noted(groups: GroupShard, now_ms: int, image: ClusterImage) -> Outcome:
        told.append(image)
        return image_changed(groups, now_ms, image)

    async def story() -> list[int]:
        broker = small.broker
        monkeypatch.setattr(GroupShard, "image_changed", noted)
        broker.image = broker.image.without_topic("t")
        counts = [len(told)]
        while counts[-1] < len(indexes) - 3:
            await asyncio.sleep(0)
            counts.append(len(told))
        # A change before all have heard of the last one: all hear of the newest.
        told.clear()
        broker.image = broker.image.with_controller(77)
        while len(told) < len(indexes):
            await asyncio.sleep(0)
        await asyncio.sleep(0.02)
        return counts

    counts = small.run(story())
    assert all(after - before <= 1 for before, after in pairwise(counts)), "no two in one turn of the event loop"
    assert len(told) == len(indexes)
    assert all(image is small.broker.image for image in told)


def test_a_shard_that_is_asked_hears_first_of_what_has_changed(small: SmallBroker) -> None:
    small.create("t")
    groups = [f"g{number}" for number in range(20)]
    for group_id in groups:
        commit(small, group_id, 7)
    with_topic = small.broker.image

    def ask(group_id: str) -> int:
        asked = OffsetFetchRequestGroup(
            group_id=group_id, topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        )
        request = Request(9, 8, "client", Stranger(), None)
        answer: Any = small.broker.groups.ask(request, group_id, GroupShard.offset_fetch, asked, str)
        offset: int = answer.topics[0].partitions[0].committed_offset
        return offset

    async def story() -> None:
        # Without a turn of the loop in between.
        small.broker.image = with_topic.without_topic("t")
        assert [ask(group_id) for group_id in reversed(groups)] == [-1] * 20

    small.run(story())


def test_a_shard_that_has_failed_is_not_told(small: SmallBroker) -> None:
    small.create("t")
    commit(small, "g", 7)

    async def fail() -> None:
        small.broker.image = small.broker.image.without_topic("t")
        small.broker.groups._shards[shard_index("g", 50)]._fail()
        await asyncio.sleep(0.02)

    small.run(fail())
    load_again(small, "g")
    assert committed(small, "g") == -1
