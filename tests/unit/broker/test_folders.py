"""Folders whose topic the catalog lacks: removed if the topic was deleted, and never because a catalog was lost."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ottla.broker.folders import STRAY_SUFFIX
from ottla.broker.logs import Logs
from ottla.broker.server import METADATA_FILE, Server
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.config.broker import BrokerConfig
from ottla.log import checkpoint
from ottla.record.batch import Batch
from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.sim import HaltedError, SimChance, SimClock, SimDisk, SimLoop
from ottla.wire.errors import ErrorCode, KafkaError

EMPTY = ClusterImage("cluster", 1)
ORDERS = TopicImage("orders", bytes(range(1, 17)), tuple(PartitionImage(index, 1, 0, (1,), (1,)) for index in range(3)))
OTHER = TopicImage("other", bytes(range(2, 18)), (PartitionImage(0, 1, 0, (1,), (1,)),))
BOTH = EMPTY.with_topics(ORDERS, OTHER)
WITHOUT = EMPTY.with_topics(OTHER)


def clock() -> SimClock:
    return SimClock(SimLoop(SimChance(1), now_s=1_700_000_000))


def start(disk: SimDisk, image: ClusterImage) -> Logs:
    logs = Logs(disk, clock(), BrokerConfig({}))
    asyncio.run(logs.recover(image))
    return logs


def append(logs: Logs, topic: TopicImage) -> None:
    for partition in topic.partitions:
        batch = Batch(bytearray(build_batch([Record(0, 1_700_000_000_000, None, b"value")])))
        logs.open(topic, partition.index).log.append_as_leader(batch, 0)


def filled(image: ClusterImage, *, clean: bool) -> SimDisk:
    disk = SimDisk()
    logs = start(disk, image)
    for topic in image.topics.values():
        append(logs, topic)
    if clean:
        asyncio.run(logs.close())
    return disk.kill()


def content(disk: SimDisk, folder: str = "") -> dict[str, bytes]:
    found = {}
    for name in disk.list(folder):
        path = f"{folder}/{name}".lstrip("/")
        try:
            found[path] = disk.read(path)
        except IsADirectoryError:
            found |= content(disk, path)
    return found


def strays(disk: SimDisk) -> list[str]:
    return [name for name in disk.list() if name.endswith(STRAY_SUFFIX)]


def of_orders(disk: SimDisk) -> list[str]:
    return [name for name in disk.list() if name.startswith("orders")]


@pytest.mark.parametrize("clean", [True, False])
def test_a_catalog_without_topics_is_refused_where_there_are_records_and_nothing_changes(clean: bool) -> None:
    disk = filled(BOTH, clean=clean)
    before = content(disk)
    with pytest.raises(KafkaError) as caught:
        start(disk, EMPTY)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert disk.root in caught.value.message
    assert "(orders-0, orders-1, orders-2 and 1 more)" in caught.value.message
    assert f"Put the {METADATA_FILE} back" in caught.value.message
    assert content(disk) == before
    # As soon as the right catalog is back, so is everything.
    logs = start(disk, BOTH)
    assert [logs.open(ORDERS, index).log.end_offset for index in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("clean", [True, False])
def test_folders_that_another_catalog_does_not_know_are_set_aside(
    clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    disk = filled(BOTH, clean=clean)
    segments = {name: data for name, data in content(disk).items() if name.endswith(".log")}
    logs = start(disk, WITHOUT)
    assert logs.open(OTHER, 0).log.end_offset == 1
    assert len(strays(disk)) == 3
    assert "orders-0 is of no topic in metadata.sqlite, and nothing says that its topic was deleted" in caplog.text
    assert sorted(
        data for name, data in content(disk).items() if name.endswith(".log") and STRAY_SUFFIX in name
    ) == sorted(data for name, data in segments.items() if name.startswith("orders"))
    # What the message says to do.
    disk = disk.kill()
    for name in strays(disk):
        disk.rename(name, name.partition(".")[0])
    logs = start(disk, BOTH)
    assert [logs.open(ORDERS, index).log.end_offset for index in range(3)] == [1, 1, 1]


def test_a_catalog_without_topics_is_fine_where_nothing_was_ever_written() -> None:
    disk = SimDisk()
    logs = start(disk, BOTH)
    for partition in ORDERS.partitions:
        logs.open(ORDERS, partition.index)
    start(disk.kill(), EMPTY)
    assert of_orders(disk) == []


def test_a_folder_that_was_never_used_is_removed_and_one_whose_records_expired_is_not() -> None:
    disk = SimDisk()
    logs = start(disk, BOTH)
    asyncio.run(logs.create(ORDERS, ORDERS.partitions))
    append(logs, ORDERS)
    log = logs.open(ORDERS, 1).log
    log.roll()
    log.delete_before(1)
    asyncio.run(logs.settle_starts([log]))
    log.remove_retired(2**62)
    disk.remove_folder("orders-0")
    asyncio.run(logs.create(ORDERS, ORDERS.partitions[:1]))
    start(disk.kill(), WITHOUT)
    assert sorted(name.partition(".")[0] for name in of_orders(disk)) == ["orders-1", "orders-2"]


async def deleted(logs: Logs, catalog: list[ClusterImage]) -> None:
    """A deletion, as `Topics.delete` goes about it."""
    await logs.begin_deletion(ORDERS)
    catalog.append(WITHOUT)
    await logs.delete(ORDERS)


def crashes(*, used: bool) -> Iterator[tuple[SimDisk, ClusterImage]]:
    """The disk and the catalog after a crash at each step of a deletion, until it is done."""
    for operations in range(1, 1_000):
        disk = filled(BOTH, clean=True)
        logs = start(disk, BOTH)
        if used:
            append(logs, ORDERS)
        catalog = [BOTH]
        disk.operations_left = operations
        loop = SimLoop(SimChance(operations), halts=partial(getattr, disk, "is_out"))
        try:
            loop.run_until_complete(deleted(logs, catalog))
        except HaltedError:
            yield disk, catalog[-1]
        else:
            return
        finally:
            loop.close()
    raise AssertionError("the deletion never ended")


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize("power_is_cut", [True, False])
def test_a_deletion_that_was_cut_short_is_finished_or_never_was(used: bool, power_is_cut: bool) -> None:
    finished = unbegun = 0
    for disk, catalog in crashes(used=used):
        for seed in range(8 if power_is_cut else 1):
            after = disk.power_cut(SimChance(seed)) if power_is_cut else disk.kill()
            logs = start(after, catalog)
            assert strays(after) == []
            if ORDERS.name in catalog.topics:
                unbegun += 1
                assert all(logs.open(ORDERS, index).log.end_offset >= 1 for index in range(3))
            else:
                finished += 1
                assert of_orders(after) == []
                assert checkpoint.read_deletions(after) == {}
            assert logs.open(OTHER, 0).log.end_offset == 1
    assert finished
    assert unbegun


def test_the_last_topics_deletion_is_finished_too() -> None:
    disk = filled(EMPTY.with_topics(ORDERS), clean=False)
    logs = start(disk, EMPTY.with_topics(ORDERS))
    asyncio.run(logs.begin_deletion(ORDERS))
    start(disk.kill(), EMPTY)
    assert of_orders(disk) == []


def test_a_deletion_that_the_catalog_never_learned_of_means_nothing_later() -> None:
    disk = filled(BOTH, clean=False)
    logs = start(disk, BOTH)
    asyncio.run(logs.begin_deletion(ORDERS))
    start(disk.kill(), BOTH)
    start(disk.kill(), WITHOUT)
    assert len(strays(disk)) == 3


def test_a_damaged_list_of_deletions_removes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    disk = filled(BOTH, clean=False)
    asyncio.run(start(disk, BOTH).begin_deletion(ORDERS))
    disk.flip(checkpoint.DELETIONS_FILE, 20)
    start(disk.kill(), WITHOUT)
    assert len(strays(disk)) == 3
    assert f"{checkpoint.DELETIONS_FILE} is damaged" in caplog.text


def test_a_full_disk_does_not_refuse_a_deletion(caplog: pytest.LogCaptureFixture) -> None:
    disk = filled(BOTH, clean=False)
    logs = start(disk, BOTH)
    disk.capacity_bytes = 0
    asyncio.run(deleted(logs, []))
    assert of_orders(disk) == []
    assert "orders: after a crash its folders would be set aside" in caplog.text


def write_as_kafka(disk: SimDisk, folder: str, *, metadata: bool) -> None:
    disk.make_folder(folder)
    disk.open(f"{folder}/{0:020d}.log", create=True).append(build_batch([Record(0, 1, None, b"of Kafka")]))
    if metadata:
        text = b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
        disk.open(f"{folder}/partition.metadata", create=True).append(text)


@pytest.mark.parametrize("metadata", [True, False])
@pytest.mark.parametrize("clean", [True, False])
def test_a_folder_that_kafka_wrote_is_kept(clean: bool, metadata: bool) -> None:
    disk = filled(WITHOUT, clean=clean)
    write_as_kafka(disk, "payments-0", metadata=metadata)
    start(disk, WITHOUT)
    (aside,) = strays(disk)
    assert aside.startswith("payments-0.")
    assert b"of Kafka" in disk.read(f"{aside}/{0:020d}.log")


def test_a_folder_that_is_in_the_way_of_a_new_topic_is_kept() -> None:
    disk = filled(WITHOUT, clean=False)
    logs = start(disk, WITHOUT)
    write_as_kafka(disk, "orders-0", metadata=True)
    asyncio.run(logs.create(ORDERS, ORDERS.partitions))
    (aside,) = strays(disk)
    assert b"of Kafka" in disk.read(f"{aside}/{0:020d}.log")
    assert logs.open(ORDERS, 0).log.end_offset == 0


def test_folders_with_long_names_are_set_aside_under_names_of_their_own() -> None:
    # They begin alike, and no clock ticks between them.
    topics = [TopicImage("a" * 248 + last, bytes(15) + last.encode(), ORDERS.partitions[:2]) for last in ("x", "y")]
    disk = filled(WITHOUT.with_topics(*topics), clean=False)
    start(disk, WITHOUT)
    assert len(strays(disk)) == 4
    assert sorted(name.partition(".")[0][-2:] for name in strays(disk)) == ["-0", "-0", "-1", "-1"]
    assert all(len(name) <= 255 for name in strays(disk))


AGAIN = TopicImage("orders", bytes(range(50, 66)), ORDERS.partitions)


def test_a_half_removed_folder_of_a_deleted_topic_is_not_taken_for_that_of_a_new_one() -> None:
    disk = filled(BOTH, clean=False)
    logs = start(disk, BOTH)
    asyncio.run(logs.begin_deletion(ORDERS))
    disk = disk.kill()
    disk.remove("orders-0/partition.metadata")
    logs = start(disk, WITHOUT.with_topic(AGAIN))
    assert [logs.open(AGAIN, index).log.end_offset for index in range(3)] == [0, 0, 0]
    assert strays(disk) == []


def test_a_new_topic_does_not_lose_its_records_to_a_deletion_that_is_over() -> None:
    disk = filled(BOTH, clean=False)
    logs = start(disk, BOTH)

    async def again() -> None:
        await deleted(logs, [])
        await logs.create(AGAIN, AGAIN.partitions)

    asyncio.run(again())
    append(logs, AGAIN)
    disk = disk.kill()
    # It is not synced, and a power cut may take it.
    disk.remove("orders-0/partition.metadata")
    logs = start(disk, WITHOUT.with_topic(AGAIN))
    assert [logs.open(AGAIN, index).log.end_offset for index in range(3)] == [1, 1, 1]


def test_other_files_and_folders_are_left_alone() -> None:
    disk = filled(WITHOUT, clean=False)
    disk.make_folder("backup-2024/inner")
    disk.make_folder("lost+found")
    disk.open("notes-1", create=True)
    disk.open("to-delete", create=True)
    disk.make_folder("orders-0.1f-future")
    before = disk.list()
    start(disk, WITHOUT)
    assert disk.list() == before


def test_a_server_whose_catalog_was_lost_says_so_and_keeps_everything(tmp_path: Path) -> None:
    config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)})

    async def write() -> None:
        async with Server(config) as server:
            assert server.broker is not None
            await server.broker.topics.create("orders")
            batch = Batch(bytearray(build_batch([Record(0, 1_700_000_000_000, None, b"value")])))
            server.broker.leader("orders", 0).log.append_as_leader(batch, 0)

    async def read() -> int:
        async with Server(config) as server:
            assert server.broker is not None
            return server.broker.leader("orders", 0).log.end_offset

    asyncio.run(write())
    (tmp_path / METADATA_FILE).rename(tmp_path / "kept.sqlite")
    for _ in range(2):
        with pytest.raises(KafkaError, match=r"folders with records \(orders-0\)"):
            asyncio.run(read())
    (tmp_path / "kept.sqlite").rename(tmp_path / METADATA_FILE)
    assert asyncio.run(read()) == 1
