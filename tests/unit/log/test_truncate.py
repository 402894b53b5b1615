from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .samples import Place, batch_of, fill, read_all, timed_batch, values


def test_truncation_drops_batches_segments_and_what_is_known_of_them(tmp_path: Path) -> None:
    place = Place(tmp_path, index_interval_bytes=200)
    log = place.create()
    for number in range(12):
        log.append_as_leader(timed_batch(number * 10), number // 4)
        if number % 5 == 4:
            log.roll()
    log.flush()
    log.truncate_to(7)
    assert (log.end_offset, log.recovery_point) == (7, 7)
    assert [segment.base_offset for segment in log.segments] == [0, 5]
    assert log.epochs.entries == [(0, 0), (1, 4)]
    assert log.max_timestamp() == (6, 60, 1)
    log.append_as_leader(timed_batch(5), 9)
    assert [record.offset for record in read_all(log)] == list(range(8))
    log = place.crash(tmp_path / "copy").recover()
    assert [record.timestamp for record in read_all(log)] == [0, 10, 20, 30, 40, 50, 60, 5]


def test_truncation_to_the_end_or_beyond_changes_nothing(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    fill(log, 3)
    log.truncate_to(3)
    log.truncate_to(9)
    assert log.end_offset == 3


def test_a_log_can_be_emptied(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    fill(log, 3)
    log.roll()
    fill(log, 3)
    log.truncate_to(0)
    assert (log.start_offset, log.end_offset, log.size) == (0, 0, 0)
    fill(log, 2)
    assert values(log) == ["value 0", "value 1"]


def test_a_batch_that_was_truncated_is_no_duplicate(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    for number in range(6):
        log.append_as_leader(batch_of("x", producer=(1, 0, number)), 0)
        if number == 2:
            log.roll()
    log.truncate_to(4)
    assert log.append_as_leader(batch_of("x", producer=(1, 0, 3)), 0).duplicate
    assert log.append_as_leader(batch_of("x", producer=(1, 0, 4)), 0)[:4:3] == (4, False)


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 30), roll_every=st.integers(1, 10), cut=st.integers(0, 30), interval=st.integers(0, 500))
def test_any_truncation_leaves_a_sound_log(
    tmp_path_factory: pytest.TempPathFactory, count: int, roll_every: int, cut: int, interval: int
) -> None:
    root = tmp_path_factory.mktemp("log")
    place = Place(root / "a", index_interval_bytes=interval)
    log = place.create()
    for number in range(count):
        if number % roll_every == 0:
            log.roll()
        fill(log, 1, first=number)
    log.truncate_to(cut)
    kept = min(cut, count)
    fill(log, 3, first=kept)
    expected = [f"value {number}" for number in range(kept + 3)]
    assert values(log) == expected
    crashed = place.crash(root / "b").recover()
    assert crashed.recovery is not None
    assert crashed.recovery.cuts == []
    assert values(crashed) == values(place.reopen(log)) == expected
