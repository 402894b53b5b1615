"""What a start after a crash believes of the files in the data folder, and what it does where they are damaged."""

import asyncio
from collections.abc import Iterator

import pytest

from ottla.broker.folders import STRAY_SUFFIX
from ottla.broker.logs import Logs
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.config.broker import BrokerConfig
from ottla.log import checkpoint
from ottla.log.log import Log
from ottla.log.metadata import read_topic_id
from ottla.record.batch import Batch, batches, records
from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.sim import SimChance, SimClock, SimDisk, SimLoop

FOLDER = "orders-0"
METADATA = f"{FOLDER}/partition.metadata"
TOPIC_ID, OTHER_ID = bytes(range(1, 17)), bytes(range(2, 18))
RECORDS = 30
DELETED = 12
CLOCK = SimClock(SimLoop(SimChance(1), now_s=1_700_000_000))
TEXT_FILES = (checkpoint.RECOVERY_POINTS_FILE, checkpoint.START_OFFSETS_FILE)


def start(disk: SimDisk, topic_id: bytes = TOPIC_ID) -> tuple[Logs, Log]:
    """The logs of a broker that has just started, and the one of the only partition."""
    topic = TopicImage("orders", topic_id, (PartitionImage(0, 1, 0, (1,), (1,)),), {"segment.bytes": "1000"})
    logs = Logs(disk, CLOCK, BrokerConfig({}))
    asyncio.run(logs.recover(ClusterImage("cluster", 1).with_topics(topic)))
    return logs, logs.open(topic, 0).log


def fill(log: Log, count: int = RECORDS) -> None:
    for number in range(count):
        record = Record(0, CLOCK.now_ms(), None, b"value %d" % number + bytes(100))
        log.append_as_leader(Batch(bytearray(build_batch([record]))), 0)


def numbers(log: Log) -> list[int]:
    """The numbers of the records that can be read."""
    found, offset = [], log.start_offset
    while (piece := log.read(offset, 10_000, end=log.end_offset)) is not None:
        for batch in batches(piece.read()):
            assert isinstance(batch, Batch)
            found += [record for record in records(batch) if record.offset >= log.start_offset]
            offset = batch.next_offset
    return [int((record.value or b"").split()[1].rstrip(b"\0")) for record in found]


@pytest.fixture
def disk() -> SimDisk:
    """The disk of a broker that was killed, with a log of many segments whose first records were deleted."""
    made = SimDisk()
    logs, log = start(made)
    fill(log)
    log.flush()
    log.delete_before(DELETED)
    assert asyncio.run(logs.settle_starts([log])) == {}
    logs.write_checkpoints()
    made.open(METADATA).sync()
    return made.kill()


def spoilt(disk: SimDisk, name: str) -> Iterator[SimDisk]:
    """Copies of the disk in which every byte of a file is flipped, and every end of it is lost."""
    size = len(disk.read(name))
    for position in range(size):
        for mask in (0x01, 0x08):
            copy = disk.power_cut(SimChance(1))
            copy.flip(name, position, mask)
            yield copy
        copy = disk.power_cut(SimChance(1))
        copy.cut(name, position)
        yield copy


def test_deleted_records_stay_deleted_and_their_segments_are_gone(disk: SimDisk) -> None:
    _, log = start(disk)
    assert numbers(log) == list(range(DELETED, RECORDS))
    assert log.segments[0].base_offset > 0


@pytest.mark.parametrize("name", TEXT_FILES)
def test_damage_to_kafkas_text_files_changes_nothing(disk: SimDisk, name: str) -> None:
    for copy in spoilt(disk, name):
        assert numbers(start(copy)[1]) == list(range(DELETED, RECORDS))


def test_damage_to_the_marks_drops_no_record_and_is_told(disk: SimDisk, caplog: pytest.LogCaptureFixture) -> None:
    for copy in spoilt(disk, checkpoint.MARKS_FILE):
        caplog.clear()
        _, log = start(copy)
        found = numbers(log)
        assert found == list(range(RECORDS))[-len(found) :]
        assert len(found) >= RECORDS - DELETED
        assert log.end_offset == RECORDS
        assert any(checkpoint.MARKS_FILE in each.message for each in caplog.records)


