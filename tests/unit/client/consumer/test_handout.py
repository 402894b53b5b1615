"""What is handed out of several partitions: how much at once, and what when one of them cannot be read."""

import asyncio

import pytest

from ottla.client.consumer import arrow
from ottla.client.consumer.arrow import ArrowReader
from ottla.client.consumer.decoding import Decoder
from ottla.client.consumer.handout import Handout
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import Subscription
from ottla.client.errors import CorruptRecordError
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


def test_columns_of_several_partitions_are_taken_in_turns_as_far_as_it_is_not_too_much_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrow, "MOST_BYTES", len(batch(0)))

    async def story() -> None:
        subscription = Subscription()
        subscription.assign_by_user([GOOD, BAD])
        for place in (GOOD, BAD):
            subscription.state(place).seek(0)
            subscription.state(place).chunks.extend(chunk(batch(number)) for number in range(2))
        handout = Handout(subscription, Decoder(), Signal())
        handout.closed = False
        reader = ArrowReader(subscription, handout, check_crcs=True, enough_bytes=2**20)
        found = [(await reader.read((), None, 0.0, ["partition", "offset"])).to_pylist() for _ in range(4)]
        assert found == [[{"partition": place, "offset": offset}] for offset in (0, 1) for place in (0, 1)]

    asyncio.run(story())
