import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.log.files import OpenFiles
from ottla.log.index import OFFSET_ENTRY
from ottla.log.log import Log
from ottla.log.walk import WouldWaitError
from ottla.ports.disk import SystemDisk, SystemFile
from ottla.record.batch import Batch, batches
from ottla.wire.errors import ErrorCode, KafkaError

from .samples import FOLDER, TOPIC_ID, Place, StillClock, batch_of, config_of, enforce, fill, read_all


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Ten batches of three records in two segments."""
    log = Place(tmp_path, index_interval_bytes=200).create()
    for number in range(10):
        log.append_as_leader(batch_of("a", "b", "c"), 0)
        if number == 5:
            log.roll()
    return log


def bases(log: Log, offset: int, max_bytes: int = 10_000, end: int | None = None, **how: bool) -> list[int]:
    piece = log.read(offset, max_bytes, end=log.end_offset if end is None else end, **how)
    if piece is None:
        return []
    return [batch.base_offset for batch in batches(piece.read()) if isinstance(batch, Batch)]


def test_a_read_begins_with_the_batch_that_holds_the_offset(log: Log) -> None:
    assert bases(log, 0) == [0, 3, 6, 9, 12, 15]
    assert bases(log, 4) == bases(log, 5) == bases(log, 3) == [3, 6, 9, 12, 15]
    assert bases(log, 17) == [15]
    assert bases(log, 18) == [18, 21, 24, 27]
    assert bases(log, 29) == [27]


def test_a_read_at_the_end_finds_nothing(log: Log) -> None:
    assert bases(log, 30) == []


def test_offsets_outside_of_the_log_are_refused(log: Log) -> None:
    log.delete_before(4)
    for offset in (-1, 3, 31):
        with pytest.raises(KafkaError, match="is not between 4 and 30") as caught:
            log.read(offset, 100, end=30)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert bases(log, 4) == [3, 6, 9, 12, 15]


def test_nothing_reaches_beyond_the_end_that_was_asked_for(log: Log) -> None:
    assert bases(log, 0, end=9) == [0, 3, 6]
    assert bases(log, 0, end=11) == [0, 3, 6]
    assert bases(log, 9, end=9) == []
    assert bases(log, 9, end=11) == []
    assert bases(log, 15, end=18) == [15]
    assert bases(log, 18, end=24) == [18, 21]
    assert bases(log, 0, end=1_000) == [0, 3, 6, 9, 12, 15]


def test_reads_are_cut_at_max_bytes_even_inside_a_batch(log: Log) -> None:
    size = log.size // 10
    piece = log.read(0, 2 * size + 7, end=30)
    assert piece is not None
    assert len(piece) == 2 * size + 7
    walk = batches(piece.read())
    assert len(list(walk)) == 2
    assert len(walk.remainder) == 7


def test_the_first_batch_comes_whole_if_at_least_one_is_wanted(log: Log) -> None:
    size = log.size // 10
    assert bases(log, 3, max_bytes=1, minimum_one=True) == [3]
    assert bases(log, 3, max_bytes=0, minimum_one=True) == [3]
    piece = log.read(3, 1, end=30, minimum_one=False)
    assert piece is not None
    assert len(piece) == 1
    assert log.read(3, 0, end=30, minimum_one=False) is None
    assert len(bases(log, 3, max_bytes=size, minimum_one=False)) == 1


def test_segments_without_the_offset_are_passed_over(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    for offset in (0, 5, 9):
        batch = batch_of("x")
        batch.assign(offset, 0)
        log.append_as_follower(batch)
        log.roll()
    assert bases(log, 1) == [5]
    assert bases(log, 6) == [9]
    assert [record.offset for record in read_all(log)] == [0, 5, 9]


def test_a_read_that_must_not_wait_says_so_when_it_knows_nothing_yet(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    fill(log, 5)
    assert log.read(0, 100, end=5, wait=False) is not None
    log = place.reopen(log)
    with pytest.raises(WouldWaitError):
        log.read(0, 100, end=5, wait=False)
    assert log.read(0, 100, end=5) is not None
    assert log.read(0, 100, end=5, wait=False) is not None


def test_a_slice_can_be_sent_after_its_segment_is_gone(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = place.create()
    fill(log, 3)
    piece = log.read(0, 10_000, end=3)
    log.roll()
    log.delete_before(3)
    assert enforce(log, place.clock.now_ms())
    log.remove_retired(2**62)
    assert piece is not None
    assert len(list(batches(piece.read()))) == 3


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    counts=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3_000), st.booleans()), min_size=1, max_size=40),
    interval=st.integers(0, 3_000),
    data=st.data(),
)
def test_whatever_the_batches_every_offset_is_found(
    tmp_path_factory: pytest.TempPathFactory,
    counts: list[tuple[int, int, bool]],
    interval: int,
    data: st.DataObject,
) -> None:
    log = Place(tmp_path_factory.mktemp("log"), index_interval_bytes=interval).create()
    starts: list[int] = []
    for count, size, roll in counts:
        starts += [log.end_offset] * count
        log.append_as_leader(batch_of(*[b"x" * size] * count), 0)
        if roll:
            log.roll()
    offset = data.draw(st.integers(0, log.end_offset - 1))
    end = data.draw(st.integers(0, log.end_offset))
    found = bases(log, offset, max_bytes=10**9, end=end)
    holding = starts[offset]
    next_start = starts.index(holding) + starts.count(holding)
    assert found[:1] == ([holding] if offset < end and next_start <= end else [])
    assert all(starts.index(base) + starts.count(base) <= end for base in found)


def test_readers_in_threads_see_whole_batches_while_appends_go_on(tmp_path: Path) -> None:
    log = Place(tmp_path, index_interval_bytes=500, segment_bytes=1_048_576).create()
    fill(log, 1, size=3_000)
    stop = threading.Event()
    problems: list[BaseException] = []

    def follow() -> None:
        try:
            offset = 0
            while not stop.is_set() or offset < log.end_offset:
                end = log.end_offset
                piece = log.read(offset, 50_000, end=end)
                for batch in batches(piece.read()) if piece else ():
                    assert isinstance(batch, Batch)
                    batch.check_crc()
                    assert batch.base_offset == offset
                    assert batch.next_offset <= end
                    offset = batch.next_offset
        except BaseException as error:  # noqa: BLE001 - shown by the main thread
            problems.append(error)

    threads = [threading.Thread(target=follow) for _ in range(2)]
    for thread in threads:
        thread.start()
    fill(log, 1_500, size=3_000, first=1)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert not problems
    assert len(log.segments) > 3


def test_a_flipped_bit_in_an_index_never_makes_a_reader_skip_a_record(tmp_path: Path) -> None:
    place = Place(tmp_path, index_interval_bytes=300)
    log = place.create()
    fill(log, 60)
    log.roll()
    (name,) = place.names(".index")[:1]
    index = place.folder / name
    sound = index.read_bytes()
    assert len(sound) >= 80
    for position in range(len(sound)):
        for bit in (0, 3, 7):
            damaged = bytearray(sound)
            damaged[position] ^= 1 << bit
            index.write_bytes(damaged)
            reopened = place.reopen_as_is(log)
            for offset in range(0, 60, 7):
                piece = reopened.read(offset, 10, end=60)
                assert piece is not None
                (first, *_) = batches(piece.read())
                assert isinstance(first, Batch)
                assert first.base_offset == offset
    index.write_bytes(sound)


class CountingFile(SystemFile):
    """A file that counts how often it is read."""

    reads = 0

    def read_cached(self, position: int, length: int) -> bytes | bytearray | memoryview | None:
        CountingFile.reads += 1
        return super().read_cached(position, length)


class CountingDisk(SystemDisk):
    def open(self, name: str, *, create: bool = False) -> SystemFile:
        return CountingFile(self._path(name), create)


@pytest.mark.parametrize("value_bytes", [10, 3_000, 9_000, 40_000])
def test_batches_of_any_size_are_found_at_any_offset_and_large_ones_by_one_read_each(
    tmp_path: Path, value_bytes: int
) -> None:
    disk = CountingDisk(str(tmp_path))
    log = Log.create(disk, OpenFiles(disk), FOLDER, config_of(), StillClock(), TOPIC_ID)
    # More than index entries are kept in memory, and than are read at once.
    for _ in range(300):
        log.append_as_leader(batch_of("a" * value_bytes, "b", "c"), 0)
    for offset in range(900):
        found = log.read(offset, 100, end=900, wait=False)
        assert found is not None
        assert Batch(found.read()).base_offset == offset // 3 * 3
    CountingFile.reads = 0
    for offset in range(3, 750, 3):
        log.read(offset, 100, end=900, wait=False)
    reads = CountingFile.reads / 249
    # From one index entry to the next there is a read, or two; the index itself is read once in a while.
    assert reads < (1.1 if value_bytes > 8_192 else 2.1)


def test_an_index_entry_that_is_wrong_misleads_nobody(tmp_path: Path) -> None:
    log = Place(tmp_path).create()
    for _ in range(100):
        log.append_as_leader(batch_of("a" * 20_000, "b", "c"), 0)
    log.roll()
    log.flush()
    index = log.segments[0].offsets
    positions = [index.find(last)[1] for last in range(5, 300, 3)]  # type: ignore[index]
    for changed in (positions[50] + 1, positions[52]):
        place = (tmp_path / "orders-0" / "00000000000000000000.index").open("r+b")
        with place:
            place.seek(50 * 8 + 4)
            place.write(changed.to_bytes(4, "big"))
        # A new look at the file, as after a restart.
        index.forget_unwritten()
        fresh = type(index)(OpenFiles(SystemDisk(str(tmp_path))), index.name, OFFSET_ENTRY)
        log.segments[0].offsets = fresh
        for offset in range(300):
            found = log.read(offset, 100, end=300)
            assert found is not None
            assert Batch(found.read()).base_offset == offset // 3 * 3
