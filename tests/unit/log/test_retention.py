from pathlib import Path

import pytest

from ottla.log.log import Log
from ottla.wire.errors import ErrorCode, KafkaError

from .samples import NOW, Place, batch_of, enforce, fill, timed_batch, values


def three_segments(log: Log) -> int:
    """Two batches in each of three segments; the size of one segment."""
    for number in range(3):
        fill(log, 2, first=number * 2)
        if number < 2:
            log.roll()
    return log.segments[0].size


def test_the_oldest_segments_go_when_the_log_is_too_large(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    size = three_segments(log)
    log.config = Place(tmp_path / "x", retention_bytes=2 * size + 1).config
    assert enforce(log, NOW) == []
    log.config = Place(tmp_path / "x", retention_bytes=2 * size).config
    (removed,) = enforce(log, NOW)
    assert removed[:2] == (0, size)
    assert "retention.bytes" in removed.reason
    assert log.start_offset == 2
    assert values(log) == [f"value {number}" for number in range(2, 6)]


def test_segments_go_when_their_newest_record_is_too_old(tmp_path: Path) -> None:
    log = Place(tmp_path, retention_ms=1_000).create()
    for first, second in ((10, 500), (600, 400), (900, 1)):
        log.append_as_leader(timed_batch(first), 0)
        log.append_as_leader(timed_batch(second), 0)
        log.roll()
    assert enforce(log, 1_500) == []
    assert [removed.base_offset for removed in enforce(log, 1_601)] == [0, 2]
    assert log.start_offset == 4


def test_a_last_segment_that_is_too_old_is_rolled_and_goes(tmp_path: Path) -> None:
    log = Place(tmp_path, retention_ms=1_000).create()
    fill(log, 3)
    log.append_as_leader(batch_of("mine", producer=(5, 0, 0)), 0)
    assert len(enforce(log, NOW + 1_001)) == 1
    assert (log.start_offset, log.end_offset, log.size) == (4, 4, 0)
    assert enforce(log, NOW + 10_000) == []
    assert log.append_as_leader(batch_of("next"), 0).base_offset == 4
    assert log.append_as_leader(batch_of("mine", producer=(5, 0, 0)), 0).duplicate


def test_segments_without_times_age_from_when_they_were_seen(tmp_path: Path) -> None:
    place = Place(tmp_path, retention_ms=1_000)
    log = place.create()
    log.append_as_leader(timed_batch(-1), 0)
    assert enforce(log, NOW + 1_000) == []
    assert len(enforce(log, NOW + 1_001)) == 1


def test_what_is_not_replicated_stays(tmp_path: Path) -> None:
    log = Place(tmp_path, retention_ms=1).create()
    three_segments(log)
    assert [removed.base_offset for removed in enforce(log, NOW * 2, high_watermark=3)] == [0]


def test_a_compacted_topic_loses_nothing_by_age_or_size(tmp_path: Path) -> None:
    log = Place(tmp_path, cleanup_policy="compact", retention_ms=1, retention_bytes=1).create()
    three_segments(log)
    assert enforce(log, NOW * 2) == []
    log.delete_before(2)
    assert [removed.base_offset for removed in enforce(log, NOW * 2)] == [0]


def test_unlimited_retention_keeps_all(tmp_path: Path) -> None:
    log = Place(tmp_path, retention_ms=-1, retention_bytes=-1).create()
    three_segments(log)
    assert enforce(log, NOW * 2) == []


def test_deleted_records_cannot_be_read_and_their_segments_go(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    three_segments(log)
    log.delete_before(3)
    assert values(log) == ["value 3", "value 4", "value 5"]
    assert [removed.base_offset for removed in enforce(log, NOW)] == [0]
    assert log.start_offset == 3
    log.delete_before(1)
    assert log.start_offset == 3
    with pytest.raises(KafkaError) as caught:
        log.delete_before(7)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_files_of_removed_segments_go_after_the_delay(tmp_path: Path) -> None:
    place = Place(tmp_path, file_delete_delay_ms=60_000)
    log = place.create()
    three_segments(log)
    log.delete_before(2)
    enforce(log, NOW)
    retired = place.names(".deleted")
    assert f"{0:020d}.log.deleted" in retired
    assert not any(name.startswith(f"{0:020d}") for name in place.names() if not name.endswith(".deleted"))
    assert log.remove_retired(NOW + 59_999) == 0
    assert log.remove_retired(NOW + 60_000) == len(retired)
    assert place.names(".deleted") == []


def test_a_deleted_log_is_out_of_the_way_at_once(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    fill(log, 2)
    name = log.delete()
    assert name == "orders-0.000102030405060708090a0b0c0d0e0f-delete"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with pytest.raises(KafkaError, match="was deleted"):
        fill(log, 1)
    assert values(place.create()) == []
