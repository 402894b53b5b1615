from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log.log import Log
from ottla.log.recover import Recovery
from ottla.record.batch import HEADER_SIZE, Batch
from ottla.wire.errors import ErrorCode, KafkaError

from .samples import NOW, Place, batch_of, fill, read_all, timed_batch, values

FIRST = f"{0:020d}"


def report(log: Log) -> Recovery:
    assert log.recovery is not None
    return log.recovery


def expected(count: int) -> list[str]:
    return [f"value {number}" for number in range(count)]


def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path / "a", segment_bytes=1_048_576, index_interval_bytes=1_000)
    log = place.create()
    fill(log, 30, size=90_000)
    log.append_as_leader(batch_of("mine", producer=(1, 0, 0)), 5)
    log = place.crash(tmp_path / "b").recover()
    assert (log.start_offset, log.end_offset, log.recovery_point) == (0, 31, 0)
    assert values(log) == [*expected(30), "mine"]
    assert report(log).cuts == []
    assert report(log).scanned_bytes == log.size
    assert log.epochs.entries == [(0, 0), (5, 30)]
    assert log.append_as_leader(batch_of("mine", producer=(1, 0, 0)), 5).duplicate
    fill(log, 1, first=31)
    assert log.end_offset == 32


def test_only_what_follows_the_recovery_point_is_scanned(tmp_path: Path) -> None:
    place = Place(tmp_path / "a", index_interval_bytes=500)
    log = place.create()
    fill(log, 200)
    log.roll()
    fill(log, 200, first=200)
    log.flush()
    fill(log, 5, first=400)
    log = place.crash(tmp_path / "b").recover(recovery_point=400)
    assert values(log) == expected(405)
    assert report(log).rebuilt == []
    assert report(log).scanned_bytes < log.size // 405 * 15


def test_an_idle_log_is_recovered_without_scanning_it(tmp_path: Path) -> None:
    place = Place(tmp_path / "a", index_interval_bytes=500)
    fill(place.reopen(place.create()), 1)
    log = place.recover()
    fill(log, 300, first=1)
    end = log.end_offset
    log.close()
    log = place.crash(tmp_path / "b").recover(recovery_point=end)
    assert (log.end_offset, log.recovery_point) == (end, end)
    assert report(log).scanned_bytes < 1_500


@pytest.mark.parametrize("left", [1, HEADER_SIZE - 1, HEADER_SIZE, HEADER_SIZE + 20])
def test_a_torn_batch_at_the_end_is_cut_and_reported(tmp_path: Path, left: int) -> None:
    place = Place(tmp_path / "a")
    log = place.create()
    fill(log, 9)
    whole = log.size
    fill(log, 1, first=9)
    crashed = place.crash(tmp_path / "b")
    path = crashed.folder / f"{FIRST}.log"
    path.write_bytes(path.read_bytes()[: whole + left])
    log = crashed.recover()
    assert values(log) == expected(9)
    assert path.stat().st_size == whole == log.size
    assert report(log).cut_bytes == left
    (cut,) = report(log).cuts
    assert cut.startswith(f"{left} bytes from byte {whole} of orders-0/{FIRST}.log on: ")
    fill(log, 2, first=9)
    assert values(log) == expected(11)


def test_zeros_that_a_power_cut_left_are_cut(tmp_path: Path) -> None:
    place = Place(tmp_path / "a", index_interval_bytes=300)
    log = place.create()
    fill(log, 10)
    log.flush()
    crashed = place.crash(tmp_path / "b")
    for suffix in ("log", "index", "timeindex"):
        with (crashed.folder / f"{FIRST}.{suffix}").open("ab") as file:
            file.write(bytes(4_096))
    log = crashed.recover(recovery_point=9)
    assert values(log) == expected(10)
    assert report(log).cut_bytes == 4_096
    assert len(report(log).rebuilt) == 2
    fill(log, 10, first=10)
    assert values(log) == expected(20)
    assert [record.offset for record in read_all(log, 15)] == [15, 16, 17, 18, 19]


def test_what_follows_a_damaged_batch_goes_with_its_segments(tmp_path: Path) -> None:
    place = Place(tmp_path / "a")
    log = place.create()
    for number in range(3):
        fill(log, 4, first=number * 4)
        log.roll()
    crashed = place.crash(tmp_path / "b")
    path = crashed.folder / f"{4:020d}.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 4 + HEADER_SIZE + 10] ^= 0xFF
    path.write_bytes(data)
    log = crashed.recover()
    assert values(log) == expected(5)
    assert "CRC" in report(log).cuts[0]
    assert len(report(log).cuts) == 3
    assert crashed.names(".log") == [f"{FIRST}.log", f"{4:020d}.log"]
    assert crashed.names(".snapshot") == [f"{4:020d}.snapshot"]
    fill(log, 8, first=5)
    assert values(log) == expected(13)


