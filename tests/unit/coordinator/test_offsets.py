"""Committed offsets: what is kept, what is asked for, and what it costs."""

import tracemalloc
from dataclasses import dataclass, field

import pytest

from ottla.config.broker import BrokerConfig
from ottla.coordinator.group import commits
from ottla.coordinator.group.context import Context
from ottla.coordinator.group.offsets import NO_TOPIC_ID, Committed, Offsets
from ottla.coordinator.group.records import decode_record
from ottla.coordinator.outcome import Call, Outcome, Record
from ottla.ports import SystemChance
from ottla.wire.api.list_groups import ListedGroup
from ottla.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.api.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.embedded.offsets_topic import OffsetCommitKey, OffsetCommitValue
from ottla.wire.errors import ErrorCode, KafkaError

from .topics import image_of, topic

NOW_MS = 1_000_000


@dataclass
class FakeGroup:
    """A group that lets everyone commit and fetch, or nobody."""

    group_id: str = "g"
    refusal: ErrorCode | None = None
    subscribed: set[str] = field(default_factory=set)
    is_empty: bool = True
    empty_since_ms: int | None = None

    def check_commit(self, now_ms: int, version: int, member_id: str, instance_id: str | None, epoch: int) -> None:
        self._check()

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        self._check()

    def _check(self) -> None:
        if self.refusal is not None:
            raise KafkaError(self.refusal, "no")

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.subscribed

    def listed(self) -> ListedGroup:
        return ListedGroup(group_id=self.group_id)

    def removal(self) -> list[Record]:
        return []

    def loaded(self, now_ms: int) -> Outcome:
        return Outcome()

    def expire(self, now_ms: int, timer: tuple[str, ...]) -> Outcome:
        return Outcome()


class Story:
    """Requests to one group's offsets, with their records replayed."""

    def __init__(self, group: FakeGroup | None = None) -> None:
        self.context = Context(
            BrokerConfig({}), image_of(topic("t", partitions=3), topic("u", number=2)), SystemChance()
        )
        self.offsets = Offsets()
        self.group = group
        self.records: list[Record] = []

    def apply(self, outcome: Outcome) -> Outcome:
        self.records += outcome.records
        for record in outcome.records:
            self.offsets.replay(*decode_record(*record.encoded()))
        return outcome

    def commit(
        self,
        *partitions: OffsetCommitRequestPartition,
        version: int = 8,
        name: str = "t",
        topic_id: bytes = bytes(16),
        epoch: int = -1,
        retention_ms: int = -1,
    ) -> list[int]:
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=epoch,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=list(partitions))],
        )
        outcome = self.apply(commits.commit(self.context, self.group, NOW_MS, Call(version, "c", "/h", request)))
        (answered,) = outcome.reply.topics
        assert (answered.name, answered.topic_id) == (name, topic_id)
        return [one.error_code for one in answered.partitions]

    def fetch(
        self, *wanted: OffsetFetchRequestTopics, version: int = 8, everything: bool = False
    ) -> dict[tuple[str, int], tuple[int, int, str | None, int]]:
        request = OffsetFetchRequestGroup(group_id="g", topics=None if everything else list(wanted))
        reply = commits.fetch(self.context, self.offsets, self.group, Call(version, "c", "/h", request)).reply
        assert (reply.group_id, reply.error_code) == ("g", self.group.refusal or 0 if self.group else 0)
        return {
            (answered.name, one.partition_index): (
                one.committed_offset,
                one.committed_leader_epoch,
                one.metadata,
                one.error_code,
            )
            for answered in reply.topics
            for one in answered.partitions
        }

    def delete(self, name: str, *indexes: int) -> list[int]:
        assert self.group is not None
        partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
        request = OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteRequestTopic(name=name, partitions=partitions)])
        outcome = self.apply(commits.delete(self.context, self.offsets, self.group, Call(0, "c", "/h", request)))
        return [one.error_code for one in outcome.reply.topics[0].partitions]


def at(
    offset: int, index: int = 0, metadata: str | None = None, timestamp_ms: int = -1
) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=offset,
        committed_leader_epoch=6,
        commit_timestamp=timestamp_ms,
        committed_metadata=metadata,
    )


