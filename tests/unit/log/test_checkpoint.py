from pathlib import Path

import pytest

from ottla.log.checkpoint import (
    CLEAN_FILE,
    RECOVERY_POINTS_FILE,
    read_offsets,
    take_clean,
    write_clean,
    write_offsets,
)
from ottla.log.state import LogState, SegmentState
from ottla.ports import SystemDisk

STATES = {
    "orders-0": LogState(
        3, 90, -1, 3, (SegmentState(0, 5_000, 1_700, 40, 1_650, 1_660), SegmentState(50, 900, 1_800, 89, 1_750))
    ),
    "a.b_c-d-12": LogState(0, 0, -1, 0, (SegmentState(0, 0, -1, 0, 1_650),)),
}


def test_a_clean_stop_is_found_once(tmp_path: Path) -> None:
    disk = SystemDisk(str(tmp_path))
    assert take_clean(disk) is None
    write_clean(disk, STATES)
    assert take_clean(disk) == STATES
    assert take_clean(disk) is None


def test_a_stop_without_logs_is_clean_too(tmp_path: Path) -> None:
    disk = SystemDisk(str(tmp_path))
    write_clean(disk, {})
    assert take_clean(disk) == {}


def test_a_damaged_checkpoint_is_as_good_as_none(tmp_path: Path) -> None:
    disk = SystemDisk(str(tmp_path))
    write_clean(disk, STATES)
    data = (tmp_path / CLEAN_FILE).read_bytes()
    for at in range(len(data)):
        spoilt = bytearray(data)
        spoilt[at] ^= 4
        (tmp_path / CLEAN_FILE).write_bytes(spoilt)
        assert take_clean(disk) is None
        (tmp_path / CLEAN_FILE).write_bytes(data[:at])
        assert take_clean(disk) is None


def test_offsets_are_kept_in_kafkas_text_format(tmp_path: Path) -> None:
    disk = SystemDisk(str(tmp_path))
    assert read_offsets(disk, RECOVERY_POINTS_FILE) == {}
    write_offsets(disk, RECOVERY_POINTS_FILE, {"orders-0": 42, "a-b-3": 0})
    assert (tmp_path / RECOVERY_POINTS_FILE).read_text() == "0\n2\norders 0 42\na-b 3 0\n"
    assert read_offsets(disk, RECOVERY_POINTS_FILE) == {"orders-0": 42, "a-b-3": 0}


@pytest.mark.parametrize("text", ["", "0\n", "1\n0\n", "0\n1\n", "0\n1\norders 0\n", "0\n1\norders 0 x\n"])
def test_a_damaged_text_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / RECOVERY_POINTS_FILE).write_text(text)
    with pytest.raises(ValueError):
        read_offsets(SystemDisk(str(tmp_path)), RECOVERY_POINTS_FILE)
