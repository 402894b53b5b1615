"""Logs that nobody uses after a clean start: retention and compaction come to them too, and to no others."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from ottla.broker.broker import Broker
from ottla.broker.cleaner import Cleaner
from ottla.broker.idle import open_idle
from ottla.broker.logs import Logs
from ottla.broker.upkeep import Upkeep
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.config.broker import BrokerConfig
from ottla.config.topic import TopicConfig
from ottla.log.retention import retention_is_due
from ottla.log.state import LogState
from ottla.meta.catalog import Catalog
from ottla.meta.memory import open_memory
from ottla.record.batch import Batch, batches, records
from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.replica.partition import Partition
from ottla.sim import SimChance, SimClock, SimDisk, SimLoop

START_S = 1_700_000_000
HOUR_MS = 3_600_000
PARTITIONS = 4


class Machine:
    """A disk, and a broker that is started on it at a time and stopped cleanly, again and again."""

    def __init__(self, **configs: str) -> None:
        self.disk = SimDisk()
        self.configs = {name.replace("_", "."): value for name, value in configs.items()}

    def run(self, work: Callable[[Broker], Coroutine[Any, Any, None]], *, after_ms: int = 0) -> None:
        loop = SimLoop(SimChance(1), now_s=START_S + after_ms / 1_000)
        loop.run_until_complete(self._life(SimClock(loop), work))
        loop.close()

    async def _life(self, clock: SimClock, work: Callable[[Broker], Coroutine[Any, Any, None]]) -> None:
        chance = SimChance(1)
        config = BrokerConfig({"log.retention.check.interval.ms": "1000", "log.cleaner.backoff.ms": "1000"})
        logs = Logs(self.disk, clock, config)
        image = ClusterImage("cluster", 1).with_topics(self.topic())
        catalog = await Catalog.open(open_memory().connect(), chance)
        broker = Broker(config, image, catalog, logs, disk=self.disk, clock=clock, chance=chance)
        await logs.recover(image)
        await work(broker)
        await logs.close()

    def topic(self, configs: Mapping[str, str] | None = None) -> TopicImage:
        partitions = tuple(PartitionImage(index, 1, 0, (1,), (1,)) for index in range(PARTITIONS))
        return TopicImage("orders", bytes(range(1, 17)), partitions, self.configs if configs is None else configs)


def append(partition: Partition, age_ms: int, count: int = 1, key: bytes | None = None, size: int = 100) -> None:
    for number in range(count):
        record = Record(0, START_S * 1_000 - age_ms, key, b"%d" % number + bytes(size))
        partition.append_own(Batch(bytearray(build_batch([record]))), START_S * 1_000)


async def upkeep(broker: Broker) -> None:
    upkeep = Upkeep(broker)
    upkeep.start()
    await asyncio.sleep(3)
    await upkeep.stop()


def opened(broker: Broker) -> set[int]:
    return {index for _, index in broker.logs.partitions}


def test_records_of_an_idle_log_expire_by_age_and_logs_with_none_stay_closed() -> None:
    machine = Machine(retention_ms=str(HOUR_MS))

    async def write(broker: Broker) -> None:
        append(broker.leader("orders", 0), age_ms=2 * HOUR_MS)
        append(broker.leader("orders", 1), age_ms=0)
        append(broker.leader("orders", 2), age_ms=0)
        broker.leader("orders", 3)

    async def look(broker: Broker) -> None:
        await upkeep(broker)
        assert opened(broker) == {0}
        assert broker.leader("orders", 0).log.start_offset == 1
        assert broker.logs.size_of("orders", 0) == 0
        assert broker.leader("orders", 1).log.start_offset == 0

    async def look_later(broker: Broker) -> None:
        await upkeep(broker)
        assert opened(broker) == {1, 2}
        assert [broker.leader("orders", index).log.start_offset for index in range(3)] == [1, 1, 1]

    machine.run(write)
    machine.run(look)
    machine.run(look_later, after_ms=HOUR_MS + 1)


def test_an_idle_log_that_is_too_large_loses_its_oldest_segments() -> None:
    machine = Machine(segment_bytes="1000", retention_bytes="3000", file_delete_delay_ms="0")

    async def write(broker: Broker) -> None:
        append(broker.leader("orders", 0), age_ms=0, count=10)
        append(broker.leader("orders", 1), age_ms=0, count=50)

    async def look(broker: Broker) -> None:
        await upkeep(broker)
        assert opened(broker) == {1}
        log = broker.leader("orders", 1).log
        assert 2_000 < log.size < 4_000
        assert log.end_offset == 50

    machine.run(write)
    machine.run(look)


def test_a_config_that_is_changed_while_a_log_is_idle_counts() -> None:
    machine = Machine()

    async def write(broker: Broker) -> None:
        append(broker.leader("orders", 0), age_ms=2 * HOUR_MS)

    async def look(broker: Broker) -> None:
        await upkeep(broker)
        assert opened(broker) == set()
        broker.image = broker.image.with_topic(machine.topic({"retention.ms": str(HOUR_MS)}))
        await upkeep(broker)
        assert broker.logs.size_of("orders", 0) == 0

    machine.run(write)
    machine.run(look)


def test_records_without_timestamps_age_on_while_the_broker_is_away() -> None:
    machine = Machine(retention_ms=str(HOUR_MS))

    async def write(broker: Broker) -> None:
        partition = broker.leader("orders", 0)
        partition.append_own(Batch(bytearray(build_batch([Record(0, -1, None, b"timeless")]))), 0)

    async def look_early(broker: Broker) -> None:
        await upkeep(broker)
        assert opened(broker) == set()

    async def look_late(broker: Broker) -> None:
        await upkeep(broker)
        assert broker.logs.size_of("orders", 0) == 0

    machine.run(write)
    machine.run(look_early, after_ms=HOUR_MS // 2)
    machine.run(look_late, after_ms=HOUR_MS + 1)


def values(partition: Partition) -> list[bytes]:
    log, offset, found = partition.log, partition.log.start_offset, []
    while (piece := log.read(offset, 10_000, end=log.end_offset)) is not None:
        for batch in batches(piece.read()):
            assert isinstance(batch, Batch)
            found += [(record.value or b"").rstrip(b"\0") for record in records(batch)]
            offset = batch.next_offset
    return found


def test_an_idle_log_that_is_dirty_enough_is_compacted_and_a_cleaner_one_stays_closed() -> None:
    machine = Machine(cleanup_policy="compact", segment_bytes="1000", min_cleanable_dirty_ratio="0.5")

    async def write(broker: Broker) -> None:
        for index in (0, 1):
            append(broker.leader("orders", index), age_ms=0, count=50, key=b"key")
        # Only what is written from now on is dirty.
        await Cleaner(broker).run()
        append(broker.leader("orders", 1), age_ms=0, count=50, key=b"key")
        append(broker.leader("orders", 2), age_ms=0, count=3, key=b"key")

    async def look(broker: Broker) -> None:
        await upkeep(broker)
        assert opened(broker) == {1}
        found = values(broker.leader("orders", 1))
        assert len(found) < 10
        assert found[-1] == b"49"

    machine.run(write)
    machine.run(look)


@pytest.mark.parametrize("known", [True, False])
def test_an_idle_log_is_compacted_when_a_record_has_waited_for_too_long(known: bool) -> None:
    machine = Machine(
        cleanup_policy="compact",
        segment_bytes="1000",
        min_cleanable_dirty_ratio="1.0",
        max_compaction_lag_ms=str(HOUR_MS),
    )

    async def write(broker: Broker) -> None:
        append(broker.leader("orders", 0), age_ms=HOUR_MS // 2, count=20, key=b"key")
        if not known:
            for segment in broker.leader("orders", 0).log.segments:
                segment.known_first_timestamp = None

    async def look_early(broker: Broker) -> None:
        await upkeep(broker)
        # If nobody knows how long it has waited, the file must be asked.
        assert opened(broker) == (set() if known else {0})
        assert len(values(broker.leader("orders", 0))) == 20

    async def look_late(broker: Broker) -> None:
        await upkeep(broker)
        assert opened(broker) == {0}
        assert len(values(broker.leader("orders", 0))) < 10

    machine.run(write)
    machine.run(look_early)
    machine.run(look_late, after_ms=HOUR_MS // 2 + 60_000)


def test_a_topic_that_goes_while_it_is_looked_at_does_not_come_back() -> None:
    machine = Machine(retention_ms=str(HOUR_MS))

    async def write(broker: Broker) -> None:
        for index in range(PARTITIONS):
            append(broker.leader("orders", index), age_ms=2 * HOUR_MS)

    async def look(broker: Broker) -> None:
        asked = []

        def is_due(state: LogState, config: TopicConfig, now_ms: int) -> bool:
            asked.append(state)
            if len(asked) == PARTITIONS:
                broker.image = broker.image.without_topic("orders")
            return retention_is_due(state, config, now_ms)

        topic = broker.image.topics["orders"]
        assert await open_idle(broker, is_due) == 0
        assert len(asked) == PARTITIONS
        await broker.logs.delete(topic)
        assert not [name for name in machine.disk.list() if name.startswith("orders")]

    machine.run(write)
    machine.run(look)
