from random import Random

import pytest

from ottla.ports import Disk
from ottla.sim import PowerCutError, SimDisk


def _after_cuts(disk: SimDisk, count: int = 200) -> list[SimDisk]:
    return [disk.power_cut(Random(seed)) for seed in range(count)]


def test_it_is_a_disk() -> None:
    disk: Disk = SimDisk()
    disk.make_folder("a/b")
    disk.open("a/b/c", create=True).append(b"one ", b"two")
    disk.rename("a/b/c", "a/b/d")
    assert (disk.list("a"), disk.list("a/b"), disk.read("a/b/d")) == (["b"], ["d"], b"one two")
    assert not disk.exists("a/b/d/e")
    disk.remove_folder("a")
    assert disk.list() == []


def test_what_was_synced_survives_every_power_cut() -> None:
    disk = SimDisk()
    file = disk.open("a", create=True)
    file.append(b"kept")
    file.sync()
    disk.sync_folder()
    file.append(bytes(2000))
    assert all(after.read("a").startswith(b"kept") for after in _after_cuts(disk))


def test_unsynced_writes_are_kept_lost_torn_and_reordered() -> None:
    disk = SimDisk()
    file = disk.open("a", create=True)
    disk.sync_folder()
    file.append(b"1" * 1500)
    file.append(b"2" * 1500)
    found = {after.read("a") for after in _after_cuts(disk)}
    assert b"" in found
    assert b"1" * 1500 + b"2" * 1500 in found
    assert bytes(1500) + b"2" * 1500 in found, "the second without the first"
    assert any(content and not content.strip(b"\0") for content in found), "grown with zeros"
    assert any(0 < content.count(b"1") < 1500 for content in found), "torn"


def test_a_synced_file_may_lose_its_name_until_the_folder_is_synced() -> None:
    disk = SimDisk()
    file = disk.open("a", create=True)
    file.append(b"x")
    file.sync()
    assert {after.exists("a") for after in _after_cuts(disk)} == {True, False}
    disk.sync_folder()
    assert {after.read("a") for after in _after_cuts(disk)} == {b"x"}


def test_a_rename_has_happened_or_not() -> None:
    disk = SimDisk()
    disk.replace("a", b"old")
    disk.replace("b", b"new")
    disk.rename("b", "a")
    found = {tuple((name, after.read(name)) for name in after.list()) for after in _after_cuts(disk)}
    assert found == {(("a", b"old"), ("b", b"new")), (("a", b"new"),)}


def test_a_replacement_is_all_old_or_all_new_at_every_step() -> None:
    for operations in range(1, 8):
        disk = SimDisk()
        disk.replace("a", b"old")
        disk.operations_left = operations
        try:
            disk.replace("a", b"new")
        except PowerCutError:
            assert {after.read("a") for after in _after_cuts(disk, 50)} <= {b"old", b"new"}
        else:
            assert {after.read("a") for after in _after_cuts(disk, 50)} == {b"new"}


def test_what_follows_on_a_cut_is_not_there_without_the_cut() -> None:
    disk = SimDisk()
    file = disk.open("a", create=True)
    file.append(b"abcdef")
    file.sync()
    disk.sync_folder()
    file.truncate(2)
    file.append(b"XY")
    found = {after.read("a") for after in _after_cuts(disk)}
    assert found >= {b"abcdef", b"ab", b"abXY"}
    assert b"abXYef" not in found


def test_without_power_nothing_more_is_done() -> None:
    disk = SimDisk()
    file = disk.open("a", create=True)
    disk.operations_left = 2
    file.append(b"1")
    for _ in range(2):
        with pytest.raises(PowerCutError):
            file.append(b"2")
    assert disk.is_out
    assert disk.read("a") == b"1"
