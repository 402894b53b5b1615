"""What is handed out when one of several partitions cannot be read."""

import asyncio

import pytest

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
