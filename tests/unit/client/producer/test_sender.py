"""The sender against a cluster that is only imagined: order, numbers, retries, deadlines."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ottla.client.errors import (
    ClientClosedError,
    DeliveryTimedOutError,
    InvalidRecordError,
    MessageSizeTooLargeError,
    UnknownProducerIdError,
)
from ottla.client.picture import Leader
from ottla.client.producer.batch import Delivery
from ottla.client.producer.idempotence import Identity
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.sender import Sender
from ottla.net import RequestTimedOutError
from ottla.ports import Chance
from ottla.record import Batch, records
from ottla.sim import SimChance, SimLoop
from ottla.wire.api.produce import BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, ProduceRequest
from ottla.wire.errors import ErrorCode, KafkaError

from .imagined import PARTITION, TOPIC, ImaginedCluster, ImaginedConnection, refusal


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 30))


class Stage:
    """A sender, its imagined cluster, and a way to send."""

    def __init__(
        self, *, idempotent: bool = True, partitions: int = 1, chance: Chance | None = None, **options: Any
    ) -> None:
        settings = {"retry_backoff_ms": 0, "retry_backoff_max_ms": 0, **options}
        self.options = ProducerOptions(enable_idempotence=idempotent, **settings)
        self.cluster = ImaginedCluster(self.options, partitions=partitions, chance=chance)
        self.sender = Sender(self.cluster, self.options)
        self.accumulator = self.sender.accumulator
        self.accumulator.idempotent = idempotent
        self.sender.identity = Identity(100, 0)

    def send(self, *values: bytes, partition: int = 0) -> list[Delivery]:
        """A batch of these records, closed."""
        queue = self.accumulator.queue(PARTITION._replace(partition=partition))
        builder = self.accumulator.new_builder()
        for number, value in enumerate(values):
            builder.append(1000 + number, None, value)
        size = self.accumulator.size_of(builder, queue.partition)
        assert self.accumulator.memory.take(size)
        batch = self.accumulator.begin(queue, builder, size)
        queue.close()
        return [Delivery(batch, number, 1000 + number) for number in range(len(values))]

    async def outcomes(self, deliveries: list[Delivery]) -> list[KafkaError | None]:
        await self.accumulator.settled()
        return [delivery.exception() for delivery in deliveries]


Answer = asyncio.Future[Any]


def test_batches_of_a_partition_are_pipelined_and_stay_in_order() -> None:
    async def story() -> None:
        stage = Stage()
        pending: list[tuple[ProduceRequest, Answer]] = []
        await stage.send(b"first")[0]
        stage.cluster.answer = lambda connection, request, answer: pending.append((request, answer))
        deliveries = [stage.send(b"%d" % number)[0] for number in range(8)]
        while len(pending) < 5:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(pending) == 5, "a broker remembers five batches, so no more may be under way"
        while pending:
            request, answer = pending.pop(0)
            answer.set_result(stage.cluster.write(request))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert [(await delivery).offset for delivery in deliveries] == list(range(1, 9))
        assert stage.cluster.values() == [b"first", *[b"%d" % number for number in range(8)]]

    run(story())


def test_a_broker_that_does_not_know_the_producer_gets_its_first_batch_alone() -> None:
    async def story() -> None:
        stage = Stage()
        refusals = iter([True])

        def answer(connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
            if next(refusals, False):
                reply.set_result(refusal(request, ErrorCode.NOT_ENOUGH_REPLICAS))
            else:
                # It would take any number for the first of a producer that is new to it.
                reply.set_result(stage.cluster.write(request))

        stage.cluster.answer = answer
        assert await stage.outcomes(stage.send(b"a") + stage.send(b"b")) == [None, None]
        assert stage.cluster.values() == [b"a", b"b"]

    run(story())


def test_without_numbers_one_batch_of_a_partition_is_under_way_at_a_time() -> None:
    async def story() -> None:
        stage = Stage(idempotent=False, partitions=2)
        under_way = {0: 0, 1: 0}
        most = {0: 0, 1: 0}

        def answer(connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
            places = [part.index for part in request.topic_data[0].partition_data]
            for place in places:
                under_way[place] += 1
                most[place] = max(most[place], under_way[place])

            def done() -> None:
                for place in places:
                    under_way[place] -= 1
                reply.set_result(stage.cluster.write(request))

            asyncio.get_running_loop().call_later(0.001, done)

        stage.cluster.answer = answer
        for number in range(10):
            stage.send(b"%d" % number, partition=number % 2)
        await stage.accumulator.settled()
        assert most == {0: 1, 1: 1}
        assert stage.cluster.values(1) == [b"1", b"3", b"5", b"7", b"9"]

    run(story())


def test_a_batch_that_has_to_be_sent_again_is_not_overtaken() -> None:
    async def story() -> None:
        stage = Stage()
        seen: list[tuple[int, int]] = []
        await stage.send(b"first")[0]

        def answer(connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
            batch = Batch(bytes(request.topic_data[0].partition_data[0].records or b""))
            seen.append((batch.producer_epoch, batch.base_sequence))
            first = len(seen) == 1
            reply.set_result(refusal(request, ErrorCode.NOT_ENOUGH_REPLICAS) if first else stage.cluster.write(request))

        stage.cluster.answer = answer
        deliveries = [stage.send(b"%d" % number)[0] for number in range(4)]
        assert await stage.outcomes(deliveries) == [None] * 4
        assert stage.cluster.values() == [b"first", b"0", b"1", b"2", b"3"]
        # The three behind it are refused, and all four come again with the numbers they had.
        assert seen == [(0, number) for number in (1, 2, 3, 4, 1, 2, 3, 4)]

    run(story())


def test_only_the_partition_in_trouble_waits() -> None:
    async def story() -> None:
        stage = Stage(partitions=2, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000)

        def answer(connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
            response = stage.cluster.write(request)
            for result in response.responses[0].partition_responses:
                if result.index == 0:
                    result.error_code = ErrorCode.NOT_ENOUGH_REPLICAS
            reply.set_result(response)

        stage.cluster.answer = answer
        (stuck,) = stage.send(b"a", partition=0)
        for _ in range(3):
            (free,) = stage.send(b"b", partition=1)
            await free
        assert not stuck.done()
        await stage.sender.close(ClientClosedError("enough"))

    run(story())


def test_a_lost_reply_is_no_second_copy() -> None:
    async def story() -> None:
        stage = Stage()
        cuts = iter([True, False, False])

        def answer(connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
            response = stage.cluster.write(request)
            if next(cuts, False):
                connection.cut()
            else:
                reply.set_result(response)

        stage.cluster.answer = answer
        (delivery,) = stage.send(b"once")
        assert (await delivery).offset == 0
        assert stage.cluster.values() == [b"once"]

    run(story())


def test_records_behind_one_that_is_refused_for_good_are_written_in_a_new_epoch() -> None:
    async def story() -> None:
        stage = Stage()
        epochs: list[int] = []

        def answer(connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
            data = bytes(request.topic_data[0].partition_data[0].records or b"")
            epochs.append(Batch(data).producer_epoch)
            if b"bad" in data:
                response = refusal(request, ErrorCode.INVALID_RECORD, "no key")
                result = response.responses[0].partition_responses[0]
                result.record_errors = [BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="bad one")]
                reply.set_result(response)
            else:
                reply.set_result(stage.cluster.write(request))

        stage.cluster.answer = answer
        good = stage.send(b"1")
        await good[0]
        bad = stage.send(b"2", b"bad")
        more = stage.send(b"3") + stage.send(b"4")
        outcomes = await stage.outcomes([*good, *bad, *more])
        assert outcomes[0] is None
        assert isinstance(outcomes[1], InvalidRecordError)
        assert "t-0: no key; record 1 of the batch: bad one" in outcomes[1].message
        assert outcomes[3:] == [None, None]
        assert stage.cluster.values() == [b"1", b"3", b"4"]
        assert epochs == [0, 0, 0, 0, 1, 1], "those behind it were under way when it was refused"

    run(story())


@pytest.mark.parametrize("was_written", [True, False])
def test_after_a_batch_of_unknown_outcome_timed_out_the_next_is_not_stuck(was_written: bool) -> None:
    async def story() -> None:
        stage = Stage(delivery_timeout_ms=50)
        hold = True

        def answer(connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
            if not hold or was_written:
                response = stage.cluster.write(request)
            if not hold:
                reply.set_result(response)

        stage.cluster.answer = answer
        (late,) = stage.send(b"late")
        with pytest.raises(DeliveryTimedOutError, match=r"1 records to t-0 .* may have been written"):
            await late
        hold = False
        (after,) = stage.send(b"after")
        connection: Any = await stage.cluster.broker(1)
        connection.cut()
        await after
        assert stage.cluster.values() == ([b"late"] if was_written else []) + [b"after"]

    run(story())


def test_a_batch_that_is_too_large_is_sent_in_halves_with_its_own_numbers() -> None:
    async def story() -> None:
        stage = Stage()
        counts: list[tuple[int, int]] = []

        def answer(connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
            batch = Batch(bytes(request.topic_data[0].partition_data[0].records or b""))
            counts.append((batch.base_sequence, batch.count))
            too_large = batch.count > 2
            reply.set_result(
                refusal(request, ErrorCode.MESSAGE_TOO_LARGE) if too_large else stage.cluster.write(request)
            )

        await stage.send(b"first")[0]
        stage.cluster.answer = answer
        deliveries = stage.send(*[b"%d" % number for number in range(7)])
        waiting = asyncio.ensure_future(_gather(deliveries))
        assert [metadata.offset for metadata in await waiting] == list(range(1, 8))
        assert [delivery.result().timestamp for delivery in deliveries] == list(range(1000, 1007))
        assert stage.cluster.values() == [b"first", *[b"%d" % number for number in range(7)]]
        assert counts[:3] == [(1, 7), (1, 3), (4, 4)]
        assert stage.accumulator.memory.free == stage.options.buffer_memory
        queue = stage.accumulator.queue(PARTITION)
        assert queue.batch_size < stage.options.batch_size, "the next batches are made smaller"

    run(story())


async def _gather(deliveries: list[Delivery]) -> list[Any]:
    return await asyncio.gather(*deliveries)


def test_one_record_that_is_too_large_fails() -> None:
    async def story() -> None:
        stage = Stage()
        stage.cluster.answer = lambda connection, request, reply: reply.set_result(
            refusal(request, ErrorCode.MESSAGE_TOO_LARGE)
        )
        (error,) = await stage.outcomes(stage.send(b"large"))
        assert isinstance(error, MessageSizeTooLargeError)

    run(story())


def test_a_producer_that_the_broker_has_forgotten_begins_anew_unless_that_might_write_twice() -> None:
    async def story(doubtful: bool) -> None:
        stage = Stage()
        calls = 0

        def answer(connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
            nonlocal calls
            calls += 1
            if calls == 1 and doubtful:
                reply.set_result(refusal(request, ErrorCode.REQUEST_TIMED_OUT))
            elif calls == (2 if doubtful else 1):
                reply.set_result(refusal(request, ErrorCode.UNKNOWN_PRODUCER_ID))
            else:
                reply.set_result(stage.cluster.write(request))

        stage.cluster.answer = answer
        (error,) = await stage.outcomes(stage.send(b"v"))
        assert isinstance(error, UnknownProducerIdError) if doubtful else error is None
        assert await stage.outcomes(stage.send(b"w")) == [None]
        assert stage.cluster.values() == ([b"w"] if doubtful else [b"v", b"w"])

    run(story(doubtful=False))
    run(story(doubtful=True))


def test_an_identity_that_is_not_taken_any_more_is_replaced_by_another() -> None:
    async def story() -> None:
        stage = Stage()
        seen: list[int] = []

        def answer(connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
            seen.append(Batch(bytes(request.topic_data[0].partition_data[0].records or b"")).producer_id)
            fenced = seen[-1] == 100
            reply.set_result(
                refusal(request, ErrorCode.INVALID_PRODUCER_EPOCH) if fenced else stage.cluster.write(request)
            )

        stage.cluster.answer = answer
        assert await stage.outcomes(stage.send(b"a") + stage.send(b"b")) == [None, None]
        assert stage.cluster.values() == [b"a", b"b"]
        assert stage.cluster.identities == 1
        assert set(seen) == {100, 1}

    run(story())


def test_a_new_leader_that_a_refusal_names_is_used_at_once() -> None:
    async def story() -> None:
        stage = Stage(retry_backoff_ms=60_000, retry_backoff_max_ms=60_000)
        asked = 0

        def answer(connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
            nonlocal asked
            asked += 1
            if asked > 1:
                reply.set_result(stage.cluster.write(request))
                return
            response = refusal(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            result = response.responses[0].partition_responses[0]
            result.current_leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=5)
            response.node_endpoints = [NodeEndpoint(node_id=2, host="elsewhere", port=1)]
            reply.set_result(response)

        stage.cluster.answer = answer
        assert await stage.outcomes(stage.send(b"v")) == [None]
        assert stage.cluster.picture.leader(PARTITION) == Leader(2, 5)

    run(story())


class Resting(ImaginedConnection):
    """A connection to a broker that wants to be left alone, for good."""

    is_quiet = True
    asked = 0

    async def quiet(self, timeout_s: float) -> None:
        assert timeout_s < 10
        self.asked += 1
        await asyncio.sleep(0.01)


def test_what_waits_for_a_broker_that_wants_to_be_left_alone_goes_to_its_new_leader() -> None:
    async def story() -> None:
        stage = Stage(partitions=2)
        stage.cluster._connection = resting = Resting(stage.cluster)
        moves, stays = stage.send(b"moves")[0], stage.send(b"stays", partition=1)[0]
        while resting.asked < 2:
            await asyncio.sleep(0)
        stage.cluster._connection = ImaginedConnection(stage.cluster)
        stage.cluster.picture.topics[TOPIC].leaders[0] = Leader(2, 1)
        await moves
        assert stage.cluster.values() == [b"moves"]
        assert not stays.done()
        await stage.sender.close(ClientClosedError("over"))

    run(story())


class Pausing(ImaginedConnection):
    """A connection to a broker that asks for a long pause just as it is about to be told something."""

    told = 0

    async def tell(self, message: ProduceRequest, *, version: int) -> None:
        self.told += 1
        if self.told == 1:
            raise RequestTimedOutError("it wants to be left alone")
        self._cluster.write(message)


def test_what_could_not_be_told_for_a_pause_is_told_later() -> None:
    async def story() -> None:
        stage = Stage(idempotent=False, acks=0)
        stage.cluster._connection = Pausing(stage.cluster)
        assert await stage.outcomes(stage.send(b"a") + stage.send(b"b")) == [None, None]
        assert stage.cluster.values() == [b"a", b"b"]

    run(story())


def test_what_is_not_acknowledged_in_time_fails_with_the_last_error() -> None:
    async def story() -> None:
        stage = Stage(delivery_timeout_ms=30)
        stage.cluster.answer = lambda connection, request, reply: reply.set_result(
            refusal(request, ErrorCode.NOT_ENOUGH_REPLICAS, "1 of 2 in sync")
        )
        (error,) = await stage.outcomes(stage.send(b"v"))
        assert isinstance(error, DeliveryTimedOutError)
        assert "1 of 2 in sync" in error.message
        assert stage.accumulator.memory.free == stage.options.buffer_memory

    run(story())


def test_a_reply_that_leaves_a_partition_out_is_no_acknowledgement() -> None:
    async def story() -> None:
        stage = Stage()
        answered = 0

        def answer(connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
            nonlocal answered
            answered += 1
            response = stage.cluster.write(request)
            if answered == 1:
                response.responses.clear()
            reply.set_result(response)

        stage.cluster.answer = answer
        assert await stage.outcomes(stage.send(b"v")) == [None]
        assert answered == 2
        assert stage.cluster.values() == [b"v"]

    run(story())


class Storm:
    """An imagined broker that does whatever chance wants: cuts, refuses, writes and does not say so, is late.

    With `ghosts` it also writes, some time later, what came over a connection that was cut.
    """

    PASSING = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT)
    FINAL = (ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE)

    def __init__(self, stage: Stage, chance: SimChance, *, ghosts: bool) -> None:
        self._stage = stage
        self._chance = chance
        self._ghosts = ghosts
        self._errors = self.PASSING if ghosts else (*self.PASSING, *self.FINAL)
        self.trace: list[tuple[object, ...]] = []

    def answer(self, connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
        # Some are overtaken by those behind them.
        delay_s = self._chance.uniform(0, 0.002) if not self._ghosts and self._chance.random() < 0.1 else 0
        asyncio.get_running_loop().call_later(delay_s, self._decide, connection, request, reply)

    def _decide(self, connection: ImaginedConnection, request: ProduceRequest, reply: Answer) -> None:
        if reply.done():
            if self._ghosts:
                asyncio.get_running_loop().call_later(
                    self._chance.uniform(0, 0.004), self._stage.cluster.write, request
                )
            return
        fate = self._chance.random()
        batch = Batch(bytes(request.topic_data[0].partition_data[0].records or b""))
        about = (round(asyncio.get_running_loop().time(), 4), records(batch)[0].value, batch.count)
        numbers = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
        response = (
            refusal(request, self._chance.choice(self._errors)) if fate < 0.25 else self._stage.cluster.write(request)
        )
        result = response.responses[0].partition_responses[0]
        self.trace.append((*about, numbers, ErrorCode(result.error_code).name, result.base_offset, round(fate, 2)))
        if fate < 0.08 or 0.25 <= fate < 0.33:
            connection.cut()
        elif 0.33 <= fate < 0.4 and not result.error_code:
            reply.set_result(refusal(request, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
        else:
            reply.set_result(response)


@pytest.mark.parametrize("ghosts", [False, True], ids=["refusals", "ghosts"])
@pytest.mark.parametrize("seed", range(150))
def test_whatever_happens_numbered_records_are_written_once_and_in_order(seed: int, ghosts: bool) -> None:
    chance = SimChance(seed)

    async def story() -> None:
        timeout_ms = 20_000 if ghosts else chance.choice([20, 20_000])
        stage = Stage(delivery_timeout_ms=timeout_ms, chance=chance)
        storm = Storm(stage, chance, ghosts=ghosts)
        stage.cluster.answer = storm.answer
        sent: list[tuple[bytes, Delivery]] = []
        for number in range(60):
            values = [b"%d-%d" % (number, part) for part in range(chance.randint(1, 4))]
            sent += zip(values, stage.send(*values), strict=True)
            if chance.random() < 0.5:
                await asyncio.sleep(chance.choice([0, 0.001]))
        await stage.accumulator.settled()
        await asyncio.sleep(1)
        written = stage.cluster.values()
        happened = "\n".join(map(str, storm.trace))
        assert len(set(written)) == len(written), f"a record was written twice:\n{happened}"
        order = {value: place for place, (value, _) in enumerate(sent)}
        places = [order[value] for value in written if value is not None]
        assert places == sorted(places), f"records were written out of order:\n{happened}"
        for value, delivery in sent:
            if delivery.exception() is None:
                assert written[delivery.result().offset] == value, happened
        assert stage.accumulator.memory.free == stage.options.buffer_memory
        await stage.sender.close(ClientClosedError("the end"))

    loop = SimLoop(chance)
    try:
        loop.run_until_complete(story())
    finally:
        loop.close()
