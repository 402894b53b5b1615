"""What a member of the classic protocol makes of its coordinator's answers."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.client.errors import CommitFailedError, FencedInstanceIdError, InconsistentGroupProtocolError
from ottla.client.types import TopicPartition
from ottla.wire.errors import ErrorCode
from tests.waiting import eventually

from .fake_group import FIND_COORDINATOR, HEARTBEAT, JOIN, LEAVE, OFFSET_COMMIT, SYNC, FakeGroup, Member

Story = Callable[[FakeGroup, Member], Coroutine[Any, Any, None]]


def tell(story: Story, broker: FakeGroup | None = None, **options: Any) -> tuple[FakeGroup, Member]:
    """Run a story with a member that reads `orders`, and give what is left of both."""
    told: list[Member] = []

    async def run(broker: FakeGroup) -> None:
        async with Member(broker.bootstrap, **options) as member:
            told.append(member)
            member.subscription.subscribe(["orders"])
            await eventually(lambda: member.partitions == [0, 1] or member.errors, lambda: member.events)
            await story(broker, member)
        assert len(asyncio.all_tasks()) == 1, "tasks were left behind"

    with broker or FakeGroup() as fake:
        asyncio.run(run(fake))
        return fake, told[0]


async def nothing(broker: FakeGroup, member: Member) -> None:
    assert member.errors == []


def test_it_joins_with_the_id_that_it_is_given_and_leaves_under_it() -> None:
    broker, member = tell(nothing)
    assert [request.member_id for request in broker.seen[JOIN]] == ["", "member-1"]
    assert [one.member_id for one in broker.seen[LEAVE][0].members] == ["member-1"]
    assert member.events == [("assigned", [0, 1]), ("revoked", [0, 1])]


@pytest.mark.parametrize("newest", [0, 1, 2, 3, 5, 7, 9])
def test_it_joins_brokers_of_all_ages(newest: int) -> None:
    broker, _ = tell(
        nothing, FakeGroup({JOIN: newest, SYNC: min(newest, 5), HEARTBEAT: min(newest, 4), LEAVE: min(newest, 5)})
    )
    assert ("JoinGroup", newest) in broker.requests
    assert len(broker.seen[LEAVE]) == 1


def test_a_static_member_does_not_leave() -> None:
    broker, _ = tell(nothing, group_instance_id="shelf-7")
    assert broker.seen[JOIN][0].group_instance_id == "shelf-7"
    assert broker.seen[LEAVE] == []


def test_a_static_member_of_a_broker_that_knows_none_is_told_so() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        await eventually(lambda: member.group.failure)
        assert "leave group_instance_id away" in str(member.group.failure)

    tell(story, FakeGroup({JOIN: 4}), group_instance_id="shelf-7")


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ],
)
@pytest.mark.parametrize("key", [JOIN, SYNC])
def test_what_can_pass_on_the_way_in_is_tried_again(key: int, code: ErrorCode) -> None:
    broker = FakeGroup()
    broker.failures[key] = [code, code]
    tell(nothing, broker)
    assert broker.failures[key] == []


def test_the_coordinator_is_looked_for_again_when_it_has_moved() -> None:
    broker = FakeGroup()
    broker.failures[JOIN] = [ErrorCode.NOT_COORDINATOR]
    broker.failures[FIND_COORDINATOR] = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    tell(nothing, broker)
    assert [name for name, _ in broker.requests].count("FindCoordinator") == 4


def test_a_call_to_rebalance_is_followed_once() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        # The second call comes while the first is followed, and is about the same rebalance.
        broker.failures[HEARTBEAT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        await eventually(lambda: len(member.events) == 3)
        assert member.events[1:] == [("revoked", [0, 1]), ("assigned", [0, 1])]
        beats = len(broker.seen[HEARTBEAT])
        await eventually(lambda: len(broker.seen[HEARTBEAT]) > beats + 3)
        assert broker.generation == 2

    tell(story)


def test_a_cooperative_member_keeps_its_partitions_in_a_rebalance() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        before = dict(member.subscription.assigned)
        broker.failures[HEARTBEAT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        await eventually(lambda: len(member.events) == 2)
        assert member.events[1:] == [("assigned", [])]
        assert member.subscription.assigned == before

    tell(story, partition_assignment_strategy=["cooperative-sticky"])


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_member_that_was_forgotten_has_lost_its_partitions_and_joins_again(code: ErrorCode) -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[HEARTBEAT] = [code]
        await eventually(lambda: len(member.events) == 3)
        assert member.events[1:] == [("lost", [0, 1]), ("assigned", [0, 1])]

    broker, _ = tell(story)
    # A member that is not known gets another id; one that is late may keep the one it has.
    assert broker.seen[JOIN][2].member_id == ("" if code is ErrorCode.UNKNOWN_MEMBER_ID else "member-1")


def test_heartbeats_that_fail_cost_nothing_while_the_session_lasts() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[HEARTBEAT] = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        await eventually(lambda: not broker.failures[HEARTBEAT])
        beats = len(broker.seen[HEARTBEAT])
        await eventually(lambda: len(broker.seen[HEARTBEAT]) > beats)
        assert member.events == [("assigned", [0, 1])]

    tell(story)


def test_partitions_are_lost_when_the_coordinator_is_silent_for_the_session() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[HEARTBEAT] = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 1000
        await eventually(lambda: ("lost", [0, 1]) in member.events)
        broker.failures[HEARTBEAT].clear()
        await eventually(lambda: member.partitions == [0, 1])

    tell(story, session_timeout_ms=300)


def test_a_fenced_instance_is_out_for_good_and_the_user_knows() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[HEARTBEAT] = [ErrorCode.FENCED_INSTANCE_ID]
        await eventually(lambda: member.partitions == [])
        assert isinstance(member.group.failure, FencedInstanceIdError)
        assert member.errors == [member.group.failure]
        assert member.events[-1] == ("lost", [0, 1])

    tell(story, group_instance_id="shelf-7")


def test_a_member_that_has_no_assignor_in_common_with_others_is_told_so() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        assert isinstance(member.group.failure, InconsistentGroupProtocolError)

    broker = FakeGroup()
    broker.failures[JOIN] = [ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
    tell(story, broker)


def test_after_a_failure_a_new_subscription_joins_anew() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.create("payments")
        member.subscription.subscribe(["orders", "payments"])
        await eventually(lambda: len(member.subscription.assigned) == 3)
        assert member.group.failure is None

    broker = FakeGroup()
    broker.failures[JOIN] = [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    tell(story, broker)


def test_an_assignor_that_fails_is_the_users_to_know() -> None:
    class Careless:
        name = "careless"

        def assign(self, members: Any, partition_counts: Any) -> Any:
            return {member_id: {} for member_id in members}

    async def story(broker: FakeGroup, member: Member) -> None:
        assert isinstance(member.group.failure, ValueError)
        assert "careless" in str(member.group.failure)
        # Others need not wait for its session to end.
        await eventually(lambda: broker.seen[LEAVE])

    tell(story, partition_assignment_strategy=[Careless()])


def test_a_leader_notices_that_a_topic_has_more_partitions() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.topics["orders"].logs.append([])
        await eventually(lambda: member.partitions == [0, 1, 2])

    tell(story, metadata_max_age_ms=50)


def test_a_topic_that_comes_later_is_found() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        member.subscription.subscribe(["orders", "payments"])
        await eventually(lambda: broker.generation == 2)
        broker.create("payments")
        await eventually(lambda: TopicPartition("payments", 0) in member.subscription.assigned)

    tell(story)


def test_a_pattern_follows_the_topics_that_match_it() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.create("orders-eu")
        broker.create("other-orders")
        member.subscription.subscribe(pattern="^orders")
        await eventually(lambda: TopicPartition("orders-eu", 0) in member.subscription.assigned)
        assert member.subscription.matched == {"orders", "orders-eu"}
        broker.create("orders-us")
        await eventually(lambda: TopicPartition("orders-us", 0) in member.subscription.assigned)
        assert len(member.subscription.assigned) == 4

    tell(story, metadata_max_age_ms=50)


def test_positions_are_committed_before_partitions_go_and_at_the_end() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        member.read_up_to(5)
        broker.failures[HEARTBEAT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        await eventually(lambda: len(member.events) == 3)
        assert broker.offsets == {TopicPartition("orders", 0): (5, ""), TopicPartition("orders", 1): (5, "")}
        assert broker.seen[OFFSET_COMMIT][0].generation_id_or_member_epoch == 1
        member.read_up_to(7)

    broker, _ = tell(story)
    assert set(broker.offsets.values()) == {(7, "")}
    assert broker.seen[OFFSET_COMMIT][-1].generation_id_or_member_epoch == 2


def test_nothing_is_committed_by_itself_if_the_user_wants_to_do_it() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        member.read_up_to(5)
        broker.failures[HEARTBEAT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        await eventually(lambda: len(member.events) == 3)
        member.read_up_to(7)

    broker, _ = tell(story, enable_auto_commit=False)
    assert broker.offsets == {}


def test_unsubscribing_commits_tells_the_listener_and_leaves() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        member.read_up_to(5)
        member.subscription.unsubscribe()
        assert member.partitions == []
        await eventually(lambda: broker.seen[LEAVE])
        assert set(broker.offsets.values()) == {(5, "")}
        assert member.events[-1] == ("revoked", [0, 1])
        member.subscription.subscribe(["orders"])
        await eventually(lambda: member.partitions == [0, 1])

    tell(story)


def test_who_does_not_come_for_records_leaves_until_he_does() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        await eventually(lambda: broker.seen[LEAVE])
        await eventually(lambda: member.partitions == [])
        assert member.events[-1] == ("lost", [0, 1])
        with pytest.raises(CommitFailedError, match="max_poll_interval_ms"):
            await member.group.commit({TopicPartition("orders", 0): 1})
        member.subscription.calls_waiting = 1
        member.group.came_back()
        await eventually(lambda: member.partitions == [0, 1])

    tell(story, max_poll_interval_ms=200)


def test_who_waits_for_records_is_not_missed() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        member.subscription.calls_waiting = 1
        beats = len(broker.seen[HEARTBEAT])
        await eventually(lambda: len(broker.seen[HEARTBEAT]) > beats + 75)
        assert member.events == [("assigned", [0, 1])]

    tell(story, max_poll_interval_ms=1_000, heartbeat_interval_ms=20)


def test_a_listener_may_take_its_time_while_heartbeats_go_on() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        go_on = asyncio.Event()

        class Slow:
            async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
                await go_on.wait()

            def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
                raise RuntimeError("not today")

        member.group.listener = Slow()
        broker.failures[HEARTBEAT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        await eventually(lambda: not broker.failures[HEARTBEAT])
        beats = len(broker.seen[HEARTBEAT])
        await eventually(lambda: len(broker.seen[HEARTBEAT]) > beats + 3)
        assert broker.generation == 1
        go_on.set()
        await eventually(lambda: member.errors)
        assert str(member.errors[0]) == "not today"
        # It is the user's to know, but no reason to stop reading.
        await eventually(lambda: member.partitions == [0, 1])
        assert broker.generation == 2

    tell(story)


def test_a_listener_can_commit_while_the_group_rebalances() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        class Careful:
            async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
                await member.group.commit(dict.fromkeys(revoked, 9))

            def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
                pass

        member.group.listener = Careful()
        broker.failures[HEARTBEAT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        await eventually(lambda: broker.generation == 2)
        assert set(broker.offsets.values()) == {(9, "")}

    tell(story, enable_auto_commit=False)


def test_closing_takes_no_long_time_when_the_coordinator_is_gone() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        member.read_up_to(5)
        broker.failures[OFFSET_COMMIT] = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 10_000
        broker.failures[LEAVE] = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        started = asyncio.get_running_loop().time()
        await member.group.close()
        assert asyncio.get_running_loop().time() - started < 12

    tell(story, request_timeout_ms=500)


def test_who_stops_before_he_knows_his_id_waits_for_it_and_leaves() -> None:
    async def run(broker: FakeGroup) -> None:
        async with Member(broker.bootstrap) as member:
            member.subscription.subscribe(["orders"])
            await eventually(lambda: broker.seen[JOIN])
        assert broker.seen[LEAVE][0].members[0].member_id == "member-1", "or the group waits for it in vain"

    with FakeGroup() as broker:
        broker.delays_ms[JOIN] = 200
        asyncio.run(run(broker))


def test_the_last_commit_is_made_under_the_generation_that_is_on_its_way() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        member.read_up_to(5)
        broker.delays_ms[JOIN] = 200
        broker.failures[HEARTBEAT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        await eventually(lambda: broker.generation == 2)
        broker.failures[OFFSET_COMMIT] = [ErrorCode.ILLEGAL_GENERATION]

    broker, _ = tell(story, partition_assignment_strategy=["cooperative-sticky"])
    assert [one.generation_id_or_member_epoch for one in broker.seen[OFFSET_COMMIT]] == [1, 2]
    assert set(broker.offsets.values()) == {(5, "")}


def test_a_commit_that_meets_a_rebalance_is_made_when_it_is_over() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[OFFSET_COMMIT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        broker.failures[HEARTBEAT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        await member.group.commit({TopicPartition("orders", 0): 3})
        assert broker.offsets == {TopicPartition("orders", 0): (3, "")}

    tell(story, partition_assignment_strategy=["cooperative-sticky"], enable_auto_commit=False)


def test_a_commit_of_partitions_that_a_rebalance_took_fails() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[OFFSET_COMMIT] = [ErrorCode.ILLEGAL_GENERATION]
        with pytest.raises(CommitFailedError, match="moved on without this member"):
            await member.group.commit({TopicPartition("orders", 0): 3})
        assert ("lost", [0, 1]) in member.events
        assert broker.offsets == {}

    tell(story, enable_auto_commit=False)


def test_partitions_are_lost_too_when_a_rebalance_cannot_be_followed_for_the_session() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[JOIN] = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 1000
        broker.failures[HEARTBEAT] = [ErrorCode.REBALANCE_IN_PROGRESS]
        await eventually(lambda: ("lost", [0, 1]) in member.events)
        broker.failures[JOIN].clear()
        await eventually(lambda: member.partitions == [0, 1])

    tell(story, session_timeout_ms=300, partition_assignment_strategy=["cooperative-sticky"])
