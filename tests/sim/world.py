"""A broker's logs in a simulated machine that stops again and again, and clients that remember everything."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from math import log2
from typing import Any, Final, NamedTuple

from ottla.broker.broker import Broker
from ottla.broker.handle import delete_records, produce
from ottla.broker.logs import Logs
from ottla.broker.request import Request
from ottla.broker.upkeep import FLUSH_CHECK_MS, Upkeep
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.config.broker import BrokerConfig
from ottla.meta.catalog import Catalog
from ottla.meta.memory import open_memory
from ottla.metrics.clients import ClientCounters
from ottla.net.serving import ANONYMOUS
from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.sim import HaltedError, SimChance, SimClock, SimDisk, SimLoop
from ottla.wire.api.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.errors import ErrorCode
from tests.sim.history import History, Sent

NODE_ID: Final = 1
TOPIC: Final = "orders"
PARTITIONS: Final = 2
WRITERS: Final = 3
HANDOVERS_MS: Final = 100
"""What the executor may add to an interval."""


class Policy(NamedTuple):
    """A flush policy by its configs, and what it promises."""

    configs: Mapping[str, str]
    survives_after_ms: int | None
    """How long after its acknowledgement a record survives a power cut; None if that is not promised."""


POLICIES: Final = {
    "every-message": Policy({"flush.messages": "1"}, 0),
    "interval": Policy({"flush.ms": "300"}, 300 + FLUSH_CHECK_MS + HANDOVERS_MS),
    "none": Policy({}, None),
}


class Outcome(NamedTuple):
    """What a run has seen."""

    power_cuts: int = 0
    kills: int = 0
    clean_stops: int = 0
    acknowledged: int = 0
    lost: int = 0
    """Acknowledged records that a power cut took, as the policy allows."""
    compacted: int = 0
    """Records that compaction had taken when the machine started again."""


class _Caller:
    peer = "simulated"
    host = "simulated"
    principal = ANONYMOUS
    listener = "PLAINTEXT"
    security_protocol = "PLAINTEXT"
    client: ClientCounters | None = None
    context: Any = None
    interrupt: Callable[[], object] | None = None

    @property
    def identity(self) -> dict[str, str | None]:
        return {"address": self.peer, "principal": self.principal, "client_id": None}


class Writer:
    """A producer of one partition, idempotent or not, with one request at a time."""

    def __init__(self, history: History, producer_id: int, key_count: int = 0) -> None:
        self.history = history
        self.key_count = key_count
        """How many keys the records have, some of which are deleted now and then; 0 if they have none."""
        self.producer_id = producer_id
        self.epoch = 0 if producer_id >= 0 else -1
        self.sequence = 0
        self.number = 0
        self.pending: Sent | None = None
        self.has_lost = False
        """Whether acknowledged batches of its were lost, so that the broker may find a gap in its sequence."""

    def next_batch(self, chance: SimChance, now_ms: int) -> Sent:
        """The batch to send now: the last one again if there was no answer to it."""
        if self.pending is None or self.producer_id < 0:
            count = chance.choice((1, 1, 2, 5))
            values: tuple[bytes | None, ...] = tuple(
                b"%s/%d/%d/" % (self.history.name.encode(), self.producer_id, self.number + each)
                + bytes(chance.choice((0, 10, 200, 600)))
                for each in range(count)
            )
            keys: tuple[bytes | None, ...] = ()
            if self.key_count:
                keys = tuple(b"key %d" % chance.randrange(self.key_count) for _ in values)
                values = tuple(None if chance.random() < 0.2 else value for value in values)
            self.number += count
            sequence = self.sequence if self.producer_id >= 0 else -1
            self.pending = Sent(values, self.producer_id, self.epoch, sequence, now_ms, keys=keys)
        return self.pending

    def answered(self, sent: Sent, now_ms: int) -> None:
        """The batch is acknowledged."""
        sent.acknowledged_ms = now_ms
        self.pending = None
        self.sequence += len(sent.values)

    def begin_epoch(self) -> None:
        """Start the sequence anew, as producers do that find theirs broken."""
        assert self.pending is not None
        self.epoch += 1
        self.sequence = 0
        self.has_lost = False
        old = self.pending
        self.pending = Sent(old.values, self.producer_id, self.epoch, 0, old.timestamp, keys=old.keys)


class World:
    """One machine, from its first start through many stops."""

    def __init__(self, policy: str, seed: int) -> None:
        self.chance = SimChance(f"{policy} {seed}")
        self.policy = POLICIES[policy]
        self.disk = SimDisk()
        self.now_s = 1_700_000_000.0
        self.leader_epoch = -1
        chance = self.chance
        self.configs = {
            "segment.bytes": str(chance.choice((3_500, 6_000, 20_000))),
            "segment.ms": chance.choice(("500", "2000", "604800000")),
            "segment.jitter.ms": chance.choice(("0", "300")),
            "preallocate": chance.choice(("false", "true")),
            "index.interval.bytes": chance.choice(("0", "500", "4096")),
            "file.delete.delay.ms": chance.choice(("0", "1000", "60000")),
            "retention.bytes": chance.choice(("-1", "-1", "10000", "1")),
            "retention.ms": chance.choice(("-1", "-1", "3000", "200")),
            **self.policy.configs,
        }
        self.deletes = chance.random() < 0.5
        self.topic_id = chance.uuid()
        self.most_operations = 2**7.5
        """Changes and syncs of the disk before the power goes, or the process is killed."""
        self.histories = [History(f"{TOPIC}-{index}") for index in range(PARTITIONS)]
        self._hire_writers()
        self.outcome = Outcome()
        self.started_ms = 0
        self.verified = False
        self.required: list[int] = [0] * PARTITIONS
        self.all_of_it = False
        self.loop: SimLoop
        self.broker: Broker

    def _hire_writers(self, key_count: int = 0) -> None:
        self.writers = [
            Writer(history, -1 if number == 0 else 1000 + number, key_count)
            for history in self.histories
            for number in range(WRITERS)
        ]

    def run(self, stops: int) -> Outcome:
        """Start, work and stop so many times, and start once more to see what is there."""
        for _ in range(stops):
            self._boot(self.chance.choice(("power cut", "power cut", "power cut", "kill", "clean stop")))
        self._boot("kill")
        return self.outcome

    def _boot(self, ending: str) -> None:
        chance = self.chance
        disk = self.disk
        if ending != "clean stop":
            disk.operations_left = int(2 ** chance.uniform(1, log2(self.most_operations)))
        self.loop = SimLoop(chance, now_s=self.now_s, halts=lambda: disk.is_out)
        self.verified = False
        with suppress(HaltedError):
            self.loop.run_until_complete(self._life(ending, chance.uniform(0.1, 3.0)))
        assert not self.loop.unhandled, self.loop.unhandled
        if self.verified:
            self._note_starts()
        self.loop.close()
        self.now_s = self.loop.time()
        self._end(ending)

    async def _life(self, ending: str, life_s: float) -> None:
        await self._start()
        upkeep = Upkeep(self.broker)
        upkeep.start()
        work = [asyncio.create_task(self._write(writer)) for writer in self.writers]
        if self.deletes:
            work.append(asyncio.create_task(self._delete_records()))
        if self.chance.random() < 0.4:
            # A quiet time, in which only upkeep is at work.
            await asyncio.sleep(self.chance.choice((0, self.chance.uniform(0, life_s))))
            await self._stop_writing(work)
        await asyncio.sleep(life_s)
        for task in work:
            if task.done() and not task.cancelled():
                task.result()
        if ending != "clean stop":
            return
        await self._stop_writing(work)
        await upkeep.stop()
        self._note_starts()
        await self.broker.logs.close()

    @staticmethod
    async def _stop_writing(work: list[asyncio.Task[None]]) -> None:
        for task in work:
            task.cancel()
        for outcome in await asyncio.gather(*work, return_exceptions=True):
            if not isinstance(outcome, asyncio.CancelledError):
                assert isinstance(outcome, BaseException)
                raise outcome

    async def _start(self) -> None:
        self.leader_epoch += 1
        clock = SimClock(self.loop)
        self.started_ms = clock.now_ms()
        settings = {"log.retention.check.interval.ms": self.chance.choice(("70", "700"))}
        config = BrokerConfig({**settings, "log.cleaner.backoff.ms": "100"})
        catalog = await Catalog.open(open_memory().connect(), self.chance)
        partitions = tuple(
            PartitionImage(index, NODE_ID, self.leader_epoch, (NODE_ID,), (NODE_ID,)) for index in range(PARTITIONS)
        )
        image = ClusterImage("simulated", NODE_ID).with_broker(BrokerImage(NODE_ID, {}))
        image = image.with_topics(TopicImage(TOPIC, self.topic_id, partitions, self.configs))
        logs = Logs(self.disk, clock, config, self.chance)
        self.broker = Broker(config, image, catalog, logs, disk=self.disk, clock=clock, chance=self.chance)
        await logs.recover(image)
        for index, history in enumerate(self.histories):
            log = self.broker.leader(TOPIC, index).log
            lost = history.recovered(log, self.required[index], all_of_it=self.all_of_it)
            self._count(compacted=history.compacted)
            for sent in lost:
                if sent.acknowledged_ms is not None:
                    self._count(lost=len(sent.values))
                for writer in self.writers:
                    if writer.history is history and writer.producer_id == sent.producer_id:
                        writer.has_lost |= sent.acknowledged_ms is not None
        self.verified = True

    # Clients.

    async def _write(self, writer: Writer) -> None:
        index = self.histories.index(writer.history)
        pause_s = self.chance.choice((0.01, 0.05, 0.3))
        while True:
            await asyncio.sleep(self.chance.expovariate(1 / pause_s))
            await self._produce(writer, index)

    async def _produce(self, writer: Writer, index: int) -> None:
        history, clock = writer.history, self.broker.clock
        sent = writer.next_batch(self.chance, clock.now_ms())
        partition = self.broker.leader(TOPIC, index)
        known, earlier = sent, sent.base_offset
        if earlier is not None:
            # It may be stored once more if the log has forgotten it.
            sent = writer.pending = replace(sent)
        sent.leader_epoch = self.leader_epoch
        history.place(sent, partition.log.end_offset)
        answer: Any = produce.handle(self.broker, Request(0, 9, "simulated", _Caller(), _request(index, sent)))
        if partition.log.end_offset != history.end:
            history.stored.pop()
            sent = writer.pending = known
        if inspect.isawaitable(answer):
            answer = await answer
        result = answer.responses[0].partition_responses[0]
        if result.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            history.check(writer.has_lost, f"{result.error_message}, and nothing was lost")
            writer.begin_epoch()
            return
        history.check(result.error_code == 0, f"{ErrorCode(result.error_code).name}: {result.error_message}")
        if earlier is not None and writer.producer_id >= 0 and earlier >= partition.log.start_offset:
            history.check(result.base_offset == earlier, f"stored at {earlier}, and again at {result.base_offset}")
        history.check(
            sent.base_offset == result.base_offset, f"acknowledged at {result.base_offset}, is at {sent.base_offset}"
        )
        writer.answered(sent, clock.now_ms())
        self._count(acknowledged=len(sent.values))

    async def _delete_records(self) -> None:
        while True:
            await asyncio.sleep(self.chance.expovariate(1.0))
            index = self.chance.randrange(PARTITIONS)
            log = self.broker.leader(TOPIC, index).log
            offset = self.chance.choice((-1, self.chance.randint(log.start_offset, log.end_offset)))
            asked = DeleteRecordsPartition(partition_index=index, offset=offset)
            body = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=[asked])])
            answer: Any = delete_records.handle(self.broker, Request(21, 2, "simulated", _Caller(), body))
            result = (await answer).topics[0].partitions[0]
            assert result.error_code == 0, ErrorCode(result.error_code)
            assert offset <= result.low_watermark <= log.start_offset
            self.histories[index].deleted_before(result.low_watermark)

    # Stops.

    def _note_starts(self) -> None:
        for index, history in enumerate(self.histories):
            partition = self.broker.logs.partitions.get((TOPIC, index))
            if partition is not None:
                history.begins(partition.log)

    def _end(self, ending: str) -> None:
        now_ms = int(self.now_s * 1000)
        if ending == "clean stop":
            self._count(clean_stops=1)
            for history in self.histories:
                history.durable_end = max(history.durable_end, history.end)
            self.required = [history.durable_end for history in self.histories]
            self.all_of_it = True
            if self.chance.random() < 0.5:
                self._cut_power()
            return
        if ending == "kill":
            self._count(kills=1)
            self.disk = self.disk.kill()
            self.all_of_it = self.verified or self.all_of_it
            return
        promised = [self._promised_end(history, now_ms) for history in self.histories]
        self.required = [max(both) for both in zip(self.required, promised, strict=True)]
        self.all_of_it = False
        self._cut_power()

    def _promised_end(self, history: History, now_ms: int) -> int:
        after_ms = self.policy.survives_after_ms
        end = history.durable_end
        if after_ms is None:
            return end
        for sent in history.stored:
            if sent.acknowledged_ms is not None and (
                after_ms == 0 or (self.verified and now_ms - max(sent.acknowledged_ms, self.started_ms) >= after_ms)
            ):
                end = max(end, sent.next_offset)
        return end

    def _cut_power(self) -> None:
        self._count(power_cuts=1)
        self.disk = self.disk.power_cut(self.chance)

    def _count(self, **more: int) -> None:
        counted = self.outcome._asdict()
        self.outcome = Outcome(**{name: count + more.get(name, 0) for name, count in counted.items()})


def _request(index: int, sent: Sent) -> ProduceRequest:
    batch = build_batch(
        [
            Record(number, sent.timestamp, sent.keys[number] if sent.keys else None, value)
            for number, value in enumerate(sent.values)
        ],
        producer_id=sent.producer_id,
        producer_epoch=sent.producer_epoch,
        base_sequence=sent.sequence,
    )
    data = PartitionProduceData(index=index, records=batch)
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])])
