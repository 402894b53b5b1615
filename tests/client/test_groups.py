"""Groups of this client's consumers: they share partitions, whatever happens to a member or to the coordinator."""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from ottla.client.consumer.consumer import Consumer
from ottla.client.errors import FencedInstanceIdError, UnreleasedInstanceIdError
from ottla.client.types import TopicPartition
from tests.peers.fixtures import Broker

from .group_members import KINDS, PATIENCE_S, Member, ProcessMember, are_shared, numbered, options_of, produce, until

NewTopic = Callable[..., str]

every_kind = pytest.mark.parametrize("kind", list(KINDS))


@every_kind
def test_members_come_and_go_and_every_record_is_read_once(
    broker: Broker, new_topic: NewTopic, name: str, kind: str
) -> None:
    topic = new_topic(partitions=6)
    options = {"group_id": name, **options_of(kind, broker)}
    expected: list[bytes] = []
    first, second, third = (Member(broker, topic, **options) for _ in range(3))

    def read() -> Counter[bytes]:
        return first.values + second.values + third.values

    async def write_and_read(batch: str) -> None:
        values = numbered(batch, 60)
        expected.extend(values)
        await produce(broker, topic, values)
        await until(lambda: read() >= Counter(expected), lambda: f"{len(read())} of {len(expected)}")

    async def story() -> None:
        await first.start()
        await until(lambda: are_shared([first], 6))
        await write_and_read("one")
        await second.start()
        await until(lambda: are_shared([first, second], 6), lambda: (first.events, second.events))
        await write_and_read("two")
        await third.start()
        await until(lambda: are_shared([first, second, third], 6))
        await write_and_read("three")
        await first.stop()
        await until(lambda: are_shared([second, third], 6))
        await write_and_read("four")
        await second.stop()
        await until(lambda: are_shared([third], 6))
        await write_and_read("five")
        await third.stop()

    asyncio.run(story())
    assert read() == Counter(expected)


@every_kind
def test_a_rebalance_under_load_reads_no_record_twice(
    broker: Broker, new_topic: NewTopic, name: str, kind: str
) -> None:
    topic = new_topic(partitions=4)
    options = {"group_id": name, **options_of(kind, broker)}

    async def story() -> None:
        values: list[bytes] = []
        enough = asyncio.Event()
        async with Member(broker, topic, **options) as first:
            await until(lambda: are_shared([first], 4))
            writing = asyncio.create_task(produce_until(enough, broker, topic, values))
            await until(lambda: len(first.values) > 200)
            async with Member(broker, topic, **options) as second:
                await until(lambda: are_shared([first, second], 4))
                await until(lambda: len(second.values) > 200)
            # Some more, after the second has left.
            await asyncio.sleep(0.1)
            enough.set()
            await writing
            await until(lambda: len(first.values + second.values) >= len(values), lambda: (first.values, len(values)))
            assert first.values + second.values == Counter(values)

    asyncio.run(story())


async def produce_slowly(broker: Broker, topic: str, values: list[bytes]) -> None:
    for start in range(0, len(values), 100):
        await produce(broker, topic, values[start : start + 100])


async def produce_until(enough: asyncio.Event, broker: Broker, topic: str, values: list[bytes]) -> None:
    """Write a hundred numbered values after another, however long a rebalance takes."""
    while not enough.is_set():
        more = [b"value-%d" % number for number in range(len(values), len(values) + 100)]
        await produce(broker, topic, more)
        values += more


@every_kind
def test_members_in_a_hurry_lose_nothing_and_read_nothing_twice(
    broker: Broker, new_topic: NewTopic, name: str, kind: str
) -> None:
    topic = new_topic(partitions=6)
    options = {"group_id": name, **options_of(kind, broker)}
    chance = Random(5)

    async def story() -> None:
        members: list[Member] = []
        running: list[Member] = []
        values = numbered("value", 2000)
        writing = asyncio.create_task(produce_slowly(broker, topic, values))
        for _ in range(30):
            if len(running) < 2 or (len(running) < 5 and chance.random() < 0.5):
                member = Member(broker, topic, **options)
                members.append(member)
                running.append(await member.start())
            else:
                await running.pop(chance.randrange(len(running))).stop()
            await asyncio.sleep(chance.uniform(0, 0.1))
        await writing

        def read() -> Counter[bytes]:
            return sum((member.values for member in members), Counter())

        await until(lambda: are_shared(running, 6), lambda: [member.partitions for member in running])
        await until(lambda: len(read()) == len(values), lambda: f"{len(read())} of {len(values)}")
        for member in running:
            await member.stop()
        assert read() == Counter(values)

    asyncio.run(story())


