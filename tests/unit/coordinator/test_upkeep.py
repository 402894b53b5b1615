"""What concerns very many groups or offsets is done in slices, and nobody sees that it is not finished."""

from collections.abc import Iterator

import pytest

from ottla.coordinator.group import upkeep
from ottla.coordinator.group.classic.member import Member
from ottla.coordinator.group.consumer import ConsumerGroup
from ottla.coordinator.group.offsets import Committed, Offsets
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.outcome import Outcome, tombstone
from ottla.coordinator.timers import Turns
from ottla.sim.chance import SimChance
from ottla.wire.embedded import decode_versioned, encode_versioned
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.embedded.offsets_topic import GroupMetadataKey

from .shard_world import MINUTE_MS, WEEK_MS, ShardWorld
from .topics import image_of, topic

GROUP_TOMBSTONE = tombstone(GroupMetadataKey(group="group-0")).encoded()
CHECK_MS = 10 * MINUTE_MS
BILLS = topic("bills", 1, number=2)
MOST_RECORDS = upkeep.WORK_AT_ONCE // upkeep.WORK_OF_A_RECORD + upkeep.PIECE


class LargeWorld(ShardWorld):
    """Notes how many records each step writes."""

    def _apply(self, outcome: Outcome) -> None:
        if outcome.records:
            self.steps = [*getattr(self, "steps", []), len(outcome.records)]
        super()._apply(outcome)

    def fill(self, groups: int, topics: int, partitions: int, *, size: int = 1000, commit_ms: int = 0) -> None:
        """Have groups commit for "large-0" and so on, as if they had done so before the start."""
        names = [f"large-{number}" for number in range(topics)]
        self.image = self.image.with_topics(*(topic(name, size, 100 + at) for at, name in enumerate(names)))
        for group in range(groups):
            for name in names:
                for partition in range(partitions):
                    found = self.image.topics[name].topic_id
                    committed = Committed(5, commit_timestamp_ms=commit_ms or self.now_ms, topic_id=found)
                    self.log.append(committed.record(f"group-{group}", name, partition).encoded())
        self.restart()
        self.steps = []

    @property
    def kept(self) -> int:
        """Offsets that the log has, whether anybody gets to see them or not."""
        return sum(value is not None for key, value in dict(self.log).items() if key.startswith(b"\0\1"))


@pytest.mark.parametrize(("groups", "topics", "partitions"), [(4000, 1, 1), (1, 4, 1000), (2, 1, 2000)])
def test_offsets_expire_in_slices_wherever_they_are_and_their_groups_with_them(
    groups: int, topics: int, partitions: int
) -> None:
    world = LargeWorld(offsets_retention_minutes=1)
    world.fill(groups, topics, partitions, size=partitions, commit_ms=1)
    world.pass_time(CHECK_MS)
    assert 0 < world.kept < 4000
    world.pass_time(1000)
    assert (world.kept, world.listed()) == (0, {})
    assert max(world.steps) <= MOST_RECORDS
    world.restart()
    assert world.listed() == {}


def test_a_slice_that_finds_nothing_looks_at_few_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    world = LargeWorld()
    world.fill(1, 10, 1000)
    looked_at = 0
    find = Offsets.find

    def counted(offsets: Offsets, group_id: str, name: str, partition: int) -> Committed | None:
        nonlocal looked_at
        looked_at += 1
        return find(offsets, group_id, name, partition)

    monkeypatch.setattr(Offsets, "find", counted)
    world.pass_time(CHECK_MS)
    assert 0 < looked_at <= upkeep.WORK_AT_ONCE + upkeep.PIECE
    world.pass_time(1000)
    assert looked_at == 10_000
    world.pass_time(CHECK_MS + 1000)
    assert looked_at == 20_000


def test_a_group_that_goes_on_between_two_slices_stays() -> None:
    world = LargeWorld(offsets_retention_minutes=1)
    world.fill(1, 4, 1000, commit_ms=1)
    world.pass_time(CHECK_MS)
    assert 0 < world.kept < 4000
    # Where the slices have been already, and where they have yet to come by.
    world.commit({0: 7}, "group-0", name="large-0")
    world.commit({999: 8}, "group-0", name="large-3")
    world.pass_time(1000)
    assert world.committed("group-0") == {("large-0", 0): 7, ("large-3", 999): 8}
    assert "group-0" in world.listed()
    assert GROUP_TOMBSTONE not in world.log


def test_what_a_member_subscribes_to_between_two_slices_stays() -> None:
    world = LargeWorld(offsets_retention_minutes=1)
    world.fill(1, 4, 1000, commit_ms=1)
    world.pass_time(CHECK_MS)
    assert 1000 < world.kept < 4000
    world.member("group-0", topics=("large-3",))
    world.pass_time(1000)
    assert {name for name, _ in world.committed("group-0")} == {"large-3"}
    assert len(world.committed("group-0")) == 1000


@pytest.fixture(params=["deleted", "created again", "deleted while away"])
def half_gone(request: pytest.FixtureRequest) -> Iterator[LargeWorld]:
    """A world in which some offsets of a topic that was deleted are still to be removed."""
    world = LargeWorld()
    world.fill(20, 1, 1000)
    world.commit({0: 6}, "group-0", name="bills")
    after = image_of(BILLS, topic("large-0", 1000, 77)) if request.param == "created again" else image_of(BILLS)
    if request.param == "deleted while away":
        world.image = after
        world.restart()
    else:
        world.see(after)
    assert 1 < world.kept < 20_000
    yield world
    assert max(world.steps) <= MOST_RECORDS


