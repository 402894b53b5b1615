from pathlib import Path

import pytest

from ottla.log.files import OpenFiles
from ottla.ports.disk import SystemDisk, SystemFile


def test_the_files_that_were_used_last_stay_open(tmp_path: Path) -> None:
    files = OpenFiles(SystemDisk(str(tmp_path)), limit=2)
    a = files.create("a")
    files.create("b")
    assert files.get("a") is a
    files.create("c")
    assert files.get_open("a") is a
    assert files.get_open("b") is None
    assert len(files) == 2


def test_a_file_that_fell_out_serves_whoever_still_reads_from_it(tmp_path: Path) -> None:
    files = OpenFiles(SystemDisk(str(tmp_path)), limit=1)
    a = files.create("a")
    a.append(b"hello")
    files.create("b")
    assert files.get_open("a") is None
    assert a.read_at(0, 5) == b"hello"


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    files = OpenFiles(SystemDisk(str(tmp_path)))
    with pytest.raises(FileNotFoundError):
        files.get("nowhere")


def test_a_file_that_is_behind_a_write_through_another_is_opened_anew(tmp_path: Path) -> None:
    disk = SystemDisk(str(tmp_path))
    files = OpenFiles(disk)
    stale = files.create("a")
    disk.open("a").append(b"12345")
    assert stale.size() == 0
    assert files.sized("a", 5) is not stale
    with pytest.raises(OSError, match="has 5 bytes and should have 7"):
        files.sized("a", 7)


def test_a_file_that_was_opened_just_before_a_rename_is_not_kept(tmp_path: Path) -> None:
    class SlowDisk(SystemDisk):
        """While a file is being opened, another takes its name."""

        def open(self, name: str, *, create: bool = False) -> SystemFile:
            file = super().open(name, create=create)
            if (tmp_path / "new").exists():
                self.rename("new", "a")
                files.forget("a")
            return file

    files = OpenFiles(SlowDisk(str(tmp_path)))
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "new").write_bytes(b"fresh")
    assert files.get("a").read_at(0, 10) == b"fresh"


def test_forgetting_a_folder_leaves_its_neighbours(tmp_path: Path) -> None:
    disk = SystemDisk(str(tmp_path))
    files = OpenFiles(disk)
    for name in ("t-1/x", "t-1/y", "t-10/x"):
        disk.make_folder(name.partition("/")[0])
        files.create(name)
    files.forget_folder("t-1")
    assert [name for name in ("t-1/x", "t-1/y", "t-10/x") if files.get_open(name)] == ["t-10/x"]