def test_marks_are_read_from_kafkas_files_where_only_they_are(disk: SimDisk) -> None:
    disk.remove(checkpoint.MARKS_FILE)
    assert numbers(start(disk)[1]) == list(range(DELETED, RECORDS))


def test_a_start_beyond_the_end_is_not_believed_without_a_checksum(
    disk: SimDisk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.remove(checkpoint.MARKS_FILE)
    checkpoint.write_offsets(disk, checkpoint.START_OFFSETS_FILE, {FOLDER: 90_012})
    _, log = start(disk)
    assert numbers(log) == list(range(RECORDS))[-len(numbers(log)) :]
    assert log.end_offset == RECORDS
    assert "orders-0 ends at 30, and cannot begin at 90012" in caplog.text


def test_a_damaged_clean_checkpoint_costs_a_recovery_and_nothing_else(disk: SimDisk) -> None:
    logs, _ = start(disk)
    asyncio.run(logs.close())
    for copy in spoilt(disk, checkpoint.CLEAN_FILE):
        assert numbers(start(copy)[1]) == list(range(DELETED, RECORDS))


def test_damage_to_the_topics_id_costs_nothing(disk: SimDisk) -> None:
    for copy in spoilt(disk, METADATA):
        assert numbers(start(copy)[1]) == list(range(DELETED, RECORDS))
        assert read_topic_id(copy, FOLDER) == TOPIC_ID
        assert not [name for name in copy.list() if name.endswith(STRAY_SUFFIX)]


def test_a_folder_that_may_be_another_topics_is_set_aside_and_never_removed(
    disk: SimDisk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.remove(checkpoint.MARKS_FILE)
    before = disk.list(FOLDER)
    _, log = start(disk, OTHER_ID)
    assert numbers(log) == []
    (aside,) = [name for name in disk.list() if name.endswith(STRAY_SUFFIX)]
    assert disk.list(aside) == before
    assert f"it is kept as {aside}" in caplog.text
    start(disk.kill(), OTHER_ID)
    assert disk.list(aside) == before
    # What the message says to do.
    disk.remove_folder(FOLDER)
    disk.rename(aside, FOLDER)
    disk.remove(METADATA)
    assert numbers(start(disk.kill(), OTHER_ID)[1])[-1] == RECORDS - 1


def test_the_folder_of_a_deleted_topic_does_not_come_back(disk: SimDisk) -> None:
    checkpoint.write_deletions(disk, {TOPIC_ID: "orders"})
    _, log = start(disk, OTHER_ID)
    assert numbers(log) == []
    assert not [name for name in disk.list() if name.endswith(STRAY_SUFFIX)]
    assert checkpoint.read_deletions(disk) == {}


def test_marks_of_a_topic_that_had_the_name_before_are_not_believed(disk: SimDisk) -> None:
    marks = checkpoint.read_marks(disk)
    assert marks is not None
    disk.remove_folder(FOLDER)
    _, log = start(disk, OTHER_ID)
    fill(log, 3)
    # As it is if the broker has had no time to write any since.
    checkpoint.write_marks(disk, marks)
    assert numbers(start(disk.kill(), OTHER_ID)[1]) == [0, 1, 2]


def test_a_disk_without_room_for_the_marks_keeps_the_segments(disk: SimDisk) -> None:
    logs, log = start(disk)
    segments = list(log.segments)
    disk.capacity_bytes = 0
    log.delete_before(RECORDS)
    failed = asyncio.run(logs.settle_starts([log]))
    assert "cannot be written" in failed[log].message
    assert log.segments == segments
    disk.capacity_bytes = None
    assert asyncio.run(logs.settle_starts([log])) == {}
    assert len(log.segments) == 1
