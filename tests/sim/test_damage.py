"""A full disk, a failing one, flipped and cut bytes: a clear message each time, and nothing else is missing."""

import errno
from collections.abc import Iterator

import pytest

from ottla.config.topic import TopicConfig
from ottla.log.files import OpenFiles
from ottla.log.log import Log
from ottla.record.batch import Batch, records
from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.sim import SimChance, SimClock, SimDisk, SimLoop
from ottla.wire.errors import ErrorCode, KafkaError
from tests.sim.history import read_all

FOLDER = "orders-0"
CONFIG = TopicConfig({"segment.bytes": "1000", "index.interval.bytes": "150"})
CLOCK = SimClock(SimLoop(SimChance(1), now_s=1_700_000_000))
BATCHES = 30


def _batch(number: int) -> Batch:
    value = b"value %d " % number + bytes(40)
    made = build_batch(
        [Record(0, 1_700_000_000_000 + number, None, value)], producer_id=7, producer_epoch=0, base_sequence=number
    )
    return Batch(bytearray(made))


def _open(disk: SimDisk, recovery_point: int = 0, start_offset: int | None = None) -> Log:
    return Log.open(
        disk, OpenFiles(disk), FOLDER, CONFIG, CLOCK, recovery_point=recovery_point, start_offset=start_offset
    )


def _values(log: Log) -> list[bytes]:
    found = [record.value for batch in read_all(log) for record in records(batch)]
    return [value.rstrip(b"\0 ") for value in found if value is not None]


def _expected(count: int) -> list[bytes]:
    return [b"value %d" % number for number in range(count)]


@pytest.fixture
def disk() -> SimDisk:
    """A disk with a log of several segments, all of it synced, whose broker did not stop in good order."""
    made = SimDisk()
    log = Log.create(made, OpenFiles(made), FOLDER, CONFIG, CLOCK, bytes(15) + b"1")
    for number in range(BATCHES):
        log.append_as_leader(_batch(number), leader_epoch=0)
    log.flush()
    return made.power_cut(SimChance(1))


def _fill(log: Log, number: int) -> int:
    """Append until the disk is full; the number of the batch that was refused."""
    refusal: KafkaError | None = None
    while refusal is None:
        try:
            log.append_as_leader(_batch(number), leader_epoch=0)
            number += 1
        except KafkaError as error:
            refusal = error
    assert refusal.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert refusal.message.startswith("the disk refuses to serve orders-0: ")
    assert "No space left on device" in refusal.message
    return number


def _names(disk: SimDisk, suffix: str) -> list[str]:
    return [f"{FOLDER}/{name}" for name in disk.list(FOLDER) if name.endswith(suffix)]


def test_a_full_disk_refuses_with_a_clear_message_and_keeps_what_was_acknowledged() -> None:
    disk = SimDisk()
    log = Log.create(disk, OpenFiles(disk), FOLDER, CONFIG, CLOCK, bytes(15) + b"1")
    disk.capacity_bytes = 2_500
    acknowledged = _fill(log, 0)
    assert acknowledged > 10
    assert _values(log) == _expected(acknowledged)
    disk.capacity_bytes = None
    log.append_as_leader(_batch(acknowledged), leader_epoch=0)
    log.flush()
    assert _values(_open(disk.power_cut(SimChance(2)))) == _expected(acknowledged + 1)


@pytest.mark.parametrize("free_bytes", range(0, 1_400, 60))
def test_a_disk_that_fills_up_anywhere_leaves_a_log_that_opens_again(disk: SimDisk, free_bytes: int) -> None:
    log = _open(disk)
    disk.capacity_bytes = disk.usage()[0] - disk.usage()[1] + free_bytes
    acknowledged = _fill(log, BATCHES)
    disk.capacity_bytes = None
    assert _values(_open(disk.kill())) == _expected(acknowledged)


