"""Sparse indexes of a segment, as Kafka lays them out.

An offset index (`.index`) leads from offsets, relative to the segment's first, to positions in its file; a time index
(`.timeindex`) from timestamps to relative offsets. In both, both columns only ever grow.
"""

from struct import Struct
from typing import Final

from ottla.log.files import OpenFiles
from ottla.log.walk import WouldWaitError, read
from ottla.ports import File

OFFSET_ENTRY: Final = Struct(">ii")
"""The last offset of a batch, relative; the position of the batch."""

TIME_ENTRY: Final = Struct(">qi")
"""The largest timestamp so far; the last offset, relative, of the first batch that has it."""

_BLOCK_ENTRIES = 256


class SparseIndex:
    """The entries of one index file. Nothing is read, and the file need not exist, until it is used.

    The last entry stays in memory, so readers at the end of a log search nothing.

    >>> import tempfile
    >>> from ottla.ports import SystemDisk
    >>> index = SparseIndex(OpenFiles(SystemDisk(tempfile.mkdtemp())), "00.index", OFFSET_ENTRY)
    >>> index.append(9, 4_000); index.append(20, 9_000)
    >>> index.find(15), index.find(8), index.last
    ((9, 4000), None, (20, 9000))
    """

    __slots__ = ("_count", "_entry", "_files", "_last", "name", "unsynced")

    def __init__(self, files: OpenFiles, name: str, entry: Struct) -> None:
        self._files = files
        self._entry = entry
        self._count = -1
        self._last: tuple[int, int] | None = None
        self.name = name
        self.unsynced = False

    @property
    def count(self) -> int:
        """How many entries there are."""
        if self._count < 0:
            self._load()
        return self._count

    @property
    def last(self) -> tuple[int, int] | None:
        """The last entry."""
        if self._count < 0:
            self._load()
        return self._last

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.count * self._entry.size

    def append(self, first: int, second: int) -> None:
        """Add an entry, which must be beyond the last in both columns. With OSError nothing has changed."""
        file = self._files.create(self.name) if self.count == 0 else self._files.get(self.name)
        if file.size() != self.size:
            file = self._files.sized(self.name, self.size)
        file.append(self._entry.pack(first, second))
        # In this order, so that a thread that searches never looks for an entry that is not there yet.
        self._last = (first, second)
        self._count += 1
        self.unsynced = True

    def find(self, value: int, *, column: int = 0, wait: bool = True) -> tuple[int, int] | None:
        """The last entry whose value in that column is not larger than the given one.

        Without `wait`, WouldWaitError instead of waiting for the disk.
        """
        if self._count < 0 and not wait:
            raise WouldWaitError
        last = self.last
        if last is None or last[column] <= value:
            return last
        count = self._count_up_to(value, column, wait)
        return None if count == 0 else self._entry_at(self._files.get(self.name), count - 1, wait)

    def truncate(self, value: int, *, column: int = 0) -> None:
        """Drop the entries whose value in that column is larger than the given one."""
        if self.last is not None and self.last[column] > value:
            self._keep(self._count_up_to(value, column, True))

    def clear(self) -> None:
        """Drop all entries, and bytes that are none."""
        self._files.create(self.name)
        self._keep(0)

    def create(self) -> None:
        """Make the file if there is none."""
        self._files.create(self.name)

    def fault(self, second_limit: int) -> str | None:
        """What is wrong with the index, as far as its size and its last entry tell."""
        try:
            size = self._files.get(self.name).size()
        except FileNotFoundError:
            return "is missing"
        if size % self._entry.size:
            return f"has {size} bytes, which is no multiple of {self._entry.size}"
        if self.last is not None and not (self.last[0] >= 0 and 0 <= self.last[1] <= second_limit):
            return f"ends in the entry {self.last}, where nothing is"
        return None

    def keep_growing(self) -> bool:
        """Drop what follows on the first entry that does not grow in both columns; whether there was such.

        A power cut leaves that where entries were not synced.
        """
        try:
            file = self._files.get(self.name)
        except FileNotFoundError:
            return False
        # Whoever wrote or cut the file last may have been killed before it was synced.
        self.unsynced = True
        data = file.read_at(0, file.size())
        last, count = (-1, -1), 0
        for entry in self._entry.iter_unpack(data[: len(data) // self._entry.size * self._entry.size]):
            if entry[0] <= last[0] or entry[1] <= last[1]:
                break
            last, count = entry, count + 1
        if count * self._entry.size == len(data):
            return False
        self._keep(count)
        return True

    def sync(self) -> None:
        """Return when all entries are on the disk."""
        if self.unsynced:
            self.unsynced = False
            try:
                self._files.get(self.name).sync()
            except OSError:
                self.unsynced = True
                raise

    def _load(self) -> None:
        try:
            file = self._files.get(self.name)
        except FileNotFoundError:
            self._count = 0
            return
        count = file.size() // self._entry.size
        self._last = self._entry_at(file, count - 1, True) if count else None
        self._count = count

    def _keep(self, count: int) -> None:
        file = self._files.get(self.name)
        file.truncate(count * self._entry.size)
        self._last = self._entry_at(file, count - 1, True) if count else None
        self._count = count
        self.unsynced = True

    def _entry_at(self, file: File, number: int, wait: bool) -> tuple[int, int]:
        first, second = self._entry.unpack(read(file, number * self._entry.size, self._entry.size, wait))
        return first, second

    def _count_up_to(self, value: int, column: int, wait: bool) -> int:
        """How many entries, from the first on, are not larger than the value."""
        file, size = self._files.get(self.name), self._entry.size
        low, high = 0, self._count
        while high - low > _BLOCK_ENTRIES:
            middle = (low + high) // 2
            if self._entry_at(file, middle, wait)[column] <= value:
                low = middle + 1
            else:
                high = middle
        # One read for the last eight steps.
        block = read(file, low * size, (high - low) * size, wait)
        for entry in self._entry.iter_unpack(block):
            if entry[column] > value:
                break
            low += 1
        return low
