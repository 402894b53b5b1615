"""Segments that retention takes away, and power cuts while they go."""

import pytest

from ottla.config.topic import TopicConfig
from ottla.log.files import OpenFiles
from ottla.log.log import Log
from ottla.record.batch import Batch
from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.sim import SimChance, SimClock, SimDisk, SimLoop
from tests.sim.history import read_all

FOLDER = "orders-0"
CONFIG = TopicConfig({"segment.bytes": "1000", "index.interval.bytes": "150"})
CLOCK = SimClock(SimLoop(SimChance(1), now_s=1_700_000_000))
SEEDS = range(100)


def _log(disk: SimDisk, batches: int, *, producer_id: int = 7) -> Log:
    """A log of many segments, of which nothing is synced but the folder."""
    log = Log.create(disk, OpenFiles(disk), FOLDER, CONFIG, CLOCK, bytes(15) + b"1")
    disk.sync_folder()
    _append(log, batches, producer_id)
    assert len(log.segments) > 2
    return log


def _append(log: Log, batches: int, producer_id: int = 8) -> None:
    for sequence in range(batches):
        records = [Record(0, CLOCK.now_ms(), None, bytes(60))]
        batch = build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        log.append_as_leader(Batch(bytearray(batch)), 0)


def _recovered(disk: SimDisk, recovery_point: int, start_offset: int) -> Log:
    return Log.open(
        disk, OpenFiles(disk), FOLDER, CONFIG, CLOCK, recovery_point=recovery_point, start_offset=start_offset
    )


@pytest.mark.parametrize("rest", [0, 3], ids=["all of it goes", "some of it stays"])
def test_whatever_a_power_cut_leaves_of_segments_on_their_way_out_no_offset_is_used_again(rest: int) -> None:
    for seed in SEEDS:
        disk = SimDisk()
        log = _log(disk, 30)
        log.roll()
        start_offset = log.end_offset
        _append(log, rest)
        log.delete_before(start_offset)
        log.secure(start_offset)
        log.release(start_offset)
        assert [segment.base_offset for segment in log.segments] == [start_offset]
        found = _recovered(disk.power_cut(SimChance(seed)), 0, start_offset)
        assert found.start_offset == start_offset
        assert start_offset <= found.end_offset <= start_offset + rest
        kept = read_all(found)
        assert [batch.base_offset for batch in kept] == list(range(start_offset, found.end_offset))
        assert found.producers.states[7].last_sequence == 29, "a producer was forgotten with its records"


def test_what_is_left_of_deleted_segments_does_not_stand_in_the_way_of_those_that_stay() -> None:
    disk = SimDisk()
    log = _log(disk, 30)
    bases = [segment.base_offset for segment in log.segments]
    start_offset = bases[-1]
    for suffix in (".log", ".index", ".timeindex"):
        disk.remove(f"{FOLDER}/{bases[1]:020d}{suffix}")
    found = _recovered(disk.kill(), 0, start_offset)
    assert (found.start_offset, found.end_offset) == (start_offset, 30)
    assert found.recovery is not None
    assert found.recovery.cuts == []
    assert [name for name in disk.list(FOLDER) if name.endswith(".log")] == [f"{start_offset:020d}.log"]
