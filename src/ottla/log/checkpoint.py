"""What a broker writes down about all logs of a disk, so that the next start need not look at each.

`ottla-checkpoint` is left by a clean stop and holds all that opening a log needs. `ottla-offset-checkpoint` is kept
while the broker runs and serves after a crash. `ottla-deletions` names topics whose deletion may have to be finished.
All have a checksum. Kafka's own text files,
`recovery-point-offset-checkpoint` and `log-start-offset-checkpoint`, have none: they are written for Kafka's tools,
and read where only they are found.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.log.state import LogState, SegmentState
from ottla.ports import Disk
from ottla.record.checksum import crc32c

CLEAN_FILE: Final = "ottla-checkpoint"
RECOVERY_POINTS_FILE: Final = "recovery-point-offset-checkpoint"
START_OFFSETS_FILE: Final = "log-start-offset-checkpoint"
MARKS_FILE: Final = "ottla-offset-checkpoint"
DELETIONS_FILE: Final = "ottla-deletions"
_CLEAN_VERSION: Final = 2
_MARKS_VERSION: Final = 1
_DELETIONS_VERSION: Final = 1


class Marks(NamedTuple):
    """What must be known of a log that was not closed."""

    topic_id: bytes
    """Whose log it is: marks of a deleted topic say nothing of one that has its name now."""
    recovery_point: int
    """Up to where it was synced."""
    start_offset: int
    """Before which its records were deleted."""


def write_clean(disk: Disk, logs: Mapping[str, LogState]) -> None:
    """Leave the states of all logs, by folder, for the next start."""
    lines = [
        json.dumps([folder, *state[:-1], *state.segments], separators=(",", ":")) for folder, state in logs.items()
    ]
    disk.replace(CLEAN_FILE, _checked(_CLEAN_VERSION, lines))


def take_clean(disk: Disk) -> dict[str, LogState] | None:
    """The states that a clean stop has left, by folder; None if it was not clean.

    They are true until the first write, and so are taken away for good before this returns.

    >>> import tempfile
    >>> from ottla.ports import SystemDisk
    >>> disk = SystemDisk(tempfile.mkdtemp())
    >>> now_ms = 1_700_000_000_000
    >>> write_clean(disk, {"orders-0": LogState(0, 7, -1, 0, (SegmentState(0, 700, now_ms, 6, now_ms),))})
    >>> take_clean(disk)["orders-0"].end_offset, take_clean(disk)
    (7, None)
    """
    try:
        data = disk.read(CLEAN_FILE)
    except FileNotFoundError:
        return None
    disk.remove(CLEAN_FILE)
    disk.sync_folder()
    lines = _check(_CLEAN_VERSION, data)
    if lines is None:
        # A damaged file, or one of another version, is as good as none: the logs are recovered one by one.
        return None
    states = {}
    for line in lines:
        folder, start, end, unstable, cleaned, *segments = json.loads(line)
        states[folder] = LogState(start, end, unstable, cleaned, tuple(SegmentState(*each) for each in segments))
    return states


def _checked(version: int, lines: Sequence[str]) -> bytes:
    body = "\n".join(lines).encode()
    return b"%d %d %d\n%b" % (version, len(lines), crc32c(body), body)


def _check(version: int, data: bytes) -> list[str] | None:
    """The lines of a file with a checksum; None if it is damaged."""
    front, _, body = data.partition(b"\n")
    lines = body.splitlines()
    if front.split() != [b"%d" % version, b"%d" % len(lines), b"%d" % crc32c(body)]:
        return None
    return [line.decode() for line in lines]


def write_marks(disk: Disk, marks: Mapping[str, Marks]) -> None:
    """Write down what recovery needs to know of each log, by folder."""
    lines = [f"{each[0].hex()} {each[1]} {each[2]} {folder}" for folder, each in marks.items()]
    disk.replace(MARKS_FILE, _checked(_MARKS_VERSION, lines))


def read_marks(disk: Disk) -> dict[str, Marks] | None:
    """The marks of each folder; None if there is no such file. ValueError if it is damaged.

    >>> import tempfile
    >>> from ottla.ports import SystemDisk
    >>> disk = SystemDisk(tempfile.mkdtemp())
    >>> write_marks(disk, {"orders-0": Marks(bytes(16), recovery_point=70, start_offset=7)})
    >>> read_marks(disk)["orders-0"].start_offset
    7
    """
    try:
        lines = _check(_MARKS_VERSION, disk.read(MARKS_FILE))
    except FileNotFoundError:
        return None
    if lines is None:
        raise ValueError(f"{MARKS_FILE} is damaged: its checksum does not agree with what it holds")
    marks = {}
    for line in lines:
        topic_id, point, start, folder = line.split(" ")
        marks[folder] = Marks(bytes.fromhex(topic_id), int(point), int(start))
    return marks


def write_deletions(disk: Disk, names: Mapping[bytes, str]) -> None:
    """Write down which topics, by id, are being deleted."""
    disk.replace(DELETIONS_FILE, _checked(_DELETIONS_VERSION, [f"{each.hex()} {name}" for each, name in names.items()]))


def read_deletions(disk: Disk) -> dict[bytes, str]:
    """The names of topics that were being deleted, by id; nothing if there is no file. ValueError if it is damaged.

    >>> import tempfile
    >>> from ottla.ports import SystemDisk
    >>> disk = SystemDisk(tempfile.mkdtemp())
    >>> write_deletions(disk, {bytes(16): "orders"})
    >>> list(read_deletions(disk).values())
    ['orders']
    """
    try:
        lines = _check(_DELETIONS_VERSION, disk.read(DELETIONS_FILE))
    except FileNotFoundError:
        return {}
    if lines is None:
        raise ValueError(f"{DELETIONS_FILE} is damaged: its checksum does not agree with what it holds")
    return {bytes.fromhex(topic_id): name for topic_id, name in (line.split(" ") for line in lines)}


def write_offsets(disk: Disk, name: str, offsets: Mapping[str, int]) -> None:
    """Write an offset for each partition folder in Kafka's text format."""
    disk.replace(name, format_offsets(offsets.items()))


def format_offsets(offsets: Iterable[tuple[str, int]]) -> bytes:
    """Kafka's text format: version, count, and lines of topic, partition and offset.

    >>> print(format_offsets([("my-topic-3", 42)]).decode(), end="")
    0
    1
    my-topic 3 42
    """
    lines = []
    for folder, offset in offsets:
        topic, _, partition = folder.rpartition("-")
        lines.append(f"{topic} {partition} {offset}\n")
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def read_offsets(disk: Disk, name: str) -> dict[str, int]:
    """The offset of each partition folder; nothing if there is no such file. ValueError if it is damaged."""
    try:
        text = disk.read(name).decode()
    except FileNotFoundError:
        return {}
    lines = text.splitlines()
    if len(lines) < 2 or lines[0] != "0" or lines[1] != str(len(lines) - 2):
        raise ValueError(f"{name} does not hold version 0, a count and so many lines of topic, partition and offset")
    offsets = {}
    for line in lines[2:]:
        topic, partition, offset = line.split(" ")
        offsets[f"{topic}-{int(partition)}"] = int(offset)
    return offsets
