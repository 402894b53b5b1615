"""Committing positions and reading them back, in all versions and through all refusals."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.client.errors import CommitFailedError, KafkaError, TopicAuthorizationFailedError
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode
from tests.waiting import eventually

from .fake_group import OFFSET_COMMIT, OFFSET_FETCH, FakeGroup, Member

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def tell(
    story: Callable[[FakeGroup, Member], Coroutine[Any, Any, None]], broker: FakeGroup | None = None, **options: Any
) -> FakeGroup:
    """Run a story with a consumer that was given its partitions by hand, and is no member."""

    async def run(broker: FakeGroup) -> None:
        async with Member(broker.bootstrap, **options) as member:
            member.subscription.assign_by_user([FIRST, SECOND])
            await member.cluster.metadata(["orders"])
            await story(broker, member)
            assert member.errors == []

    with broker or FakeGroup() as fake:
        asyncio.run(run(fake))
        return fake


@pytest.mark.parametrize("version", range(11))
def test_positions_come_back_in_every_version(version: int) -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        await member.group.commit({FIRST: (17, "a note")})
        assert await member.group.committed([FIRST, SECOND]) == {
            FIRST: OffsetAndMetadata(17, "a note"),
            SECOND: None,
        }
        names = dict(broker.requests)
        assert (names["OffsetCommit"], names["OffsetFetch"]) == (version, version)

    tell(story, FakeGroup({OFFSET_COMMIT: version, OFFSET_FETCH: version}), enable_auto_commit=False)


def test_topics_without_a_known_id_go_by_name() -> None:
    async def run(broker: FakeGroup) -> None:
        async with Member(broker.bootstrap, enable_auto_commit=False) as member:
            member.subscription.assign_by_user([FIRST])
            await member.group.commit({FIRST: 3})
            assert await member.group.committed([FIRST]) == {FIRST: OffsetAndMetadata(3)}

    with FakeGroup() as broker:
        asyncio.run(run(broker))
        assert ("OffsetCommit", 9) in broker.requests
        assert ("OffsetFetch", 9) in broker.requests


@pytest.mark.parametrize("given", [5, (5, ""), (5, None), OffsetAndMetadata(5), OffsetAndMetadata(5, "", 2)])
def test_offsets_may_be_given_in_every_form(given: Any) -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        await member.group.commit({FIRST: given})
        assert broker.offsets == {FIRST: (5, "")}

    tell(story, enable_auto_commit=False)


def test_without_offsets_everything_that_was_handed_out_is_committed() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        member.subscription.state(FIRST).seek(3)
        await member.group.commit()
        assert broker.offsets == {FIRST: (3, "")}

    tell(story, enable_auto_commit=False)


def test_one_who_is_no_member_commits_without_a_generation() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        await member.group.commit({FIRST: 3})
        (request,) = broker.seen[OFFSET_COMMIT]
        assert (request.member_id, request.generation_id_or_member_epoch) == ("", -1)

    tell(story, enable_auto_commit=False)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_what_can_pass_is_tried_again(code: ErrorCode) -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[OFFSET_COMMIT] = [code]
        broker.failures[OFFSET_FETCH] = [code]
        await member.group.commit({FIRST: 3})
        assert await member.group.committed([FIRST]) == {FIRST: OffsetAndMetadata(3)}
        assert len(broker.seen[OFFSET_COMMIT]) == len(broker.seen[OFFSET_FETCH]) == 2

    tell(story, enable_auto_commit=False)


def test_what_cannot_is_raised_at_once() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[OFFSET_COMMIT] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.OFFSET_METADATA_TOO_LARGE]
        with pytest.raises(TopicAuthorizationFailedError, match="orders-0"):
            await member.group.commit({FIRST: 3})
        with pytest.raises(KafkaError, match="OFFSET_METADATA_TOO_LARGE"):
            await member.group.commit({FIRST: 3})

    tell(story, enable_auto_commit=False)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_one_who_is_no_member_of_a_group_with_members_is_told_so(code: ErrorCode) -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[OFFSET_COMMIT] = [code]
        with pytest.raises(
            CommitFailedError, match="is none of them; give one that uses assign\\(\\) a group_id of its own"
        ):
            await member.group.commit({FIRST: 3})

    tell(story, enable_auto_commit=False)


def test_stable_positions_are_waited_for_if_only_committed_records_are_read() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[OFFSET_FETCH] = [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 2
        assert await member.group.committed([FIRST]) == {FIRST: None}
        assert [request.require_stable for request in broker.seen[OFFSET_FETCH]] == [True] * 3

    tell(story, require_stable=True)


def test_finished_positions_are_committed_every_so_often_and_only_if_they_moved() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        member.subscription.state(FIRST).seek(3)
        await eventually(lambda: broker.offsets == {FIRST: (3, "")})
        member.subscription.state(SECOND).seek(4)
        await eventually(lambda: len(broker.offsets) == 2)
        _, second = broker.seen[OFFSET_COMMIT]
        assert [one.partition_index for one in second.topics[0].partitions] == [1]
        member.subscription.state(FIRST).seek(5)

    broker = tell(story, auto_commit_interval_ms=30)
    assert broker.offsets == {FIRST: (5, ""), SECOND: (4, "")}, "the last ones are committed at the end"


def test_a_commit_by_itself_that_fails_is_made_up_for_by_the_next() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[OFFSET_COMMIT] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        member.subscription.state(FIRST).seek(3)
        await eventually(lambda: broker.offsets == {FIRST: (3, "")})

    tell(story, auto_commit_interval_ms=30)


def test_commits_are_kept_in_order() -> None:
    async def story(broker: FakeGroup, member: Member) -> None:
        broker.failures[OFFSET_COMMIT] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        await asyncio.gather(*[member.group.commit({FIRST: offset}) for offset in range(5)])
        assert broker.offsets == {FIRST: (4, "")}

    tell(story, enable_auto_commit=False)
