"""Batches and deliveries: what is told to whom."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ottla.client.errors import MessageSizeTooLargeError
from ottla.client.producer.accumulator import PartitionQueue
from ottla.client.producer.batch import Delivery, PendingBatch, Rows, renumbered
from ottla.client.producer.idempotence import Identity
from ottla.client.types import CREATE_TIME, LOG_APPEND_TIME, RecordMetadata, TopicPartition
from ottla.record import Batch, BatchBuilder, Codec, records


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 10))


def batch_of(count: int, codec: Codec = Codec.NONE) -> PendingBatch:
    queue = PartitionQueue(TopicPartition("t", 3), 1000, idempotent=True)
    builder = BatchBuilder(codec)
    for number in range(count):
        builder.append(1000 + number, None, b"%d" % number, [("h", b"v")])
    return PendingBatch(queue, builder, serial=1, deadline=0.0, charged=101)


def test_a_delivery_tells_offset_and_whose_time_it_is() -> None:
    async def story() -> None:
        batch = batch_of(3)
        delivery = Delivery(batch, 2, 1002)
        assert not delivery.done()
        with pytest.raises(asyncio.InvalidStateError):
            delivery.result()
        batch.settle(None, 40)
        assert await delivery == RecordMetadata("t", 3, 42, 1002, CREATE_TIME)
        stamped = batch_of(3)
        stamped.settle(None, 40, append_time=9999)
        assert Delivery(stamped, 0, 1000).result() == RecordMetadata("t", 3, 40, 9999, LOG_APPEND_TIME)
        unacknowledged = batch_of(3)
        unacknowledged.settle(None)
        assert Delivery(unacknowledged, 2, 1002).result().offset == -1

    run(story())


def test_several_may_wait_and_one_who_leaves_does_not_disturb_the_others() -> None:
    async def story() -> None:
        batch = batch_of(1)
        delivery = Delivery(batch, 0, 1000)

        async def wait() -> int:
            return (await delivery).offset

        first, second = asyncio.ensure_future(wait()), asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        batch.settle(None, 7)
        assert await second == 7
        assert first.cancelled()
        assert list(await asyncio.gather(delivery, delivery)) == [delivery.result()] * 2
        assert await asyncio.wait_for(delivery, 1) == delivery.result()

    run(story())


def test_a_failure_counts_as_noticed_record_by_record() -> None:
    async def story() -> None:
        batch = batch_of(3)
        waiting = asyncio.ensure_future(_await(Delivery(batch, 0, 0)))
        gone = asyncio.ensure_future(_await(Delivery(batch, 1, 0)))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        batch.settle(MessageSizeTooLargeError("t-3"))
        with pytest.raises(MessageSizeTooLargeError):
            await waiting
        assert not batch.is_noticed
        assert isinstance(Delivery(batch, 1, 0).exception(), MessageSizeTooLargeError)
        assert not batch.is_noticed
        Rows(batch, 2, 1).notice()
        Rows(batch, 2, 1).notice()
        assert batch.is_noticed

    run(story())


async def _await(delivery: Delivery) -> Any:
    return await delivery


def test_callbacks_are_called_by_the_loop_also_if_it_is_done_already() -> None:
    async def story() -> None:
        batch = batch_of(1)
        delivery = Delivery(batch, 0, 0)
        told: list[str] = []
        delivery.add_done_callback(lambda one: told.append(f"before {one.done()}"))
        batch.settle(None, 0)
        delivery.add_done_callback(lambda one: told.append(f"after {one.done()}"))
        assert told == []
        await asyncio.sleep(0)
        assert sorted(told) == ["after True", "before True"]

    run(story())


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_another_identity_can_be_written_into_a_sealed_batch(codec: Codec) -> None:
    batch = batch_of(5, codec)
    data = batch.seal(Identity(7, 1), 100)
    changed = Batch(renumbered(data, Identity(8, 0), 0))
    changed.validate()
    assert (changed.producer_id, changed.producer_epoch, changed.base_sequence) == (8, 0, 0)
    assert records(changed) == records(Batch(data))
    assert batch.seal(Identity(8, 0), 0) == bytes(changed.data), "it is sealed again the same way"


def test_halves_keep_numbers_waiters_notices_and_memory() -> None:
    async def story() -> None:
        batch = batch_of(5, Codec.LZ4)
        batch.seal(Identity(7, 1), 100)
        deliveries = [Delivery(batch, index, 1000 + index) for index in range(5)]
        waiting = [asyncio.ensure_future(_await(delivery)) for delivery in deliveries[:4]]
        Rows(batch, 1, 4).notice()
        await asyncio.sleep(0)
        left, right = batch.split()
        quarter, rest = right.split()
        assert [(half.count, half.sequence, half.first) for half in (left, quarter, rest)] == [
            (2, 100, 0),
            (1, 102, 2),
            (2, 103, 3),
        ]
        assert left.charged + quarter.charged + rest.charged == 101
        for half, base_offset in ((rest, 20), (left, 5), (quarter, 10)):
            assert half.data is not None
            Batch(half.data).validate()
            half.settle(None, base_offset)
        assert [metadata.offset for metadata in await asyncio.gather(*waiting)] == [5, 6, 10, 20]
        assert deliveries[4].result().offset == 21
        assert [(rows.batch, rows.first, rows.length) for rows in Rows(batch, 1, 3).leaves()] == [
            (left, 1, 1),
            (quarter, 0, 1),
            (rest, 0, 1),
        ]
        assert quarter.is_noticed
        assert rest.is_noticed

    run(story())