def test_what_is_committed_can_be_fetched_with_its_metadata_and_epoch() -> None:
    story = Story()
    assert story.commit(at(42, 0, "hällo"), at(7, 2)) == [0, 0]
    wanted = OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1, 2])
    assert story.fetch(wanted) == {("t", 0): (42, 6, "hällo", 0), ("t", 1): (-1, -1, "", 0), ("t", 2): (7, 6, "", 0)}


def test_a_later_commit_takes_the_place_of_an_earlier_one() -> None:
    story = Story()
    story.commit(at(42))
    story.commit(at(40))
    assert story.fetch(everything=True) == {("t", 0): (40, 6, "", 0)}


def test_no_topics_means_all_that_were_committed() -> None:
    story = Story()
    story.commit(at(1), at(2, 1))
    story.commit(at(3), name="u")
    for version in (2, 7, 8, 9, 10):
        assert story.fetch(everything=True, version=version) == {
            ("t", 0): (1, 6, "", 0),
            ("t", 1): (2, 6, "", 0),
            ("u", 0): (3, 6, "", 0),
        }


def test_topics_are_addressed_by_id_from_version_10_on() -> None:
    story = Story()
    topic_id = (2).to_bytes(16, "big")
    assert story.commit(at(5), version=10, name="", topic_id=topic_id) == [0]
    found = story.fetch(OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0]), version=10)
    assert list(found.values()) == [(5, 6, "", 0)]
    assert story.fetch(OffsetFetchRequestTopics(name="u", partition_indexes=[0]))["u", 0][0] == 5


def test_an_unknown_topic_or_partition_is_refused_one_by_one() -> None:
    story = Story()
    assert story.commit(at(1, 2), at(1, 3), at(1, -1)) == [0, 3, 3]
    assert story.commit(at(1), name="nope") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    nobody = bytes(15) + b"\x09"
    assert story.commit(at(1), version=10, name="", topic_id=nobody) == [ErrorCode.UNKNOWN_TOPIC_ID]
    known = (1).to_bytes(16, "big")
    assert story.commit(at(1, 9), version=10, name="", topic_id=known) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_fetching_what_does_not_exist_is_no_error_unless_it_is_asked_for_by_id() -> None:
    story = Story()
    nope = OffsetFetchRequestTopics(name="nope", topic_id=bytes(15) + b"\x09", partition_indexes=[0])
    assert story.fetch(nope) == {("nope", 0): (-1, -1, "", 0)}
    assert story.fetch(nope, version=10) == {("nope", 0): (-1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)}


def test_metadata_may_be_as_long_as_the_setting_says_and_no_longer() -> None:
    story = Story()
    assert story.commit(at(1, 0, "x" * 4096), at(1, 1, "x" * 4097)) == [0, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    story.context.config = BrokerConfig({"offset.metadata.max.bytes": "1"})
    assert story.commit(at(1, 0, "xy"), at(1, 1, "x")) == [ErrorCode.OFFSET_METADATA_TOO_LARGE, 0]


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH])
def test_what_the_group_says_goes_for_all_partitions(code: ErrorCode) -> None:
    story = Story(FakeGroup(refusal=code))
    assert story.commit(at(1), at(1, 1), at(1, 9)) == [code] * 3
    assert story.records == []
    assert story.fetch(everything=True) == {}


@pytest.mark.parametrize(
    ("version", "code"), [(1, ErrorCode.ILLEGAL_GENERATION), (8, 22), (9, ErrorCode.GROUP_ID_NOT_FOUND), (10, 69)]
)
def test_a_member_of_a_group_that_does_not_exist_cannot_commit(version: int, code: int) -> None:
    story = Story()
    assert story.commit(at(1), version=version, epoch=3, topic_id=bytes(16)) == [code]


def test_version_1_says_when_it_was_committed() -> None:
    story = Story()
    story.commit(at(1, 0, timestamp_ms=77), at(1, 1), version=1)
    first, second = story.offsets.find("g", "t", 0), story.offsets.find("g", "t", 1)
    assert first is not None
    assert second is not None
    assert (first.commit_timestamp_ms, second.commit_timestamp_ms) == (77, NOW_MS)


