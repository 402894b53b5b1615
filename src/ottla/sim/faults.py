"""What a power cut leaves of changes that were not synced: each write and each name for itself.

The model is that of POSIX, less what no file system does. Writes reach the disk in any order, whole, in part or not at
all; sectors are torn apart, and now and then one is torn inside. A file that was to grow may have grown with zeros.
Files are shortened in order: what was written after a cut is not there unless the cut is. A rename has happened or
not, and a name can only go where it was.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final, Generic, NamedTuple, TypeVar

SECTOR_BYTES: Final = 512
_MOODS = (0.0, 0.3, 0.7, 0.95, 1.0)

Node = TypeVar("Node")


class PowerCutError(BaseException):
    """The power is gone. No code that would run on a real machine may catch this."""


class Write(NamedTuple):
    """Bytes that were written to a file."""

    position: int
    data: bytes


class Resize(NamedTuple):
    """A file that was cut, or lengthened with zeros."""

    size: int


class NameChange(NamedTuple, Generic[Node]):
    """A name that appeared, one that went, or both at once: a rename."""

    removed: str | None
    added: str | None
    node: Node


class Mood(NamedTuple):
    """How one power cut treats what it finds."""

    keeps: float
    """How likely an unsynced change is to have come through."""
    in_order: bool
    """Whether names changed in order, as where a journal keeps them, or each for itself."""

    @classmethod
    def draw(cls, chance: Random) -> "Mood":
        """A mood by chance."""
        return cls(chance.choice(_MOODS), chance.random() < 0.5)


def surviving_bytes(durable: bytes, unsynced: Sequence[Write | Resize], chance: Random, mood: Mood) -> bytearray:
    """A file's content after a power cut."""
    ends = [number for number, change in enumerate(unsynced) if isinstance(change, Resize)]
    kept = bytearray(durable)
    largest = len(kept)
    for change in unsynced[: chance.choice([*ends, len(unsynced)])]:
        if isinstance(change, Resize):
            resize(kept, change.size)
            largest = change.size
            continue
        largest = max(largest, change.position + len(change.data))
        if chance.random() < mood.keeps:
            overwrite(kept, change.position, change.data)
        elif chance.random() < 0.5:
            _tear(kept, change, chance)
    if len(kept) < largest and chance.random() < 0.5:
        resize(kept, chance.randint(len(kept), largest))
    return kept


def _tear(kept: bytearray, write: Write, chance: Random) -> None:
    """Let some of the sectors through that a write touches, and of some of these only a part."""
    begin, end = write.position, write.position + len(write.data)
    while begin < end:
        sector_end = min(end, (begin // SECTOR_BYTES + 1) * SECTOR_BYTES)
        if chance.random() < 0.5:
            stop = sector_end if chance.random() < 0.7 else chance.randint(begin, sector_end)
            overwrite(kept, begin, write.data[begin - write.position : stop - write.position])
        begin = sector_end


def overwrite(content: bytearray, position: int, data: bytes) -> None:
    """Write into content, over zeros where it did not reach so far."""
    if data:
        if len(content) < position:
            resize(content, position)
        content[position : position + len(data)] = data


def resize(content: bytearray, size: int) -> None:
    """Cut content, or lengthen it with zeros."""
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


def surviving_names(
    durable: Mapping[str, Node], unsynced: Sequence[NameChange[Node]], chance: Random, mood: Mood
) -> dict[str, Node]:
    """A folder's names after a power cut.

    >>> renamed = NameChange("a", "b", 1)
    >>> sorted(surviving_names({"a": 1}, [renamed], Random(1), Mood(1.0, False)))
    ['b']
    """
    names = dict(durable)
    if mood.in_order:
        came_through = list(unsynced[: chance.randint(0, len(unsynced))])
    else:
        came_through = [change for change in unsynced if chance.random() < mood.keeps]
    for change in came_through:
        if change.removed is not None:
            if names.get(change.removed) is not change.node:
                continue
            del names[change.removed]
        if change.added is not None:
            names[change.added] = change.node
    return names
