"""What a member of the consumer protocol tells its coordinator, and makes of its answers."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.client.errors import UnreleasedInstanceIdError, UnsupportedAssignorError, UnsupportedVersionError
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode
from tests.waiting import eventually

from .fake_group import MODERN, OFFSET_COMMIT, OFFSET_FETCH, FakeGroup, Member

Story = Callable[[FakeGroup, Member], Coroutine[Any, Any, None]]


def tell(story: Story, broker: FakeGroup | None = None, **options: Any) -> tuple[FakeGroup, Member]:
    """Run a story with a member that reads `orders`, and give what is left of both."""
    told: list[Member] = []

    async def run(broker: FakeGroup) -> None:
        async with Member(broker.bootstrap, group_protocol="consumer", **options) as member:
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


def owned(request: Any) -> list[int] | None:
    """The partitions that a heartbeat says the member has."""
    if request.topic_partitions is None:
        return None
    return [index for topic in request.topic_partitions for index in topic.partitions]


def test_the_first_heartbeat_says_everything_and_the_others_what_changed() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        await eventually(lambda: len(broker.seen[MODERN]) >= 4)
        first, second, third, *_ = broker.seen[MODERN]
        assert (first.member_epoch, first.subscribed_topic_names, owned(first)) == (0, ["orders"], [])
        assert (first.rebalance_timeout_ms, first.server_assignor) == (300_000, "range")
        assert (second.member_epoch, second.subscribed_topic_names, owned(second)) == (1, None, [0, 1])
        assert (second.rebalance_timeout_ms, second.server_assignor) == (-1, None)
        assert (third.subscribed_topic_names, owned(third)) == (None, None)
        assert first.member_id == second.member_id
        assert len(first.member_id) == 22

    broker, member = tell(story, group_remote_assignor="range")
    assert broker.seen[MODERN][-1].member_epoch == -1
    assert member.events == [("assigned", [0, 1]), ("revoked", [0, 1])]


def test_a_broker_that_gives_out_ids_is_listened_to() -> None:
    broker, _ = tell(nothing, FakeGroup({MODERN: 0}))
    assert broker.seen[MODERN][0].member_id == ""
    assert broker.seen[MODERN][1].member_id == "given-by-broker"


def test_a_static_member_says_that_it_will_be_back() -> None:
    broker, _ = tell(nothing, group_instance_id="shelf-7")
    assert {request.instance_id for request in broker.seen[MODERN]} == {"shelf-7"}
    assert broker.seen[MODERN][-1].member_epoch == -2


def test_partitions_are_given_up_before_that_is_acknowledged() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        member.read_up_to(5)
        before = member.subscription.assigned[TopicPartition("orders", 0)]
        broker.target = [0]
        await eventually(lambda: member.partitions == [0])
        assert member.events[-1] == ("revoked", [1])
        assert broker.offsets == {TopicPartition("orders", 1): (5, "")}
        await eventually(lambda: [0] in map(owned, broker.seen[MODERN]))
        heard = len(broker.seen[MODERN])
        broker.target = [0, 1]
        await eventually(lambda: [0, 1] in map(owned, broker.seen[MODERN][heard:]))
        assert member.events[-1] == ("assigned", [1])
        assert member.subscription.assigned[TopicPartition("orders", 0)] is before, "it stayed all the while"

    tell(story)


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_has_lost_its_partitions_and_joins_again(code: ErrorCode) -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[MODERN] = [code]
        await eventually(lambda: len(member.events) == 3)
        assert member.events[1:] == [("lost", [0, 1]), ("assigned", [0, 1])]
        joins = [request for request in broker.seen[MODERN] if request.member_epoch == 0]
        assert [(one.subscribed_topic_names, owned(one)) for one in joins] == [(["orders"], [])] * 2

    tell(story)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.UNRELEASED_INSTANCE_ID, UnreleasedInstanceIdError),
        (ErrorCode.UNSUPPORTED_ASSIGNOR, UnsupportedAssignorError),
    ],
)
def test_what_cannot_be_mended_is_the_users_to_know(code: ErrorCode, kind: type[Exception]) -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        assert isinstance(member.group.failure, kind)
        assert member.errors == [member.group.failure]

    broker = FakeGroup()
    broker.failures[MODERN] = [code]
    tell(story, broker)


def test_a_broker_without_the_protocol_is_named_and_what_to_do() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        assert isinstance(member.group.failure, UnsupportedVersionError)
        assert "use 'classic'" in str(member.group.failure)

    tell(story, FakeGroup({MODERN: -1}))


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE],
)
def test_a_heartbeat_that_was_not_heard_is_sent_again_in_full(code: ErrorCode) -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        count = len(broker.seen[MODERN])
        broker.failures[MODERN] = [code]
        await eventually(lambda: not broker.failures[MODERN])
        await eventually(lambda: len(broker.seen[MODERN]) > count + 2)
        assert member.events == [("assigned", [0, 1])]
        full = [one for one in broker.seen[MODERN][count:] if one.subscribed_topic_names is not None]
        assert [(one.member_epoch, owned(one)) for one in full] == [(1, [0, 1])]

    tell(story)


def test_partitions_are_lost_when_the_coordinator_is_silent_for_the_session() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[MODERN] = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 1000
        await eventually(lambda: ("lost", [0, 1]) in member.events)
        broker.failures[MODERN].clear()
        await eventually(lambda: member.partitions == [0, 1])

    tell(story, session_timeout_ms=300)


def test_a_new_subscription_is_told_at_once() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        member.subscription.subscribe(["orders", "payments"])
        await eventually(lambda: broker.seen[MODERN][-1].subscribed_topic_names == ["orders", "payments"])

    tell(story)


def test_a_pattern_is_left_to_the_broker() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        member.subscription.subscribe(pattern="^ord")
        await eventually(lambda: "(?:^ord).*" in [one.subscribed_topic_regex for one in broker.seen[MODERN]])
        member.subscription.subscribe(["orders"])
        await eventually(lambda: broker.seen[MODERN][-1].subscribed_topic_regex == "")

    tell(story)


@pytest.mark.parametrize("newest", [0, 1])
def test_a_pattern_that_the_broker_does_not_take_is_matched_here(newest: int) -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.create("ordinary")
        broker.create("others")
        # Right after a heartbeat, so that the failure meets the one with the pattern.
        beats = len(broker.seen[MODERN])
        await eventually(lambda: len(broker.seen[MODERN]) > beats)
        broker.failures[MODERN] = [ErrorCode.INVALID_REGULAR_EXPRESSION] if newest else []
        member.subscription.subscribe(pattern="ord(?!x)")
        await eventually(lambda: broker.seen[MODERN][-1].subscribed_topic_names == ["orders", "ordinary"])
        broker.create("ordeal")
        await eventually(
            lambda: ["ordeal", "orders", "ordinary"] in [one.subscribed_topic_names for one in broker.seen[MODERN]]
        )
        assert member.errors == []

    tell(story, FakeGroup({MODERN: newest}), metadata_max_age_ms=50)


def test_positions_are_committed_and_read_under_the_members_epoch() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        place = TopicPartition("orders", 0)
        await member.group.commit({place: 3})
        assert await member.group.committed([place]) == {place: OffsetAndMetadata(3)}
        (commit,), (fetch,) = broker.seen[OFFSET_COMMIT], broker.seen[OFFSET_FETCH]
        member_id = broker.seen[MODERN][0].member_id
        assert (commit.member_id, commit.generation_id_or_member_epoch) == (member_id, 1)
        assert (fetch.groups[0].member_id, fetch.groups[0].member_epoch) == (member_id, 1)

    tell(story, enable_auto_commit=False)


def test_a_commit_under_an_old_epoch_is_tried_again_under_the_new_one() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        place = TopicPartition("orders", 0)
        broker.failures[OFFSET_COMMIT] = [ErrorCode.STALE_MEMBER_EPOCH]
        committing = asyncio.create_task(member.group.commit({place: 3}))
        await eventually(lambda: not broker.failures[OFFSET_COMMIT])
        broker.epoch = 2
        await committing
        assert [one.generation_id_or_member_epoch for one in broker.seen[OFFSET_COMMIT]] == [1, 2]
        assert broker.offsets[place] == (3, "")

    tell(story, enable_auto_commit=False)
