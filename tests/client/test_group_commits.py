"""Positions that consumers commit to their group, and go on from."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.consumer.consumer import Consumer
from ottla.client.errors import CommitFailedError
from ottla.client.types import OffsetAndMetadata, TopicPartition
from tests.peers.fixtures import Broker

from .group_members import KINDS, PATIENCE_S, Member, are_shared, numbered, options_of, produce, until

NewTopic = Callable[..., str]

every_kind = pytest.mark.parametrize("kind", list(KINDS))


def consumer(broker: Broker, *topics: str, **options: Any) -> Consumer:
    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100, **options}
    return Consumer(*topics, bootstrap_servers=broker.bootstrap_servers, **settings)


async def read(reader: Consumer, count: int) -> list[bytes]:
    async with asyncio.timeout(PATIENCE_S):
        return [(await reader.getone()).value for _ in range(count)]


@every_kind
def test_a_consumer_goes_on_where_the_group_has_committed(
    broker: Broker, new_topic: NewTopic, name: str, kind: str
) -> None:
    topic = new_topic()
    place = TopicPartition(topic, 0)
    options = {"group_id": name, "enable_auto_commit": False, **options_of(kind, broker)}
    values = numbered("value", 30)
    forms: list[Callable[[Consumer], Any]] = [
        lambda reader: reader.commit(),
        lambda reader: reader.commit({place: 10}),
        lambda reader: reader.commit({place: (15, "a note")}),
        lambda reader: reader.commit({place: OffsetAndMetadata(20, "another", 0)}),
    ]

    async def story() -> None:
        await produce(broker, topic, values)
        for number, form in enumerate(forms, 1):
            async with consumer(broker, topic, **options) as reader:
                assert await read(reader, 5) == values[(number - 1) * 5 : number * 5]
                await form(reader)
                assert await reader.committed(place) == number * 5
                # What is read after the commit is read again.
                await read(reader, 2)

    asyncio.run(story())


@every_kind
def test_a_record_is_committed_by_itself_once_the_user_is_back_from_it(
    broker: Broker, new_topic: NewTopic, name: str, kind: str
) -> None:
    topic = new_topic()
    place = TopicPartition(topic, 0)
    options = {"group_id": name, "auto_commit_interval_ms": 50, **options_of(kind, broker)}

    async def committed(reader: Consumer, offset: int) -> int | None:
        async def is_committed() -> bool:
            return await reader.committed(place) == offset

        await until(is_committed, lambda: f"a commit of {offset}")
        # Several times the interval, so that a commit that should not be would have been.
        await asyncio.sleep(0.2)
        return await reader.committed(place)

    async def story() -> None:
        await produce(broker, topic, numbered("value", 10))
        async with consumer(broker, topic, **options) as reader:
            await read(reader, 1)
            assert await committed(reader, 0) == 0
            await read(reader, 1)
            assert await committed(reader, 1) == 1
            await reader.getmany(timeout_ms=20_000, max_records=3)
            assert await committed(reader, 2) == 2
            await reader.getmany(timeout_ms=20_000, max_records=1)
            assert await committed(reader, 5) == 5
        async with consumer(broker, topic, **options) as reader:
            assert (await reader.getone()).offset == 6, "the end of a consumer is a way to be back"

    asyncio.run(story())


def test_partitions_that_were_chosen_by_hand_can_be_committed_too(
    broker: Broker, new_topic: NewTopic, name: str
) -> None:
    topic = new_topic(partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def story() -> None:
        await produce(broker, topic, numbered("value", 10), partition=0)
        async with consumer(broker, group_id=name, enable_auto_commit=False) as reader:
            reader.assign([first, second])
            await read(reader, 3)
            await reader.commit({first: 3})
            assert await reader.committed(second) is None
        async with consumer(broker, group_id=name) as reader:
            reader.assign([first])
            assert (await reader.getone()).offset == 3
            assert await reader.seek_to_committed(first) == {first: 3}

    asyncio.run(story())


def test_one_who_chose_his_partitions_cannot_commit_to_a_group_with_members(
    broker: Broker, new_topic: NewTopic, name: str
) -> None:
    topic = new_topic()
    place = TopicPartition(topic, 0)

    async def story() -> None:
        async with Member(broker, topic, group_id=name, **KINDS["eager"]) as member:
            await until(lambda: are_shared([member], 1))
            async with consumer(broker, group_id=name, enable_auto_commit=False) as stranger:
                stranger.assign([place])
                with pytest.raises(CommitFailedError, match="none of them"):
                    await stranger.commit({place: 1})

    asyncio.run(story())


@every_kind
def test_a_partition_that_went_to_another_member_cannot_be_committed(
    broker: Broker, new_topic: NewTopic, name: str, kind: str
) -> None:
    topic = new_topic(partitions=2)
    options = {"group_id": name, **options_of(kind, broker)}

    async def story() -> None:
        async with Member(broker, topic, **options) as first, Member(broker, topic, **options) as second:
            await until(lambda: are_shared([first, second], 2))
            (place,) = second.consumer.assignment()
            with pytest.raises(CommitFailedError, match=f"{place} is not assigned"):
                await first.consumer.commit({place: 1})
            await second.consumer.commit({place: 1})

    asyncio.run(story())


@every_kind
def test_commits_go_on_through_rebalances(broker: Broker, new_topic: NewTopic, name: str, kind: str) -> None:
    """A commit that meets a rebalance is done, or says that the partition may be another's; never anything else."""
    topic = new_topic(partitions=4)
    options = {"group_id": name, "enable_auto_commit": False, **options_of(kind, broker)}
    done, refused = 0, 0

    async def commit_all(member: Member) -> None:
        nonlocal done, refused
        while True:
            places = member.consumer.assignment()
            try:
                await member.consumer.commit(dict.fromkeys(places, 0))
                done += len(places)
            except CommitFailedError:
                refused += 1
            await asyncio.sleep(0)

    async def story() -> None:
        async with Member(broker, topic, **options) as first:
            await until(lambda: are_shared([first], 4))
            committing = asyncio.create_task(commit_all(first))
            for _ in range(3):
                async with Member(broker, topic, **options) as second:
                    members = [first, second]
                    await until(lambda members=members: are_shared(members, 4) or committing.done())  # type: ignore[misc]
                await until(lambda: are_shared([first], 4) or committing.done())
            before = done
            await until(lambda: done > before or committing.done())
            assert not committing.done(), committing.exception()
            committing.cancel()

    asyncio.run(story())
    assert done
