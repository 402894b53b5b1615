"""Sparse indexes of a segment, as Kafka lays them out.

An offset index (`.index`) leads from offsets, relative to the segment's first, to positions in its file; a time index
(`.timeindex`) from timestamps to relative offsets. In both, both columns only ever grow.
"""

from array import array
from bisect import bisect_right
from contextlib import suppress
from struct import Struct
from threading import Lock
from typing import Final

from ottla.log.files import OpenFiles
from ottla.log.walk import WouldWaitError, read
from ottla.wire.schema import Bytes

OFFSET_ENTRY: Final = Struct(">ii")
"""The last offset of a batch, relative; the position of the batch."""

TIME_ENTRY: Final = Struct(">qi")
"""The largest timestamp so far; the last offset, relative, of the first batch that has it."""

_BLOCK_ENTRIES: Final = 1024
_NEAR_ENTRIES: Final = 256
"""Entries that are kept in memory from where somebody has searched on: who reads on comes back for those."""

Entry = tuple[int, int]
Neighbours = tuple[Entry | None, Entry | None]
_NOTHING_NEAR: Final = (array("q"), array("q"))


class SparseIndex:
    """The entries of one index file. Nothing is read, and the file need not exist, until it is used.

    New entries stay in memory until somebody writes them out, many at a time: after a crash what lies beyond the
    recovery point is indexed anew anyway. The last entry always does, so readers at the end of a log search nothing.
    Entries come from one thread; others may search, write out and sync meanwhile.

    >>> import tempfile
    >>> from ottla.ports import SystemDisk
    >>> index = SparseIndex(OpenFiles(SystemDisk(tempfile.mkdtemp())), "00.index", OFFSET_ENTRY)
    >>> index.append(9, 4_000); index.append(20, 9_000)
    >>> index.find(15), index.find(8), index.last
    ((9, 4000), None, (20, 9000))
    """

    __slots__ = (
        "_changing",
        "_cuts",
        "_entry",
        "_files",
        "_last",
        "_near",
        "_unwritten",
        "_written",
        "name",
        "unsynced",
    )

    def __init__(self, files: OpenFiles, name: str, entry: Struct) -> None:
        self._files = files
        self._entry = entry
        self._changing = Lock()
        self._written = -1
        """Entries in the file; -1 if nobody has looked."""
        self._unwritten = b""
        """Those after them, as they will lie there. Bytes, which those who search may hold while others come."""
        self._last: Entry | None = None
        self._near = _NOTHING_NEAR
        """Some of those in the file, from the place on where somebody has searched last, column by column."""
        self._cuts = 0
        """How often entries were dropped from the file."""
        self.name = name
        self.unsynced = False

    @property
    def count(self) -> int:
        """How many entries there are."""
        if self._written < 0:
            self._look()
        return self._written + len(self._unwritten) // self._entry.size

    @property
    def unwritten(self) -> int:
        """How many of them are in memory only."""
        return len(self._unwritten) // self._entry.size

    @property
    def last(self) -> Entry | None:
        """The last entry."""
        if self._written < 0:
            self._look()
        return self._last

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        return self.count * self._entry.size

    def append(self, first: int, second: int) -> None:
        """Add an entry, which must be beyond the last in both columns."""
        with self._changing:
            self._load()
            self._unwritten += self._entry.pack(first, second)
            self._last = (first, second)

    def write_out(self) -> None:
        """Write the entries that are in memory only. With OSError nothing has changed."""
        if not self._unwritten:
            return
        with self._changing:
            entries, size = self._unwritten, self._written * self._entry.size
            if not entries:
                return
            file = self._files.get(self.name) if size else self._files.create(self.name)
            if file.size() != size:
                file = self._files.sized(self.name, size)
            file.append(entries)
            # In this order: who syncs next must see that there is something to sync, and who searches must find each
            # entry in one place or in both.
            self.unsynced = True
            self._written += len(entries) // self._entry.size
            self._unwritten = b""

    def forget_unwritten(self) -> None:
        """Have no entries but those in the file, which is looked at again when that matters."""
        with self._changing:
            if self._unwritten:
                self._unwritten, self._written, self._last = b"", -1, None

    def find(self, value: int, *, wait: bool = True) -> Entry | None:
        """The last entry whose first value is not larger than the given one.

        Without `wait`, WouldWaitError instead of waiting for the disk.
        """
        return self.neighbours(value, wait=wait)[0]

    def neighbours(self, value: int, *, wait: bool = True) -> Neighbours:
        """The last entry whose first value is not larger than the given one, and the next one, if that is at hand."""
        if self._written < 0 and not wait:
            raise WouldWaitError
        last = self.last
        if last is None or last[0] <= value:
            return last, None
        firsts, seconds = self._near
        count = bisect_right(firsts, value)
        if 0 < count < len(firsts):
            return (firsts[count - 1], seconds[count - 1]), (firsts[count], seconds[count])
        unwritten = self._unwritten
        count = self._count_up_to(unwritten, value, 0)
        if 0 < count < len(unwritten) // self._entry.size:
            return self._entry_of(unwritten, count), self._entry_of(unwritten, count + 1)
        return self._neighbours_written(value, wait)

    def truncate(self, value: int, *, column: int = 0) -> None:
        """Drop the entries whose value in that column is larger than the given one."""
        with self._changing:
            self._load()
            if self._last is None or self._last[column] <= value:
                return
            count = self._count_up_to(self._unwritten, value, column)
            if count:
                self._unwritten = self._unwritten[: count * self._entry.size]
                self._last = self._entry_of(self._unwritten, count)
                return
            block, low = self._block_written(value, column, True)
            count = self._count_up_to(block, value, column)
            self._keep(low + count, self._entry_of(block, count) if count else None)

    def clear(self) -> None:
        """Drop all entries, and bytes that are none."""
        with self._changing:
            self._files.create(self.name)
            self._keep(0, None)

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
        with self._changing:
            self._keep(count, last if count else None)
        return True

    def sync(self) -> None:
        """Return when all entries that were written out are on the disk."""
        if self.unsynced:
            self.unsynced = False
            try:
                self._files.get(self.name).sync()
            except OSError:
                self.unsynced = True
                raise

    def _look(self) -> None:
        with self._changing:
            self._load()

    # To be called while nobody else changes anything.

    def _load(self) -> None:
        if self._written >= 0:
            return
        try:
            file = self._files.get(self.name)
        except FileNotFoundError:
            self._written = 0
            return
        count = file.size() // self._entry.size
        self._last = (
            self._entry_of(file.read_at((count - 1) * self._entry.size, self._entry.size), 1) if count else None
        )
        self._written = count

    def _keep(self, count: int, last: Entry | None) -> None:
        """Keep so many entries of those that were written, the last of which is given."""
        with suppress(FileNotFoundError):
            self._files.get(self.name).truncate(count * self._entry.size)
            self.unsynced = True
        self._written, self._unwritten, self._last, self._near = count, b"", last, _NOTHING_NEAR
        self._cuts += 1

    # Searching.

    def _entry_of(self, block: Bytes, count: int) -> Entry:
        """The last of the first so many entries of a block."""
        first, second = self._entry.unpack_from(block, (count - 1) * self._entry.size)
        return first, second

    def _count_up_to(self, block: Bytes, value: int, column: int) -> int:
        """How many entries of a block, from the first on, are not larger than the value."""
        size, unpack = self._entry.size, self._entry.unpack_from
        return bisect_right(range(len(block) // size), value, key=lambda number: unpack(block, number * size)[column])

    def _block_written(self, value: int, column: int, wait: bool) -> tuple[Bytes, int]:
        """Entries of the file among which is the last that is not larger than the value, and how many come before."""
        low, high = 0, self._written
        if high <= 0:
            return b"", 0
        file, size = self._files.get(self.name), self._entry.size
        # One read for the last ten steps.
        while high - low > _BLOCK_ENTRIES:
            middle = (low + high) // 2
            # Where another thread has opened the file just before it grew, it seems to be shorter.
            entry = read(file, middle * size, size, wait)
            if self._count_up_to(entry, value, column):
                low = middle
            else:
                high = middle
        return read(file, low * size, (high - low) * size, wait), low

    def _neighbours_written(self, value: int, wait: bool) -> Neighbours:
        cuts = self._cuts
        block, _ = self._block_written(value, 0, wait)
        size, count = self._entry.size, self._count_up_to(block, value, 0)
        if not count:
            return None, None
        near = memoryview(block)[(count - 1) * size : (count - 1 + _NEAR_ENTRIES) * size]
        entries = list(self._entry.iter_unpack(near))
        with self._changing:
            if cuts == self._cuts:
                self._near = array("q", [first for first, _ in entries]), array("q", [second for _, second in entries])
        return entries[0], entries[1] if len(entries) > 1 else None
