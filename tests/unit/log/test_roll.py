"""When segments roll early, and the room that is set aside for them."""

import os
from pathlib import Path

import pytest

from ottla.log.files import OpenFiles
from ottla.log.log import Log
from ottla.log.segment import AHEAD_BYTES, AHEAD_FROM
from ottla.sim import SimChance, SimDisk
from ottla.wire.errors import ErrorCode, KafkaError

from .samples import FOLDER, NOW, TOPIC_ID, Place, StillClock, batch_of, config_of, fill, timed_batch, values

SEGMENT_BYTES = 1_048_576
BLOCK_BYTES = 16_384
"""What a file may take more than it has, for whole blocks and for where they are."""


def rolls_after_ms(root: Path, seed: int, **configs: object) -> list[int]:
    """How long each of ten segments took to roll, when a batch comes every ten milliseconds."""
    place = Place(root, **configs)
    log = Log.create(place.disk, place.files, FOLDER, place.config, place.clock, TOPIC_ID, chance=SimChance(seed))
    began_ms, found, now_ms = NOW, list[int](), NOW
    while len(found) < 10:
        if log.append_as_leader(timed_batch(now_ms), 0).rolled:
            found.append(now_ms - began_ms)
            began_ms = now_ms
        now_ms += 10
    return found


def test_segments_roll_up_to_the_jitter_earlier_each_by_its_own_chance(tmp_path: Path) -> None:
    found = rolls_after_ms(tmp_path, 1, segment_ms=1_000, segment_jitter_ms=600)
    assert all(400 <= each <= 1_010 for each in found)
    assert len(set(found)) > 3


def test_without_jitter_segments_roll_on_time(tmp_path: Path) -> None:
    assert rolls_after_ms(tmp_path, 1, segment_ms=1_000, segment_jitter_ms=0) == [1_010] * 10


def test_jitter_is_at_most_the_time_that_a_segment_lasts(tmp_path: Path) -> None:
    found = rolls_after_ms(tmp_path, 2, segment_ms=100, segment_jitter_ms=1_000_000)
    assert all(0 < each <= 110 for each in found)


def reserved_bytes(path: Path) -> int:
    return os.stat(path).st_blocks * 512


def can_reserve(root: Path) -> bool:
    place = Place(root)
    place.disk.open("probe", create=True)
    place.disk.reserve("probe", SEGMENT_BYTES)
    return reserved_bytes(root / "probe") >= SEGMENT_BYTES


def test_room_for_a_whole_segment_is_set_aside_and_given_back_when_it_rolls(tmp_path: Path) -> None:
    if not can_reserve(tmp_path):
        pytest.skip("this file system cannot set room aside")
    place = Place(tmp_path, preallocate="true", segment_bytes=SEGMENT_BYTES)
    log = place.create()
    first = place.folder / f"{0:020d}.log"
    assert first.stat().st_size == 0
    assert reserved_bytes(first) >= SEGMENT_BYTES
    fill(log, 3)
    log.roll()
    second = place.folder / f"{3:020d}.log"
    assert reserved_bytes(first) < SEGMENT_BYTES / 2
    assert reserved_bytes(second) >= SEGMENT_BYTES
    fill(log, 2, first=3)
    assert values(place.crash(tmp_path / "copy").recover()) == [f"value {number}" for number in range(5)]


def test_room_is_set_aside_ahead_of_what_is_written_and_given_back_by_a_roll_and_a_clean_stop(tmp_path: Path) -> None:
    if not can_reserve(tmp_path):
        pytest.skip("this file system cannot set room aside")
    place = Place(tmp_path)
    log = place.create()
    first = place.folder / f"{0:020d}.log"
    large = "x" * 20_000
    while first.stat().st_size < AHEAD_FROM:
        log.append_as_leader(batch_of(large), 0)
    assert reserved_bytes(first) <= first.stat().st_size + BLOCK_BYTES, "small ones keep none"
    log.append_as_leader(batch_of(large), 0)
    size = first.stat().st_size
    assert size + AHEAD_FROM / 2 < reserved_bytes(first) <= 2 * size + BLOCK_BYTES
    while first.stat().st_size < 3 * AHEAD_BYTES:
        log.append_as_leader(batch_of(large), 0)
        assert reserved_bytes(first) <= first.stat().st_size + AHEAD_BYTES + BLOCK_BYTES
    assert reserved_bytes(first) > first.stat().st_size + BLOCK_BYTES
    # A broker that was killed leaves it so. The next one knows nothing of it, and gives it back when it rolls.
    log = Place(tmp_path).recover()
    log.roll()
    assert reserved_bytes(first) <= first.stat().st_size + BLOCK_BYTES
    second = place.folder / f"{log.end_offset:020d}.log"
    while second.stat().st_size <= AHEAD_FROM + len(large):
        log.append_as_leader(batch_of(large), 0)
    assert reserved_bytes(second) > second.stat().st_size + BLOCK_BYTES
    log.close()
    assert reserved_bytes(second) <= second.stat().st_size + BLOCK_BYTES


def test_a_disk_without_room_for_a_whole_segment_refuses_it_and_leaves_no_file(tmp_path: Path) -> None:
    disk, config = SimDisk(), config_of(preallocate="true", segment_bytes=SEGMENT_BYTES)
    log = Log.create(disk, OpenFiles(disk), FOLDER, config, StillClock(), TOPIC_ID)
    fill(log, 3)
    disk.capacity_bytes = 100_000
    with pytest.raises(KafkaError, match="No space left") as caught:
        log.roll()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert [name for name in disk.list(FOLDER) if name.endswith(".log")] == [f"{0:020d}.log"]
    log.append_as_leader(batch_of("more"), 0)
    assert values(log) == ["value 0", "value 1", "value 2", "more"]
