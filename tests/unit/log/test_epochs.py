from pathlib import Path

import pytest

from ottla.log.epochs import EPOCHS_FILE, UNDEFINED, Epochs
from ottla.ports import SystemDisk


def test_epochs_survive_in_kafkas_text_format(tmp_path: Path) -> None:
    disk = SystemDisk(str(tmp_path))
    disk.make_folder("orders-0")
    epochs = Epochs()
    epochs.assign(0, 0)
    epochs.assign(4, 250)
    epochs.write(disk, "orders-0")
    assert (tmp_path / "orders-0" / EPOCHS_FILE).read_text() == "0\n2\n0 0\n4 250\n"
    assert Epochs.load(disk, "orders-0").entries == [(0, 0), (4, 250)]


def test_nothing_is_written_twice(tmp_path: Path) -> None:
    disk = SystemDisk(str(tmp_path))
    epochs = Epochs()
    epochs.assign(1, 0)
    epochs.write(disk, ".")
    (tmp_path / EPOCHS_FILE).unlink()
    epochs.write(disk, ".")
    assert not (tmp_path / EPOCHS_FILE).exists()


@pytest.mark.parametrize("text", ["", "1\n0\n", "0\n2\n0 0\n", "0\n1\nx y\n", "0\n2\n3 5\n1 9\n", "0\n1\n1 2 3\n"])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / EPOCHS_FILE).write_text(text)
    with pytest.raises(ValueError):
        Epochs.load(SystemDisk(str(tmp_path)), ".")


def test_a_term_in_which_nothing_was_written_leaves_no_trace() -> None:
    epochs = Epochs()
    epochs.assign(1, 0)
    epochs.assign(2, 10)
    epochs.assign(3, 10)
    assert epochs.entries == [(1, 0), (3, 10)]


def test_an_old_epoch_changes_nothing() -> None:
    epochs = Epochs([(5, 10)])
    epochs.assign(5, 20)
    epochs.assign(4, 20)
    assert epochs.entries == [(5, 10)]
    assert not epochs.unwritten


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, UNDEFINED), (1, (1, 10)), (2, (2, 50)), (3, (2, 50)), (5, (5, 90)), (7, (7, 100)), (8, UNDEFINED)],
)
def test_end_offset_is_where_the_next_epoch_begins(epoch: int, expected: tuple[int, int]) -> None:
    assert Epochs([(2, 10), (5, 50), (7, 90)]).end_offset(epoch, 100) == expected


def test_the_epoch_of_an_offset() -> None:
    epochs = Epochs([(2, 10), (5, 50)])
    assert [epochs.of_offset(offset) for offset in (9, 10, 49, 50, 999)] == [-1, 2, 2, 5, 5]


def test_truncation_at_the_end_and_at_the_start() -> None:
    epochs = Epochs([(2, 10), (5, 50), (7, 90)])
    epochs.truncate_end(90)
    assert epochs.entries == [(2, 10), (5, 50)]
    epochs.truncate_start(60)
    assert epochs.entries == [(5, 60)]
    epochs.truncate_start(40)
    assert epochs.entries == [(5, 60)]


def test_batches_of_no_epoch_begin_none() -> None:
    epochs = Epochs()
    epochs.assign(-1, 0)
    assert epochs.entries == []
    assert not epochs.unwritten