def test_synced_records_that_are_lost_are_told(tmp_path: Path) -> None:
    place = Place(tmp_path / "a")
    log = place.create()
    fill(log, 10)
    log.flush()
    crashed = place.crash(tmp_path / "b")
    path = crashed.folder / f"{FIRST}.log"
    path.write_bytes(path.read_bytes()[:-1])
    log = crashed.recover(recovery_point=10)
    assert (log.end_offset, log.recovery_point) == (9, 9)
    assert "offsets 9 to 9 had been synced, and are lost" in report(log).cuts


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize(
    ("base", "harm"),
    [
        *((base, harm) for base in (0, 50) for harm in ("missing", "odd size", "beyond the end")),
        # The order of entries is looked at only where a crash can have spoilt it.
        (50, "swapped"),
    ],
)
def test_a_missing_or_damaged_index_is_rebuilt(tmp_path: Path, harm: str, suffix: str, base: int) -> None:
    place = Place(tmp_path / "a", index_interval_bytes=300)
    log = place.create()
    for number in range(100):
        if number == 50:
            log.roll()
        log.append_as_leader(timed_batch(NOW + number), 0)
    log.flush()
    original = (place.folder / f"{base:020d}.{suffix}").read_bytes()
    crashed = place.crash(tmp_path / "b")
    path = crashed.folder / f"{base:020d}.{suffix}"
    if harm == "missing":
        path.unlink()
    elif harm == "odd size":
        path.write_bytes(original + b"\0\0\0")
    elif harm == "beyond the end":
        path.write_bytes(original + b"\x7f" * (8 if suffix == "index" else 12))
    else:
        path.write_bytes(original[-12:] + original[:-12])
    log = crashed.recover(recovery_point=100)
    # Of a segment that is scanned anyway, entries that are missing or follow on the recovery point are nothing special.
    if base == 0 or harm in ("odd size", "swapped"):
        assert any(suffix in line for line in report(log).rebuilt)
    assert [record.timestamp for record in read_all(log)] == [NOW + number for number in range(100)]
    for number in (0, 7, 49, 50, 77, 99):
        assert log.offset_for_time(NOW + number) == (number, NOW + number, 0)
        assert read_all(log, number)[0].offset == number
    if base == 0:
        assert path.read_bytes() == original


def test_leftovers_of_unfinished_work_are_removed(tmp_path: Path) -> None:
    place = Place(tmp_path / "a")
    log = place.create()
    fill(log, 3)
    leftovers = [f"{7:020d}.log.deleted", f"{0:020d}.log.cleaned", f"{3:020d}.index", "leader-epoch-checkpoint.tmp"]
    leftovers += [f"{0:020d}.timeindex.swap", f"{99:020d}.snapshot"]
    for name in leftovers:
        (place.folder / name).write_bytes(b"left")
    log = place.recover()
    assert sorted(report(log).removed) == sorted(leftovers)
    assert not set(leftovers) & set(place.names())
    assert values(log) == expected(3)


def test_a_finished_swap_takes_the_place_of_what_it_covers(tmp_path: Path) -> None:
    place = Place(tmp_path / "a")
    log = place.create()
    for number in range(3):
        fill(log, 2, first=number * 2)
        log.roll()
    fill(log, 1, first=6)
    folder = place.folder
    batches = (folder / f"{FIRST}.log").read_bytes()
    size = len(batches) // 2
    kept = batches[size:] + (folder / f"{2:020d}.log").read_bytes()[size:]
    (folder / f"{FIRST}.log.swap").write_bytes(kept)
    log = place.recover()
    assert values(log) == ["value 1", "value 3", "value 4", "value 5", "value 6"]
    assert place.names(".log") == [f"{offset:020d}.log" for offset in (0, 4, 6)]
    assert place.names(".swap") == []


