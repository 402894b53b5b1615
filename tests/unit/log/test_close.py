import threading
from pathlib import Path

import pytest

from ottla.log.log import Log
from ottla.log.state import LogState
from ottla.wire.errors import ErrorCode, KafkaError

from .samples import FOLDER, NOW, Place, batch_of, enforce, fill, read_all, values


def test_a_closed_log_opens_without_touching_a_file(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    fill(log, 5)
    log.roll()
    fill(log, 2, first=5)
    state = log.close()
    for path in place.folder.iterdir():
        path.rename(tmp_path / path.name)
    place.folder.rmdir()
    log = Log.open(place.disk, place.files, FOLDER, place.config, place.clock, state=state)
    assert (log.start_offset, log.end_offset, log.recovery_point, log.recovery) == (0, 7, 7, None)
    assert [segment.base_offset for segment in log.segments] == [0, 5]
    assert log.last_stable_offset(7) == 7
    assert log.close() == state
    assert len(place.files) == 0


def test_a_reopened_log_goes_on_where_it_was(tmp_path: Path) -> None:
    place = Place(tmp_path, index_interval_bytes=300)
    log = place.create()
    fill(log, 10)
    log.append_as_leader(batch_of("x", producer=(1, 0, 0)), 3)
    log = place.reopen(log)
    assert log.epochs.entries == [(0, 0), (3, 10)]
    assert log.append_as_leader(batch_of("x", producer=(1, 0, 0)), 3).duplicate
    fill(log, 10, first=11)
    assert [record.offset for record in read_all(log, 7)] == list(range(7, 21))
    assert log.offset_for_time(NOW) == (0, NOW, 0)


def test_all_five_batches_of_a_producer_are_known_after_a_restart(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    for number in range(7):
        log.append_as_leader(batch_of("x", producer=(1, 0, number)), 0)
    log = place.reopen(place.reopen(log))
    assert [log.append_as_leader(batch_of("x", producer=(1, 0, n)), 0)[:4:3] for n in range(2, 7)] == [
        (number, True) for number in range(2, 7)
    ]
    assert log.append_as_leader(batch_of("x", producer=(1, 0, 7)), 0).base_offset == 7


def test_closing_twice_keeps_one_snapshot_besides_those_of_segments(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    for number in range(4):
        fill(log, 2, first=number * 2)
        log = place.reopen(log)
    assert place.names(".snapshot") == [f"{8:020d}.snapshot"]
    log.roll()
    fill(log, 1)
    place.reopen(log)
    assert place.names(".snapshot") == [f"{8:020d}.snapshot", f"{9:020d}.snapshot"]


def test_a_lost_snapshot_is_made_up_from_the_log(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    log.append_as_leader(batch_of("x", producer=(1, 0, 0)), 0)
    state = log.close()
    for name in place.names(".snapshot"):
        (place.folder / name).unlink()
    log = Log.open(place.disk, place.files, FOLDER, place.config, place.clock, state=state)
    assert log.append_as_leader(batch_of("x", producer=(1, 0, 0)), 0).duplicate


def test_files_changed_by_hand_are_not_written_to(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    fill(log, 2)
    state: LogState = log.close()
    with (place.folder / f"{0:020d}.log").open("ab") as file:
        file.write(b"graffiti")
    log = Log.open(place.disk, place.files, FOLDER, place.config, place.clock, state=state)
    with pytest.raises(KafkaError, match="changed by hand") as caught:
        fill(log, 1)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_flush_syncs_batches_indexes_names_and_epochs_before_the_recovery_point_moves(tmp_path: Path) -> None:
    place = Place(tmp_path, index_interval_bytes=100)
    log = place.create()
    fill(log, 3)
    assert log.recovery_point == 0
    assert log.flush() == 3
    stem = f"{FOLDER}/{0:020d}"
    assert place.disk.synced == [
        f"{stem}.log",
        f"{stem}.index",
        f"{stem}.timeindex",
        f"{FOLDER}/",
        "/",
        f"{FOLDER}/",
    ]
    assert (place.folder / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    place.disk.synced.clear()
    assert log.flush() == 3
    assert place.disk.synced == []
    fill(log, 1)
    log.flush()
    assert place.disk.synced == [f"{stem}.log", f"{stem}.index"]


def test_a_flush_up_to_an_offset_leaves_later_segments_alone(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    fill(log, 2)
    log.roll()
    fill(log, 2, first=2)
    assert log.flush(up_to=2) == 2
    assert f"{FOLDER}/{2:020d}.log" not in place.disk.synced
    assert log.flush(up_to=100) == 4


def test_after_a_failed_sync_nothing_more_is_promised(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    fill(log, 2)
    place.disk.refused = ".log"
    with pytest.raises(KafkaError) as caught:
        log.flush()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    place.disk.refused = None
    for refused in (log.flush, log.close, lambda: fill(log, 1)):
        with pytest.raises(KafkaError, match="could not be brought to the disk"):
            refused()
    assert log.recovery_point == 0
    assert values(log) == ["value 0", "value 1"]


def test_flushes_in_a_thread_keep_up_with_appends_rolls_and_retention(tmp_path: Path) -> None:
    place = Place(tmp_path, segment_bytes=1_048_576, index_interval_bytes=0, retention_bytes=3_000_000)
    log = place.create()
    stop = threading.Event()
    problems: list[BaseException] = []

    def flush() -> None:
        try:
            while not stop.is_set():
                log.flush()
                log.remove_retired(2**62)
        except BaseException as error:  # noqa: BLE001 - shown by the main thread
            problems.append(error)

    thread = threading.Thread(target=flush)
    thread.start()
    for number in range(100):
        fill(log, 1, size=100_000, first=number)
        enforce(log, NOW)
    stop.set()
    thread.join(30)
    assert not problems
    assert log.start_offset > 50
    log.flush()
    recovered = place.crash(tmp_path / "copy").recover(log.recovery_point, log.start_offset)
    assert recovered.end_offset == 100
    assert recovered.recovery is not None
    assert recovered.recovery.cuts == []


def test_a_flush_of_a_deleted_log_writes_nothing_into_one_of_the_same_name(tmp_path: Path) -> None:
    place = Place(tmp_path, index_interval_bytes=0)
    old = place.create()
    fill(old, 5)
    old.delete()
    new = place.create()
    fill(new, 1)
    # As a flush does that was under way meanwhile.
    old.segments[0].sync_indexes()
    new.flush()
    assert not (place.folder / "00000000000000000000.index").exists()
    fill(new, 3, first=1)
    new.flush()
    assert (place.folder / "00000000000000000000.index").stat().st_size == 3 * 8
    assert values(new) == [f"value {number}" for number in range(4)]
