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
    return index


def test_entries_lie_in_the_file_as_kafka_has_them(files: OpenFiles, tmp_path: Path) -> None:
    filled(files, 2)
    times = SparseIndex(files, "a.timeindex", TIME_ENTRY)
    times.append(1_700_000_000_000, 42)
    assert (tmp_path / "a.index").read_bytes() == pack(">iiii", 0, 0, 10, 4_000)
    assert (tmp_path / "a.timeindex").read_bytes() == pack(">qi", 1_700_000_000_000, 42)


def test_an_index_without_a_file_is_empty_and_makes_none(files: OpenFiles, tmp_path: Path) -> None:
    index = SparseIndex(files, "a.index", OFFSET_ENTRY)
    assert (index.count, index.last, index.find(5)) == (0, None, None)
    assert not (tmp_path / "a.index").exists()


@settings(deadline=None)
@given(count=st.integers(1, 1_500), value=st.integers(-5, 16_000))
def test_find_gives_the_last_entry_that_is_not_larger(
    count: int, value: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = OpenFiles(SystemDisk(str(tmp_path_factory.mktemp("index"))))
    files.create("a.index").append(b"".join(OFFSET_ENTRY.pack(n * 10, n * 4_000) for n in range(count)))
    index = SparseIndex(files, "a.index", OFFSET_ENTRY)
    number = min(count - 1, value // 10)
    expected = (number * 10, number * 4_000) if number >= 0 else None
    assert index.find(value) == expected
    assert index.find(value * 400, column=1) == expected


@settings(deadline=None)
@given(count=st.integers(0, 600), value=st.integers(-5, 6_100))
def test_truncating_drops_the_entries_that_are_larger(
    count: int, value: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("index")
    files = OpenFiles(SystemDisk(str(folder)))
    index = filled(files, count)
    index.truncate(value)
    kept = min(count, max(0, value // 10 + 1))
    assert index.count == kept
    if count:
        assert (folder / "a.index").stat().st_size == kept * 8
    index.append(100_000, 10_000_000)
    assert index.find(100_000) == (100_000, 10_000_000)


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