@every_kind
def test_partitions_of_a_member_that_was_killed_go_to_the_others(
    broker: Broker, new_topic: NewTopic, name: str, kind: str
) -> None:
    topic = new_topic(partitions=4)
    options = {
        "group_id": name,
        "session_timeout_ms": 2_000,
        "auto_offset_reset": "earliest",
        **options_of(kind, broker),
    }

    async def story() -> None:
        await produce(broker, topic, numbered("first", 40))
        with ProcessMember(topic, bootstrap_servers=broker.bootstrap_servers, **options) as process:
            async with Member(broker, topic, **options) as member:
                await until(lambda: len(member.partitions) == 2)
                process.kill()
                await until(lambda: len(member.partitions) == 4, lambda: member.events)
                values = numbered("second", 40)
                await produce(broker, topic, values)
                await until(lambda: member.values >= Counter(values))

    asyncio.run(story())


@every_kind
def test_a_static_member_that_is_started_anew_gets_its_partitions_back_without_a_rebalance(
    broker: Broker, new_topic: NewTopic, name: str, kind: str
) -> None:
    topic = new_topic(partitions=4)
    options = {"group_id": name, **options_of(kind, broker)}

    async def story() -> None:
        async with Member(broker, topic, **options, group_instance_id="one") as first:
            await until(lambda: are_shared([first], 4))
            second = await Member(broker, topic, **options, group_instance_id="two").start()
            await until(lambda: are_shared([first, second], 4))
            if (
                kind != "modern"
            ):  # each round is told to both, with nothing new in it as well: not only to the second yet
                await until(lambda: first.rounds > second.rounds)
            before, events = second.partitions, list(first.events)
            await second.stop()
            async with Member(broker, topic, **options, group_instance_id="two") as again:
                await until(lambda: again.partitions == before)
                values = numbered("value", 40)
                await produce(broker, topic, values)
                await until(lambda: first.values + again.values == Counter(values))
            assert first.events == events

    asyncio.run(story())


@every_kind
def test_two_members_under_one_instance_id_do_not_go_on_together(
    broker: Broker, new_topic: NewTopic, name: str, kind: str
) -> None:
    topic = new_topic(partitions=2)
    options = {"group_id": name, "group_instance_id": "one", **options_of(kind, broker)}

    async def story() -> None:
        first = await Member(broker, topic, **options).start()
        await until(lambda: are_shared([first], 2))
        second = await Member(broker, topic, **options).start()
        # Who was first is put out by the classic protocol, and who comes second is not let in by the other.
        loser, winner = (second, first) if kind == "modern" else (first, second)
        with pytest.raises((FencedInstanceIdError, UnreleasedInstanceIdError)):
            async with asyncio.timeout(PATIENCE_S):
                await loser.stopped()
        await until(lambda: are_shared([winner], 2))
        await until(lambda: loser.partitions == set())
        # It has nothing any more; that nothing was committed must not look like success.
        with pytest.raises((FencedInstanceIdError, UnreleasedInstanceIdError)):
            await loser.consumer.commit()
        await loser.consumer.stop()
        await winner.stop()

    asyncio.run(story())


def test_a_cooperative_member_reads_on_while_the_group_waits_for_another(
    broker: Broker, new_topic: NewTopic, name: str
) -> None:
    topic = new_topic(partitions=4)
    options = {"group_id": name, **KINDS["cooperative"]}
    go_on = asyncio.Event()

    class Slow(Member):
        async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            await go_on.wait()
            await super().on_partitions_revoked(revoked)

    async def story() -> None:
        async with Member(broker, topic, **options) as first:
            # Or else the slow one may be there first, and have to give up what it was given before.
            await until(lambda: len(first.partitions) == 4)
            async with Slow(broker, topic, **options) as second:
                await until(lambda: are_shared([first, second], 4))
                kept = first.partitions
                async with Member(broker, topic, **options) as third:
                    await until(lambda: not second.consumer.assignment() or len(first.partitions) < 2 or third.events)
                    values = numbered("value", 20)
                    stays = min(first.partitions & kept)
                    await produce(broker, topic, values, partition=stays)
                    await until(lambda: first.values >= Counter(values))
                    go_on.set()
                    await until(lambda: len(first.partitions | second.partitions | third.partitions) == 4)

    asyncio.run(story())


