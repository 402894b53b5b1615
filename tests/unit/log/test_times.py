from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log.files import OpenFiles
from ottla.log.log import Log
from ottla.record.compression import Codec

from .samples import FOLDER, NOW, Place, batch_of, fill, read_all, timed_batch


def timed_log(root: Path, *batches: list[int], **configs: object) -> Log:
    log = Place(root, **configs).create()
    for number, timestamps in enumerate(batches):
        log.append_as_leader(timed_batch(*timestamps), number)
    return log


def test_a_time_leads_to_a_record_not_to_a_batch(tmp_path: Path) -> None:
    log = timed_log(tmp_path, [10, 20, 30], [40, 35, 50])
    assert log.offset_for_time(0) == (0, 10, 0)
    assert log.offset_for_time(11) == (1, 20, 0)
    assert log.offset_for_time(31) == (3, 40, 1)
    assert log.offset_for_time(45) == (5, 50, 1)
    assert log.offset_for_time(51) is None


def test_records_that_are_deleted_or_not_committed_are_not_found_by_time(tmp_path: Path) -> None:
    log = timed_log(tmp_path, [10, 20, 30], [40])
    log.delete_before(2)
    assert log.offset_for_time(10) == (2, 30, 0)
    assert log.offset_for_time(35, end=3) is None
    assert log.offset_for_time(30, end=3) == (2, 30, 0)


def test_a_log_append_time_batch_is_found_at_its_start(tmp_path: Path) -> None:
    place = Place(tmp_path, message_timestamp_type="LogAppendTime")
    log = place.create()
    fill(log, 2)
    place.clock.time_ms += 10
    log.append_as_leader(batch_of("a", "b"), 0)
    assert log.offset_for_time(NOW + 1) == (2, NOW + 10, 0)
    assert log.max_timestamp() == (2, NOW + 10, 0)


@pytest.mark.parametrize("codec", list(Codec))
def test_times_are_found_in_compressed_batches(tmp_path: Path, codec: Codec) -> None:
    log = Place(tmp_path).create()
    log.append_as_leader(batch_of("a" * 100, "b" * 100, codec=codec), 0)
    assert log.offset_for_time(NOW) == (0, NOW, 0)


def test_the_largest_time_and_its_first_record(tmp_path: Path) -> None:
    log = timed_log(tmp_path, [10, 70, 30], [40, 70], [5])
    assert log.max_timestamp() == (1, 70, 0)
    log.roll()
    log.append_as_leader(timed_batch(69, 71), 5)
    assert log.max_timestamp() == (7, 71, 5)


def test_the_largest_time_of_the_records_that_are_left(tmp_path: Path) -> None:
    log = timed_log(tmp_path, [90], [10, 40], [30])
    log.delete_before(1)
    assert log.max_timestamp() == (2, 40, 1)


def test_without_records_or_times_there_is_no_largest(tmp_path: Path) -> None:
    log = timed_log(tmp_path)
    assert log.max_timestamp() is None
    log.append_as_leader(timed_batch(-1), 0)
    assert log.max_timestamp() is None


@settings(max_examples=40, deadline=None)
@given(
    batches=st.lists(
        st.tuples(st.lists(st.integers(0, 50), min_size=1, max_size=4), st.booleans()), min_size=1, max_size=30
    ),
    interval=st.integers(0, 300),
    wanted=st.integers(0, 51),
    deleted=st.integers(0, 100),
    restart=st.booleans(),
)
def test_by_time_equals_a_search_through_all_records(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[tuple[list[int], bool]],
    interval: int,
    wanted: int,
    deleted: int,
    restart: bool,
) -> None:
    place = Place(tmp_path_factory.mktemp("log"), index_interval_bytes=interval)
    log = place.create()
    for timestamps, roll in batches:
        log.append_as_leader(timed_batch(*timestamps), 0)
        if roll:
            log.roll()
    if restart:
        log = place.reopen(log)
    log.delete_before(min(deleted, log.end_offset - 1))
    records = read_all(log)
    expected = next(((each.offset, each.timestamp, 0) for each in records if each.timestamp >= wanted), None)
    assert log.offset_for_time(wanted) == expected


def test_segment_offsets_as_list_offsets_v0_gives_them(tmp_path: Path) -> None:
    log = timed_log(tmp_path, [10], [20])
    log.roll()
    log.append_as_leader(timed_batch(30), 0)
    log.roll()
    assert log.segment_offsets(-1, 10) == [3, 2, 0]
    log.append_as_leader(timed_batch(40), 0)
    assert log.segment_offsets(-1, 10) == [4, 3, 2, 0]
    assert log.segment_offsets(-1, 2) == [4, 3]
    assert log.segment_offsets(-2, 10) == [0]
    assert log.segment_offsets(35, 10) == [2, 0]
    assert log.segment_offsets(9, 10) == []
    log.delete_before(1)
    assert log.segment_offsets(-2, 1) == [1]


def test_a_damaged_time_index_never_leads_a_search_astray(tmp_path: Path) -> None:
    place = Place(tmp_path, index_interval_bytes=0)
    log = place.create()
    times = [100 + 10 * number + (25 if number % 3 == 0 else 0) for number in range(12)]
    for time in times:
        log.append_as_leader(timed_batch(time), 0)
    log.roll()
    state = log.close()
    (name,) = [name for name in place.names(".timeindex") if (place.folder / name).stat().st_size]
    sound = (place.folder / name).read_bytes()
    wanted = [*range(90, 240, 7), *times]
    expected = [next((offset for offset, time in enumerate(times) if time >= each), None) for each in wanted]
    for bit in range(len(sound) * 8):
        spoilt = bytearray(sound)
        spoilt[bit // 8] ^= 1 << bit % 8
        (place.folder / name).write_bytes(spoilt)
        reopened = Log.open(place.disk, OpenFiles(place.disk), FOLDER, place.config, place.clock, state=state)
        found = [reopened.offset_for_time(each) for each in wanted]
        assert [None if each is None else each.offset for each in found] == expected, f"bit {bit}"


@pytest.mark.parametrize("recovery_point", [0, 5, 12])
def test_recovery_takes_no_time_from_an_index_that_the_batches_disagree_with(
    tmp_path: Path, recovery_point: int
) -> None:
    place = Place(tmp_path, index_interval_bytes=0)
    log = place.create()
    for number in range(12):
        log.append_as_leader(timed_batch(1_000 + number), 0)
        if number == 9:
            log.roll()
    log.flush()
    name = place.names(".timeindex")[0]
    sound = (place.folder / name).read_bytes()
    for bit in range(len(sound) * 8 - 96, len(sound) * 8):
        spoilt = bytearray(sound)
        spoilt[bit // 8] ^= 1 << bit % 8
        (place.folder / name).write_bytes(spoilt)
        recovered = place.recover(recovery_point)
        assert [segment.max_timestamp for segment in recovered.segments] == [1_009, 1_011], f"bit {bit}"
