import threading
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log.files import OpenFiles
from ottla.log.index import OFFSET_ENTRY, TIME_ENTRY, SparseIndex
from ottla.log.walk import WouldWaitError
from ottla.ports import SystemDisk


@pytest.fixture
def files(tmp_path: Path) -> OpenFiles:
    return OpenFiles(SystemDisk(str(tmp_path)))


def filled(files: OpenFiles, count: int, name: str = "a.index") -> SparseIndex:
    index = SparseIndex(files, name, OFFSET_ENTRY)
    for number in range(count):
        index.append(number * 10, number * 4_000)
    index.write_out()
    return index


def test_entries_lie_in_the_file_as_kafka_has_them(files: OpenFiles, tmp_path: Path) -> None:
    filled(files, 2)
    times = SparseIndex(files, "a.timeindex", TIME_ENTRY)
    times.append(1_700_000_000_000, 42)
    times.write_out()
    assert (tmp_path / "a.index").read_bytes() == pack(">iiii", 0, 0, 10, 4_000)
    assert (tmp_path / "a.timeindex").read_bytes() == pack(">qi", 1_700_000_000_000, 42)


def test_an_index_without_a_file_is_empty_and_makes_none(files: OpenFiles, tmp_path: Path) -> None:
    index = SparseIndex(files, "a.index", OFFSET_ENTRY)
    assert (index.count, index.last, index.find(5)) == (0, None, None)
    assert not (tmp_path / "a.index").exists()


@settings(deadline=None)
@given(written=st.integers(0, 4_000), unwritten=st.integers(0, 100), value=st.integers(-5, 42_000))
def test_find_gives_the_last_entry_that_is_not_larger(
    written: int, unwritten: int, value: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = OpenFiles(SystemDisk(str(tmp_path_factory.mktemp("index"))))
    files.create("a.index").append(b"".join(OFFSET_ENTRY.pack(n * 10, n * 4_000) for n in range(written)))
    index = SparseIndex(files, "a.index", OFFSET_ENTRY)
    count = written + unwritten
    for number in range(written, count):
        index.append(number * 10, number * 4_000)
    assert (index.count, index.unwritten) == (count, unwritten)
    number = min(count - 1, value // 10)
    expected = (number * 10, number * 4_000) if number >= 0 else None
    following = ((number + 1) * 10, (number + 1) * 4_000) if 0 <= number < count - 1 else None
    # The second time from memory, and then what lies beside it.
    for _ in range(2):
        assert index.find(value) == expected
        before, after = index.neighbours(value)
        assert before == expected
        # Where two entries are not in one place, the next one may not be at hand.
        assert after in (following, None)
    for beside in range(max(0, number - 300), min(count, number + 300)):
        assert index.find(beside * 10 + 9) == (beside * 10, beside * 4_000)


@settings(deadline=None)
@given(written=st.integers(0, 600), unwritten=st.integers(0, 20), value=st.integers(-5, 6_300))
def test_truncating_drops_the_entries_that_are_larger(
    written: int, unwritten: int, value: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("index")
    files = OpenFiles(SystemDisk(str(folder)))
    index = filled(files, written)
    for number in range(written, written + unwritten):
        index.append(number * 10, number * 4_000)
    index.truncate(value)
    kept = min(written + unwritten, max(0, value // 10 + 1))
    assert index.count == kept
    index.append(100_000, 10_000_000)
    assert index.find(100_000) == (100_000, 10_000_000)
    index.write_out()
    assert (folder / "a.index").stat().st_size == (kept + 1) * 8


def test_entries_are_found_before_they_are_written_and_while_another_thread_writes_them(files: OpenFiles) -> None:
    index = SparseIndex(files, "a.index", OFFSET_ENTRY)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            index.write_out()
            index.sync()

    wrong: list[object] = []

    def search() -> None:
        while not done.is_set():
            last = index.last
            if last is not None and (found := index.find(last[0] // 2)) != (last[0] // 20 * 10, last[0] // 20 * 4_000):
                wrong.append((last, found))

    threads = [threading.Thread(target=work) for work in (write, search)]
    for thread in threads:
        thread.start()
    for number in range(5_000):
        index.append(number * 10, number * 4_000)
        assert index.find(number * 10 + 5) == (number * 10, number * 4_000)
    done.set()
    for thread in threads:
        thread.join()
    index.write_out()
    assert wrong == []
    entries = OFFSET_ENTRY.iter_unpack(files.get("a.index").read_at(0, 50_000))
    assert list(entries) == [(number * 10, number * 4_000) for number in range(5_000)]


def test_a_file_that_seems_shorter_than_it_is_leads_to_an_earlier_entry(files: OpenFiles) -> None:
    index = filled(files, 3_000)
    short = files.get("a.index")
    short.truncate(2_000 * 8)
    assert index.find(29_985) in ((19_990, 1_999 * 4_000), (29_980, 2_998 * 4_000))


def test_entries_that_the_disk_refuses_can_be_forgotten(files: OpenFiles) -> None:
    index = filled(files, 3)
    index.append(30, 12_000)
    index.forget_unwritten()
    assert (index.count, index.unwritten, index.last, index.find(35)) == (3, 0, (20, 8_000), (20, 8_000))
    index.append(40, 16_000)
    assert (index.count, index.find(45), index.find(39)) == (4, (40, 16_000), (20, 8_000))


def test_entries_that_a_power_cut_spoilt_are_dropped(files: OpenFiles, tmp_path: Path) -> None:
    filled(files, 5)
    with (tmp_path / "a.index").open("ab") as file:
        file.write(bytes(16) + OFFSET_ENTRY.pack(70, 28_000) + b"\0\0\0")
    index = SparseIndex(OpenFiles(SystemDisk(str(tmp_path))), "a.index", OFFSET_ENTRY)
    assert index.keep_growing()
    assert (index.count, index.last) == (5, (40, 16_000))
    assert not index.keep_growing()


def test_faults_are_named(files: OpenFiles, tmp_path: Path) -> None:
    assert SparseIndex(files, "a.index", OFFSET_ENTRY).fault(100) == "is missing"
    assert filled(files, 3).fault(8_000) is None
    assert filled(files, 3, "b.index").fault(7_999) == "ends in the entry (20, 8000), where nothing is"
    (tmp_path / "c.index").write_bytes(bytes(9))
    assert SparseIndex(files, "c.index", OFFSET_ENTRY).fault(100) == "has 9 bytes, which is no multiple of 8"


def test_a_search_that_must_not_wait_does_not_load_the_index(files: OpenFiles) -> None:
    filled(files, 3)
    index = SparseIndex(files, "a.index", OFFSET_ENTRY)
    with pytest.raises(WouldWaitError):
        index.find(5, wait=False)
    assert index.find(5) == (0, 0)
    assert index.find(5, wait=False) == (0, 0)