def test_a_failed_sync_is_told_and_nothing_more_is_acknowledged(disk: SimDisk) -> None:
    log = _open(disk)
    log.append_as_leader(_batch(BATCHES), leader_epoch=0)
    disk.failing_sync = ".log"
    with pytest.raises(KafkaError, match=r"orders-0 could not be brought to the disk: .*Input/output error"):
        log.flush()
    disk.failing_sync = None
    with pytest.raises(KafkaError, match="could not be brought to the disk"):
        log.append_as_leader(_batch(BATCHES + 1), leader_epoch=0)
    with pytest.raises(KafkaError, match="could not be brought to the disk"):
        log.flush()
    assert _values(_open(disk.power_cut(SimChance(3))))[:BATCHES] == _expected(BATCHES)


def _positions(disk: SimDisk, name: str) -> Iterator[int]:
    size = len(disk.read(name))
    return iter(range(0, size, max(1, size // 25)))


def test_a_flipped_byte_in_a_segment_costs_what_follows_it_at_most_and_is_told(disk: SimDisk) -> None:
    tried = 0
    for name in _names(disk, ".log"):
        base_offset = int(name.partition("/")[2].removesuffix(".log"))
        for position in _positions(disk, name):
            spoilt = disk.power_cut(SimChance(1))
            spoilt.flip(name, position, 0x10)
            log = _open(spoilt)
            found = _values(log)
            assert log.recovery is not None
            assert found == _expected(len(found)), "what is left is not what was written"
            assert len(found) >= base_offset, "records before the damaged segment are missing"
            if len(found) < BATCHES:
                assert any(name in cut for cut in log.recovery.cuts), log.recovery
            tried += 1
    assert tried > 50


def test_a_segment_that_was_cut_costs_what_was_cut_and_is_told(disk: SimDisk) -> None:
    name = _names(disk, ".log")[-1]
    base_offset = int(name.partition("/")[2].removesuffix(".log"))
    for size in range(1, len(disk.read(name)), 37):
        spoilt = disk.power_cut(SimChance(1))
        spoilt.cut(name, size)
        log = _open(spoilt)
        found = _values(log)
        assert base_offset <= len(found) < BATCHES
        assert found == _expected(len(found))
        log.append_as_leader(_batch(len(found)), leader_epoch=0)
        assert _values(log) == _expected(len(found) + 1)


@pytest.mark.parametrize("recovery_point", [0, 15, BATCHES])
@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot"])
def test_a_damaged_index_or_snapshot_costs_nothing(disk: SimDisk, suffix: str, recovery_point: int) -> None:
    names = [name for name in _names(disk, suffix) if disk.read(name)]
    assert names
    for name in names:
        for position in _positions(disk, name):
            for damage in (SimDisk.flip, SimDisk.cut):
                spoilt = disk.power_cut(SimChance(1))
                damage(spoilt, name, position)
                log = _open(spoilt, recovery_point)
                assert _values(log) == _expected(BATCHES)
                assert log.producers.states[7].last_sequence == BATCHES - 1
                assert log.append_as_leader(_batch(BATCHES - 1), leader_epoch=0).duplicate


def test_a_damaged_checkpoint_of_leader_epochs_is_rebuilt_and_told(disk: SimDisk) -> None:
    name = f"{FOLDER}/leader-epoch-checkpoint"
    disk.flip(name, 0)
    log = _open(disk, BATCHES)
    assert log.recovery is not None
    assert any(name in rebuilt for rebuilt in log.recovery.rebuilt)
    assert log.epochs.entries == [(0, 0)]
    assert _values(log) == _expected(BATCHES)


def test_the_simulated_full_disk_says_so() -> None:
    disk = SimDisk()
    disk.capacity_bytes = 10
    file = disk.open("a", create=True)
    file.append(bytes(10))
    with pytest.raises(OSError, match="No space left") as full:
        file.append(b"x")
    assert full.value.errno == errno.ENOSPC
    assert disk.usage() == (10, 0)