def test_offsets_of_a_deleted_topic_go_in_slices_and_none_is_seen_any_more(half_gone: LargeWorld) -> None:
    world = half_gone
    world.see(image_of(BILLS, topic("large-0", 1000, 78)))
    assert world.kept > 1
    assert world.committed("group-0") == {("bills", 0): 6}
    assert all(world.committed(f"group-{number}") == {} for number in range(1, 20))
    # What is committed for the new topic is not what is to be removed.
    world.commit({999: 9}, "group-19", name="large-0")
    world.pass_time(1000)
    assert world.kept == 2
    assert world.committed("group-19") == {("large-0", 999): 9}


def test_the_removal_of_offsets_goes_on_after_a_restart(half_gone: LargeWorld) -> None:
    world = half_gone
    world.restart()
    assert world.kept > 1
    world.pass_time(1000)
    assert world.kept == 1


def test_a_group_is_deleted_with_offsets_that_are_still_to_be_removed(half_gone: LargeWorld) -> None:
    world = half_gone
    steps = len(world.steps)
    assert world.delete("group-19") == [0]
    del world.steps[steps]
    world.restart()
    assert "group-19" not in world.listed()


def test_shards_do_not_go_on_with_long_work_at_the_same_moment() -> None:
    turns = Turns()
    deadlines = []
    for _ in range(5):
        world = LargeWorld()
        world.fill(10, 1, 1000)
        shard = GroupShard(world.config, image_of(BILLS), SimChance("shard"), turns)
        for key, value in world.log:
            shard.replay(key, value)
        assert shard.loaded(world.now_ms).records
        deadlines.append(shard.next_deadline_ms)
    assert len(set(deadlines)) == 5


def test_a_new_topic_does_not_get_offsets_that_do_not_say_which_topic_they_are_for() -> None:
    world = LargeWorld()
    world.fill(20, 1, 1000)
    # A retention time makes for a record that does not say which topic it is for.
    world.commit({999: 5}, "group-19", name="large-0", version=3, retention_ms=WEEK_MS)
    world.see(image_of(BILLS))
    world.see(image_of(BILLS, topic("large-0", 1000, 77)))
    assert world.kept > 10_000
    assert world.committed("group-19") == {}
    world.commit({998: 6}, "group-19", name="large-0", version=3, retention_ms=WEEK_MS)
    world.pass_time(1000)
    assert world.committed("group-19") == {("large-0", 998): 6}
    assert world.kept == 1


def test_all_of_many_groups_are_told_of_a_topic_that_has_grown_a_slice_at_a_time() -> None:
    world = LargeWorld()
    for number in range(450):
        world.consumer_heartbeat("m", 0, group=f"group-{number}")
    written = len(world.log)
    world.see(image_of(BILLS, topic("orders", 6, number=1)))
    first = len(world.log) - written
    assert 0 < first < 450
    # Another change on the heels of the first is no second round for those who were not told yet.
    world.see(image_of(BILLS, topic("orders", 7, number=1), topic("new", 1, number=9)))
    world.pass_time(1000)
    assert len(world.log) == written + first + 450


def test_a_change_is_not_forgotten_over_one_that_comes_before_all_are_told() -> None:
    world = LargeWorld()
    for number in range(450):
        world.consumer_heartbeat("m", 0, group=f"group-{number}")
    written = len(world.log)
    grown = image_of(BILLS, topic("orders", 6, number=1))
    world.see(grown)
    world.see(grown.with_topic(topic("new", 1, number=9)))
    world.pass_time(1000)
    assert len(world.log) == written + 450


def test_groups_with_many_subscriptions_are_told_in_smaller_slices() -> None:
    world = LargeWorld()
    names = tuple(f"topic-{number}" for number in range(200))
    world.image = image_of(*(topic(name, 1, 10 + number) for number, name in enumerate(names)))
    world.restart()
    for number in range(100):
        for member in range(3):
            world.consumer_heartbeat(f"m{member}", 0, group=f"group-{number}", topics=names)
    world.steps = []
    world.see(world.image.with_topic(topic("topic-7", 2, 17)))
    assert 0 < world.steps[0] <= 60
    world.pass_time(1000)
    assert sum(world.steps) == 100


def test_only_groups_that_may_read_a_changed_topic_look_at_theirs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = LargeWorld()
    world.consumer_heartbeat("m", 0, group="of orders")
    world.consumer_heartbeat("m", 0, group="of bills", topics=("bills",))
    world.consumer_heartbeat("m", 0, group="of what comes", topics=("later", "bills"))
    told: list[str] = []

    def noted(group: ConsumerGroup, now_ms: int) -> Outcome:
        told.append(group.group_id)
        return Outcome()

    monkeypatch.setattr(ConsumerGroup, "topics_changed", noted)
    world.see(world.image.with_topic(topic("others", 1, 9)))
    assert told == []
    world.see(world.image.with_topic(topic("orders", 5, 1)))
    assert told == ["of orders"]
    world.see(world.image.with_topic(topic("later", 1, 10)))
    assert told == ["of orders", "of what comes"]
    world.see(world.image.without_topic("bills"))
    assert told == ["of orders", "of what comes", "of bills", "of what comes"]


def test_a_subscription_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = encode_versioned(ConsumerProtocolSubscription(topics=["orders"]), 1)
    reads = []

    def counted(*arguments: object, **how: object) -> object:
        reads.append(arguments)
        return decode_versioned(*arguments, **how)  # type: ignore[arg-type]

    monkeypatch.setattr("ottla.coordinator.group.classic.member.decode_versioned", counted)
    for said, topics in ((metadata, {"orders"}), (b"?", None)):
        member = Member("m", None, "c", "/h", 1, 1, {"range": said})
        reads.clear()
        assert [member.topics(), member.topics()] == [topics, topics]
        assert len(reads) == 1
