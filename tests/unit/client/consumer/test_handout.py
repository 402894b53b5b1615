"""What is handed out of several partitions: how much at once, and what when one of them cannot be read."""

import asyncio

import pytest

from ottla.client.consumer import arrow
from ottla.client.consumer.arrow import ArrowReader
from ottla.client.consumer.decoding import Decoder
from ottla.client.consumer.handout import Handout
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import Subscription
from ottla.client.errors import CorruptRecordError, IllegalStateError
from ottla.client.types import TopicPartition

from .fetched import batch, chunk

GOOD, BAD = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize("way", ["records", "columns"])
def test_records_of_one_partition_are_not_lost_when_those_of_the_next_make_no_sense(way: str) -> None:
    async def story() -> None:
        subscription = Subscription()
        subscription.assign_by_user([GOOD, BAD])
        for place in (GOOD, BAD):
            subscription.state(place).seek(0)
        subscription.state(GOOD).chunks.append(chunk(batch(0, 1)))
        subscription.state(BAD).chunks.append(chunk(batch(0, 1)[:-1] + b"\x7e"))
        handout = Handout(subscription, Decoder(), Signal())
        handout.closed = False
        reader = ArrowReader(subscription, handout, check_crcs=True, enough_bytes=2**20)

        async def read() -> int:
            if way == "columns":
                return int((await reader.read((), None, 0.0, ["offset"])).num_rows)
            found = await handout.wait_for(handout.ready_records, (), 0.0)
            return sum(map(len, (found or {}).values()))

        assert await read() == subscription.state(GOOD).position == 2
        with pytest.raises(CorruptRecordError, match="t-1 at offset 0"):
            await read()

    asyncio.run(story())


class Reading:
    """Two partitions of each of which something was fetched, and who reads their offsets as columns."""

    def __init__(self, *, chunks: int) -> None:
        self.subscription = Subscription()
        self.subscription.assign_by_user([GOOD, BAD])
        for place in (GOOD, BAD):
            self.subscription.state(place).seek(0)
            self.subscription.state(place).chunks.extend(chunk(batch(number)) for number in range(chunks))
        self.handout = Handout(self.subscription, Decoder(), Signal())
        self.handout.closed = False
        self.reader = ArrowReader(self.subscription, self.handout, check_crcs=True, enough_bytes=2**20)

    async def rows(self, *partitions: TopicPartition, max_records: int | None = None) -> list[tuple[int, int]]:
        """Partition and offset of what one call gives."""
        table = await self.reader.read(partitions, max_records, 0.0, ["partition", "offset"])
        return [(row["partition"], row["offset"]) for row in table.to_pylist()]


@pytest.mark.parametrize("partitions", [(), (GOOD, BAD)])
def test_columns_of_several_partitions_are_taken_in_turns_until_it_is_enough(
    partitions: tuple[TopicPartition, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "ENOUGH_BYTES", 1)

    async def story() -> None:
        reading = Reading(chunks=2)
        found = [await reading.rows(*partitions) for _ in range(4)]
        assert found == [[(0, 0)], [(1, 0)], [(0, 1)], [(1, 1)]]

    asyncio.run(story())


def test_nothing_of_one_partition_is_taken_when_the_next_is_not_assigned_any_more() -> None:
    async def story() -> None:
        reading = Reading(chunks=1)
        reading.subscription.remove([BAD])
        with pytest.raises(IllegalStateError, match="t-1"):
            reading.handout.ready_records((GOOD, BAD))
        assert reading.subscription.state(GOOD).position == 0
        assert await reading.rows(GOOD) == [(0, 0)]

    asyncio.run(story())


@pytest.mark.parametrize("way", ["records", "columns"])
def test_who_asks_for_some_partitions_leaves_nothing_behind_that_grows(way: str) -> None:
    async def story() -> None:
        reading = Reading(chunks=20)
        for _ in range(10):
            if way == "columns":
                assert len(await reading.rows(GOOD, BAD, max_records=1)) == 1
            else:
                assert reading.handout.ready_record((GOOD, BAD)) is not None
        assert not reading.handout._round

    asyncio.run(story())


def test_rows_of_some_partitions_are_not_waited_for_once_others_take_all_room() -> None:
    async def story() -> None:
        reading = Reading(chunks=1)
        reading.reader._enough_bytes = 2 * len(batch(0))
        reading.subscription.state(GOOD).chunks.append(chunk(batch(1)))
        table = await asyncio.wait_for(reading.reader.read((BAD,), 1000, 600.0, ["offset"]), 60)
        assert table.num_rows == 1

    asyncio.run(story())