def test_a_retention_time_is_written_down_in_the_value_that_has_room_for_it() -> None:
    story = Story()
    story.commit(at(1), version=3, retention_ms=5000)
    story.commit(at(1, 1), version=3)
    assert [record.version for record in story.records] == [1, 4]
    kept = story.offsets.find("g", "t", 0)
    assert kept is not None
    assert kept.expire_timestamp_ms == NOW_MS + 5000


def test_an_endless_retention_time_is_cut_to_what_a_timestamp_can_hold() -> None:
    story = Story()
    assert story.commit(at(1), version=3, retention_ms=2**63 - 1) == [0]
    kept = story.offsets.find("g", "t", 0)
    assert kept is not None
    assert kept.expire_timestamp_ms == 2**63 - 1


def test_a_topic_that_was_created_again_starts_without_offsets() -> None:
    story = Story()
    story.commit(at(42))
    story.context.image = image_of(topic("t", partitions=3, number=9))
    assert story.fetch(OffsetFetchRequestTopics(name="t", partition_indexes=[0])) == {("t", 0): (-1, -1, "", 0)}
    assert story.fetch(everything=True) == {}


def test_offsets_are_deleted_unless_a_member_reads_the_topic() -> None:
    story = Story(FakeGroup(subscribed={"u"}))
    story.commit(at(1), at(2, 1))
    story.commit(at(3), name="u")
    assert story.delete("t", 0, 2, 7) == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert story.delete("u", 0) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert set(story.fetch(everything=True)) == {("t", 1), ("u", 0)}
    # There was one offset to delete, so there is one tombstone.
    assert [record.key.partition for record in story.records if record.value is None] == [0]


def test_a_group_is_forgotten_with_its_last_offset() -> None:
    offsets = Offsets()
    for group_id, name in (("a", "t"), ("a", "u"), ("b", "t")):
        record = Committed(1).record(group_id, name, 0)
        offsets.replay(record.key, record.value)
    assert offsets.groups_of("t") == ["a", "b"]
    assert (offsets.count("a"), offsets.count("b")) == (2, 1)
    for record in offsets.tombstones("a"):
        offsets.replay(record.key, record.value)
    assert "a" not in offsets
    assert offsets.topics() == ["t"]
    assert offsets.groups_of("t") == ["b"]
    assert (offsets.groups_of("u"), offsets.partitions_of("a", "t"), offsets.count("a")) == ([], [], 0)
    # Once more does no harm: a tombstone may outlive what it removed.
    offsets.replay(OffsetCommitKey(group="a", topic="t", partition=0), None)


def test_ten_thousand_groups_with_thirty_partitions_each_fit_into_sixty_megabytes() -> None:
    tracemalloc.start()
    offsets = Offsets()
    for group in range(2000):
        for index in range(30):
            key = OffsetCommitKey(group=f"group-{group}", topic=f"topic-{group % 50}", partition=index)
            value = OffsetCommitValue(
                offset=10**9 + index, commit_timestamp=1_700_000_000_000 + group, topic_id=b"i" * 16
            )
            offsets.replay(key, value)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken * 5 < 60 << 20, f"{taken / 60_000:.0f} bytes for each"


def test_offsets_that_do_not_say_which_topic_they_are_for_are_found() -> None:
    offsets = Offsets()
    for partition, topic_id in enumerate((NO_TOPIC_ID, b"1" * 16, NO_TOPIC_ID)):
        record = Committed(1, topic_id=topic_id).record("a", "t", partition)
        offsets.replay(record.key, record.value)
    assert offsets.anonymous("t") == [("a", 0), ("a", 2)]
    record = Committed(1, topic_id=b"1" * 16).record("a", "t", 0)
    offsets.replay(record.key, record.value)
    assert offsets.anonymous("t") == [("a", 2)]
    assert offsets.topic_id("a", "t", 0) == b"1" * 16
    assert (offsets.topic_id("a", "t", 2), offsets.topic_id("a", "t", 3)) == (NO_TOPIC_ID, None)
    for record in offsets.tombstones("a"):
        offsets.replay(record.key, record.value)
    assert offsets.anonymous("t") == []
