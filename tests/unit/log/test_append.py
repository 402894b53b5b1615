import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import unpack

import pytest

from ottla.log.segment import MOST_UNWRITTEN
from ottla.record.batch import Batch
from ottla.wire.errors import ErrorCode, KafkaError

from .samples import NOW, TOPIC_ID, Place, batch_of, fill, read_all, timed_batch, values


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """The operating system itself refuses to let any file grow beyond this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_new_log_is_a_folder_as_kafka_makes_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    assert place.names() == ["00000000000000000000.log", "partition.metadata"]
    assert (place.folder / "partition.metadata").read_text() == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert log.topic_id == TOPIC_ID
    assert (log.start_offset, log.end_offset, log.size) == (0, 0, 0)
    assert len(place.files) == 0


def test_a_folder_that_is_there_is_not_taken_over(tmp_path: Path) -> None:
    place = Place(tmp_path)
    fill(place.create(), 1)
    with pytest.raises(FileExistsError, match="orders-0 exists"):
        place.create()


def test_batches_get_offsets_and_epoch_and_lie_in_the_file_as_sent(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    first, second = batch_of("a", "b", "c"), batch_of("d")
    assert log.append_as_leader(first, 7)[:2] == (0, 2)
    assert log.append_as_leader(second, 8)[:2] == (3, 3)
    data = (place.folder / "00000000000000000000.log").read_bytes()
    assert data == bytes(first.data) + bytes(second.data)
    stored = Batch(data, first.size)
    stored.check_crc()
    assert (stored.base_offset, stored.leader_epoch) == (3, 8)
    assert log.epochs.entries == [(7, 0), (8, 3)]


def test_log_append_time_is_stamped_where_the_topic_wants_it(tmp_path: Path) -> None:
    place = Place(tmp_path, message_timestamp_type="LogAppendTime")
    log = place.create()
    place.clock.time_ms = NOW + 5
    assert log.append_as_leader(timed_batch(1, 2), 0).log_append_time == NOW + 5
    assert [record.timestamp for record in read_all(log)] == [NOW + 5, NOW + 5]
    place.config = log.config = Place(tmp_path / "other").config
    assert log.append_as_leader(timed_batch(1, 2), 0).log_append_time == -1


def test_a_duplicate_is_told_with_its_first_offset_and_not_written(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    fill(log, 3)
    log.append_as_leader(batch_of("x", "y", producer=(1, 0, 0)), 0)
    log.append_as_leader(batch_of("z", producer=(1, 0, 2)), 0)
    again = log.append_as_leader(batch_of("x", "y", producer=(1, 0, 0)), 0)
    assert again == (3, 4, -1, True, False)
    assert log.end_offset == 6
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(batch_of("gap", producer=(1, 0, 9)), 0)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.end_offset == 6


def test_a_duplicate_on_a_log_append_time_topic_keeps_its_time(tmp_path: Path) -> None:
    place = Place(tmp_path, message_timestamp_type="LogAppendTime")
    log = place.create()
    log.append_as_leader(batch_of("x", producer=(1, 0, 0)), 0)
    place.clock.time_ms += 1_000
    assert log.append_as_leader(batch_of("x", producer=(1, 0, 0)), 0).log_append_time == NOW


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = Place(tmp_path, segment_bytes=1_048_576).create()
    with pytest.raises(KafkaError, match=r"segment\.bytes is 1048576") as caught:
        log.append_as_leader(batch_of(b"x" * 1_048_576), 0)
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_segments_roll_when_they_are_full(tmp_path: Path) -> None:
    place = Place(tmp_path, segment_bytes=1_048_576)
    log = place.create()
    rolled = [log.append_as_leader(batch_of(b"x" * 300_000), 0).rolled for _ in range(7)]
    assert rolled == [False, False, False, True, False, False, True]
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]
    assert [name for name in place.names() if name.startswith(f"{3:020d}")] == [
        f"{3:020d}{suffix}" for suffix in (".index", ".log", ".snapshot", ".timeindex")
    ]
    assert [record.offset for record in read_all(log)] == list(range(7))


def test_segments_roll_by_the_age_of_their_batches(tmp_path: Path) -> None:
    log = Place(tmp_path, segment_ms=1_000).create()
    for timestamp in (5_000, 5_900, 6_000, 6_001, 100, 7_001, 7_002):
        log.append_as_leader(timed_batch(timestamp), 0)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]


def test_segments_roll_by_the_clock_where_batches_have_no_time(tmp_path: Path) -> None:
    place = Place(tmp_path, segment_ms=1_000)
    log = place.create()
    log.append_as_leader(timed_batch(-1), 0)
    place.clock.time_ms += 1_000
    assert not log.append_as_leader(timed_batch(-1), 0).rolled
    place.clock.time_ms += 1
    assert log.append_as_leader(timed_batch(-1), 0).rolled


def test_age_is_known_again_after_a_restart(tmp_path: Path) -> None:
    place = Place(tmp_path, segment_ms=1_000)
    log = place.create()
    log.append_as_leader(timed_batch(5_000), 0)
    log = place.reopen(log)
    assert not log.append_as_leader(timed_batch(6_000), 0).rolled
    assert log.append_as_leader(timed_batch(6_001), 0).rolled


def test_segments_roll_when_an_index_is_full(tmp_path: Path) -> None:
    log = Place(tmp_path, segment_index_bytes=24, index_interval_bytes=0).create()
    fill(log, 9)
    # Every batch but a segment's first has an entry; the time index takes but one, since all times are equal.
    assert [segment.base_offset for segment in log.segments] == [0, 4, 8]


def test_offsets_too_far_from_the_first_roll_a_segment(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    near, far = batch_of("near"), batch_of("far")
    near.assign(2**31 - 1, 0)
    far.assign(2**31, 0)
    log.append_as_follower(near)
    assert log.append_as_follower(far).rolled
    assert [segment.base_offset for segment in log.segments] == [0, 2**31]
    assert values(log) == ["near", "far"]


def test_an_empty_segment_is_replaced_when_the_first_batch_lies_too_far(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    far = batch_of("far")
    far.assign(2**40, 0)
    assert log.append_as_follower(far).rolled
    assert [segment.base_offset for segment in log.segments] == [2**40]
    log.remove_retired(2**62)
    assert place.names(".log") == [f"{2**40:020d}.log"]


def test_a_follower_takes_no_offset_twice(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    fill(log, 2)
    batch = batch_of("again")
    batch.assign(1, 0)
    with pytest.raises(KafkaError) as caught:
        log.append_as_follower(batch)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_index_entries_come_every_few_bytes(tmp_path: Path) -> None:
    place = Place(tmp_path, index_interval_bytes=1_000)
    log = place.create()
    for number in range(20):
        log.append_as_leader(batch_of(b"x" * 332, timestamp=NOW + number), 0)
    size = log.size // 20
    log.flush()
    data = (place.folder / "00000000000000000000.index").read_bytes()
    assert [unpack(">ii", data[at : at + 8]) for at in range(0, len(data), 8)] == [
        (number, number * size) for number in range(3, 20, 3)
    ]
    times = (place.folder / "00000000000000000000.timeindex").read_bytes()
    assert [unpack(">qi", times[at : at + 12]) for at in range(0, len(times), 12)] == [
        (NOW + number, number) for number in range(3, 20, 3)
    ]


def test_a_rolled_segment_ends_its_time_index_with_its_largest_time(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    for timestamp in (10, 30, 20):
        log.append_as_leader(timed_batch(timestamp), 0)
    log.roll()
    times = (place.folder / "00000000000000000000.timeindex").read_bytes()
    assert unpack(">qi", times) == (30, 1)


def test_a_refused_write_leaves_nothing_behind(tmp_path: Path) -> None:
    place = Place(tmp_path, index_interval_bytes=0)
    log = place.create()
    fill(log, 5, size=1_000)
    log.append_as_leader(batch_of("mine", producer=(1, 0, 0)), 0)
    before = (log.end_offset, log.size, log.epochs.entries, [segment.offsets.count for segment in log.segments])
    with files_no_larger_than(log.size + 500), pytest.raises(KafkaError, match="File too large") as caught:
        log.append_as_leader(batch_of(b"x" * 2_000, producer=(1, 0, 1)), 3)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert before == (log.end_offset, log.size, log.epochs.entries, [segment.offsets.count for segment in log.segments])
    assert (place.folder / "00000000000000000000.log").stat().st_size == log.size
    # With room again, the same batch goes through: the refusal did not use up its sequence number.
    assert log.append_as_leader(batch_of(b"x" * 2_000, producer=(1, 0, 1)), 3)[:2] == (6, 6)
    assert [record.offset for record in read_all(log)] == list(range(7))


@pytest.mark.parametrize("refused", [".index", ".timeindex"])
def test_an_index_entry_that_finds_no_room_does_not_lose_the_batch(tmp_path: Path, refused: str) -> None:
    place = Place(tmp_path, index_interval_bytes=0)
    log = place.create()
    fill(log, 3)
    log.flush()
    place.disk.refused = refused
    # Later ones, so that they are in the time index too. An offset is not written without its time.
    fill(log, 3, first=3, timestamp=NOW + 1)
    # They are in memory until somebody wants them on the disk.
    assert log.segments[0].offsets.count == 5
    log.flush()
    assert log.segments[0].offsets.count == 2
    place.disk.refused = None
    fill(log, 2, first=6)
    assert log.segments[0].offsets.count == 4
    assert values(log) == [f"value {number}" for number in range(8)]
    assert [record.offset for record in read_all(log, 4)] == [4, 5, 6, 7]


def test_index_entries_are_written_many_at_a_time(tmp_path: Path) -> None:
    place = Place(tmp_path, index_interval_bytes=0)
    log = place.create()
    index = place.folder / "00000000000000000000.index"
    fill(log, MOST_UNWRITTEN)
    assert not index.exists()
    fill(log, 1, first=MOST_UNWRITTEN)
    assert index.stat().st_size == 8 * MOST_UNWRITTEN
    assert [record.offset for record in read_all(log, 40)] == list(range(40, MOST_UNWRITTEN + 1))


@pytest.mark.parametrize("refused", [".snapshot", ".timeindex", "00000000000000000003.log"])
def test_a_roll_that_the_disk_refuses_can_be_tried_again(tmp_path: Path, refused: str) -> None:
    place = Place(tmp_path)
    log = place.create()
    fill(log, 3)
    place.disk.refused = refused
    with pytest.raises(KafkaError) as caught:
        log.roll()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    fill(log, 1, first=3)
    place.disk.refused = None
    log.roll()
    fill(log, 1, first=4)
    assert [segment.base_offset for segment in log.segments] == [0, 4]
    assert values(log) == [f"value {number}" for number in range(5)]
