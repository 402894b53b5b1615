"""What a broker writes down about all logs of a disk, so that the next start need not look at each.

`ottla-checkpoint` is left by a clean stop and holds all that opening a log needs. Kafka's own text files,
`recovery-point-offset-checkpoint`, `log-start-offset-checkpoint` and `cleaner-offset-checkpoint`, are kept while the
broker runs and serve after a crash.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from crc32c import crc32c

from ottla.ports import Disk

CLEAN_FILE: Final = "ottla-checkpoint"
RECOVERY_POINTS_FILE: Final = "recovery-point-offset-checkpoint"
START_OFFSETS_FILE: Final = "log-start-offset-checkpoint"
CLEANED_OFFSETS_FILE: Final = "cleaner-offset-checkpoint"
_VERSION: Final = 1


class SegmentState(NamedTuple):
    """What a closed log knew of one of its segments."""

    base_offset: int
    size: int
    max_timestamp: int
    max_timestamp_offset: int


class LogState(NamedTuple):
    """A closed log, all of which is on the disk."""

    start_offset: int
    end_offset: int
    unstable_offset: int
    """Where the earliest open transaction begins; -1 if there is none."""
    cleaned_offset: int
    """Up to where compaction has come."""
    segments: tuple[SegmentState, ...]


def write_clean(disk: Disk, logs: Mapping[str, LogState]) -> None:
    """Leave the states of all logs, by folder, for the next start."""
    lines = [
        json.dumps([folder, *state[:-1], *state.segments], separators=(",", ":")) for folder, state in logs.items()
    ]
    body = "\n".join(lines).encode()
    disk.replace(CLEAN_FILE, b"%d %d %d\n%b" % (_VERSION, len(lines), crc32c(body), body))


def take_clean(disk: Disk) -> dict[str, LogState] | None:
    """The states that a clean stop has left, by folder; None if it was not clean.

    They are true until the first write, and so are taken away for good before this returns.

    >>> import tempfile
    >>> from ottla.ports import SystemDisk
    >>> disk = SystemDisk(tempfile.mkdtemp())
    >>> write_clean(disk, {"orders-0": LogState(0, 7, -1, 0, (SegmentState(0, 700, 1_700_000_000_000, 6),))})
    >>> take_clean(disk)["orders-0"].end_offset, take_clean(disk)
    (7, None)
    """
    try:
        data = disk.read(CLEAN_FILE)
    except FileNotFoundError:
        return None
    disk.remove(CLEAN_FILE)
    disk.sync_folder()
    front, _, body = data.partition(b"\n")
    fields = front.split()
    lines = body.splitlines()
    # A damaged file is as good as none: the logs are recovered one by one.
    if fields != [b"%d" % _VERSION, b"%d" % len(lines), b"%d" % crc32c(body)]:
        return None
    states = {}
    for line in lines:
        folder, start, end, unstable, cleaned, *segments = json.loads(line)
        states[folder] = LogState(start, end, unstable, cleaned, tuple(SegmentState(*each) for each in segments))
    return states


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