@every_kind
def test_listeners_hear_of_everything_in_order(broker: Broker, new_topic: NewTopic, name: str, kind: str) -> None:
    topic = new_topic(partitions=2)
    options = {"group_id": name, **options_of(kind, broker)}

    async def story() -> list[tuple[str, set[int]]]:
        async with Member(broker, topic, **options) as first:
            await until(lambda: are_shared([first], 2))
            async with Member(broker, topic, **options) as second:
                await until(lambda: are_shared([first, second], 2))
            await until(lambda: are_shared([first], 2))
        return [event for event in first.events if event[1]]

    events = asyncio.run(story())
    kept = 0 if ("revoked", {1}) in events else 1
    other = 1 - kept
    if kind == "eager":
        assert events[0:2] == [("assigned", {0, 1}), ("revoked", {0, 1})]
        assert events[-2:] == [("assigned", {0, 1}), ("revoked", {0, 1})]
        assert [what for what, _ in events] == ["assigned", "revoked"] * (len(events) // 2)
    else:
        assert events == [
            ("assigned", {0, 1}),
            ("revoked", {other}),
            ("assigned", {other}),
            ("revoked", {0, 1}),
        ]


@every_kind
def test_who_works_too_long_on_a_record_loses_his_partitions_until_he_is_back(
    broker: Broker, new_topic: NewTopic, name: str, kind: str
) -> None:
    topic = new_topic(partitions=2)
    options = {"group_id": name, **options_of(kind, broker)}

    async def story() -> None:
        await produce(broker, topic, numbered("value", 20))
        settings: dict[str, Any] = {"auto_offset_reset": "earliest", **options}
        async with Consumer(
            topic, bootstrap_servers=broker.bootstrap_servers, max_poll_interval_ms=1_000, **settings
        ) as slow:
            await slow.getone()
            async with Member(broker, topic, **options) as other:
                await until(lambda: len(other.partitions) == 2, lambda: other.events)
                await until(lambda: slow.assignment() == frozenset())
                await until(lambda: other.values == Counter(numbered("value", 20)))
                # He comes for more, and is in again.
                waiting = asyncio.create_task(slow.getone())
                await until(lambda: len(slow.assignment()) == 1)
                waiting.cancel()

    asyncio.run(story())


@every_kind
def test_records_flow_again_when_the_broker_is_started_anew(
    broker: Broker, new_topic: NewTopic, name: str, kind: str
) -> None:
    topic = new_topic(partitions=4)
    options = {"group_id": name, **options_of(kind, broker)}

    async def story() -> None:
        async with Member(broker, topic, **options) as first, Member(broker, topic, **options) as second:
            await until(lambda: are_shared([first, second], 4))
            before = numbered("before", 40)
            await produce(broker, topic, before)
            await until(lambda: first.values + second.values >= Counter(before))
            await asyncio.to_thread(broker.stop)
            await asyncio.to_thread(broker.start)
            after = numbered("after", 40)
            await produce(broker, topic, after)
            await until(lambda: first.values + second.values >= Counter(before + after))
            await until(lambda: are_shared([first, second], 4), lambda: (first.events, second.events))

    asyncio.run(story())


def test_partitions_are_lost_when_the_coordinator_is_gone_for_longer_than_the_session(
    broker: Broker, new_topic: NewTopic, name: str
) -> None:
    topic = new_topic(partitions=2)
    options = {"group_id": name, "session_timeout_ms": 1_000, **KINDS["eager"]}

    async def story() -> None:
        async with Member(broker, topic, **options) as member:
            await until(lambda: are_shared([member], 2))
            await asyncio.to_thread(broker.stop)
            try:
                await until(lambda: member.events[-1] == ("lost", {0, 1}))
                assert member.partitions == set()
            finally:
                await asyncio.to_thread(broker.start)
            values = numbered("value", 20)
            await produce(broker, topic, values)
            await until(lambda: member.values == Counter(values))

    asyncio.run(story())


@every_kind
def test_a_pattern_finds_topics_that_come_later(broker: Broker, new_topic: NewTopic, name: str, kind: str) -> None:
    first = new_topic(partitions=1)
    options = {"group_id": name, "metadata_max_age_ms": 300, **options_of(kind, broker)}

    async def story() -> None:
        async with Member(broker, **options) as member:
            member.consumer.subscribe(pattern=f"{name}-[0-9]")
            await until(lambda: member.consumer.assignment() == {TopicPartition(first, 0)})
            second = await asyncio.to_thread(new_topic)
            both = {TopicPartition(first, 0), TopicPartition(second, 0)}
            await until(lambda: member.consumer.assignment() == both)
            assert member.consumer.subscription() == {first, second}

    asyncio.run(story())


@every_kind
def test_a_subscription_can_change_and_end(broker: Broker, new_topic: NewTopic, name: str, kind: str) -> None:
    first, second = new_topic(partitions=1), new_topic(partitions=1)
    options = {"group_id": name, **options_of(kind, broker)}

    async def story() -> None:
        async with Member(broker, first, **options) as member:
            await until(lambda: member.consumer.assignment() == {TopicPartition(first, 0)})
            member.consumer.subscribe([second])
            await until(lambda: member.consumer.assignment() == {TopicPartition(second, 0)})
            member.consumer.unsubscribe()
            assert member.consumer.assignment() == frozenset()
            async with Member(broker, second, **options) as other:
                await until(lambda: other.partitions == {0})
            member.consumer.subscribe([first])
            await until(lambda: member.consumer.assignment() == {TopicPartition(first, 0)})

    asyncio.run(story())