def test_a_folder_without_segments_becomes_an_empty_log(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.folder.mkdir()
    log = place.recover(start_offset=40)
    assert (log.start_offset, log.end_offset) == (40, 40)
    fill(log, 1)
    assert place.recover().end_offset == 41


def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    fill(log, 6)
    log = place.recover(start_offset=4)
    assert values(log) == ["value 4", "value 5"]
    log = place.recover(start_offset=100)
    assert (log.start_offset, log.end_offset, log.size) == (100, 100, 0)
    assert report(log).cut_bytes > 0


def test_damaged_epochs_are_found_again_in_the_batches(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    for number in range(6):
        log.append_as_leader(batch_of("x"), number // 2)
    log.flush()
    (place.folder / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n")
    log = place.recover(recovery_point=6)
    assert log.epochs.entries == [(0, 0), (1, 2), (2, 4)]
    assert any("leader-epoch-checkpoint" in line for line in report(log).rebuilt)


def test_epochs_of_records_that_were_cut_are_forgotten(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    for number in range(6):
        log.append_as_leader(batch_of("x"), number // 2)
    size = log.size
    log.flush()
    path = place.folder / f"{FIRST}.log"
    path.write_bytes(path.read_bytes()[: size // 2])
    assert place.recover().epochs.entries == [(0, 0), (1, 2)]


def test_producers_come_from_the_newest_sound_snapshot_and_the_batches_after_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    for number in range(9):
        log.append_as_leader(batch_of("x", producer=(1, 0, number)), 0)
        if number % 3 == 2:
            log.roll()
    (place.folder / f"{9:020d}.snapshot").write_bytes(b"spoilt")
    log = place.recover()
    assert log.producers.states[1].last_sequence == 8
    for number in range(4, 9):
        assert log.append_as_leader(batch_of("x", producer=(1, 0, number)), 0).base_offset == number


def test_rot_in_synced_batches_does_not_keep_the_log_from_opening(tmp_path: Path) -> None:
    place = Place(tmp_path, index_interval_bytes=200)
    log = place.create()
    fill(log, 10)
    log.append_as_leader(batch_of("mine", producer=(1, 0, 0)), 0)
    fill(log, 10, first=11)
    log.flush()
    path = place.folder / f"{FIRST}.log"
    content = bytearray(path.read_bytes())
    third = log.segments[0].find(3)
    assert third is not None
    content[third.position + 16] = 9
    path.write_bytes(content)
    log = place.recover(recovery_point=21)
    assert log.end_offset == 21
    assert "magic 9" in report(log).damaged[0]
    assert [record.offset for record in read_all(log, 10)] == list(range(10, 21))
    with pytest.raises(KafkaError, match="magic 9") as caught:
        log.read(3, 100, end=21)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_recovery_can_be_repeated(tmp_path: Path) -> None:
    place = Place(tmp_path)
    fill(place.create(), 20)
    path = place.folder / f"{FIRST}.log"
    path.write_bytes(path.read_bytes()[:-5])
    first = place.recover()
    assert report(first).cut_bytes > 0
    second = place.recover()
    assert report(second).cuts == []
    assert values(second) == expected(19)


def in_a_base_offset(content: bytearray, at: int) -> bool:
    """Whether a byte belongs to a base offset, or to a leader epoch: the CRC covers neither."""
    position = 0
    while position + 12 <= at:
        size = int.from_bytes(content[position + 8 : position + 12], "big") + 12
        if at < position + size:
            break
        position += size
    return at - position < 8 or 12 <= at - position < 16


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_is_cut_or_flipped_in_the_unsynced_tail_a_sound_prefix_remains(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("log")
    place = Place(root / "a", index_interval_bytes=data.draw(st.integers(0, 800)))
    log = place.create()
    synced = 0
    count = data.draw(st.integers(1, 40))
    for number in range(count):
        producer = (1, 0, number) if number % 2 else None
        log.append_as_leader(batch_of(f"value {number}", producer=producer and (1, 0, number // 2)), number // 10)
        if data.draw(st.integers(0, 9)) == 0:
            log.roll()
        if data.draw(st.integers(0, 9)) == 0:
            synced = log.flush()
    unsynced_from = {}
    for segment in log.segments:
        first = segment.find(synced)
        unsynced_from[segment.name] = segment.size if first is None else first.position
    crashed = place.crash(root / "b")
    for path in sorted(crashed.folder.glob("*.log")):
        content = bytearray(path.read_bytes())
        start = unsynced_from[f"orders-0/{path.name}"]
        if start >= len(content) or data.draw(st.booleans()):
            continue
        at = data.draw(st.integers(start, len(content) - 1))
        if data.draw(st.booleans()):
            del content[at:]
        elif not in_a_base_offset(content, at):
            content[at] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
    for path in crashed.folder.glob("*index"):
        if synced == 0 and data.draw(st.booleans()):
            path.write_bytes(data.draw(st.binary(max_size=40)))
    log = crashed.recover(recovery_point=synced)
    found = values(log)
    assert synced <= len(found) <= count
    assert found == expected(len(found))
    assert log.end_offset == len(found)
    fill(log, 5, first=log.end_offset)
    assert values(log) == expected(len(found) + 5)
    for offset in range(log.end_offset):
        piece = log.read(offset, 1, end=log.end_offset)
        assert piece is not None
        assert Batch(piece.read()).base_offset == offset
