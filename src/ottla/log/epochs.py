"""Which leader wrote what: the offset at which each leader epoch began."""

from bisect import bisect_right
from itertools import pairwise
from operator import itemgetter
from typing import Final

from ottla.ports import Disk

EPOCHS_FILE: Final = "leader-epoch-checkpoint"
UNDEFINED: Final = (-1, -1)
"""Epoch and end offset where nothing is known."""

_epoch, _start = itemgetter(0), itemgetter(1)


class Epochs:
    """Leader epochs with their start offsets, both only growing. Kept in Kafka's `leader-epoch-checkpoint`.

    Batches carry their epoch too, so what was not written before a crash is found again where recovery scans.

    >>> epochs = Epochs([(0, 0), (3, 100)])
    >>> epochs.end_offset(1, 250), epochs.end_offset(3, 250), epochs.end_offset(4, 250)
    ((0, 100), (3, 250), (-1, -1))
    """

    __slots__ = ("entries", "unwritten")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries = entries or []
        self.unwritten = False

    @classmethod
    def load(cls, disk: Disk, folder: str) -> "Epochs":
        """What the folder's file says; nothing if there is none. ValueError if it is damaged."""
        try:
            text = disk.read(f"{folder}/{EPOCHS_FILE}").decode()
        except FileNotFoundError:
            return cls()
        lines = text.splitlines()
        if len(lines) < 2 or lines[0] != "0" or int(lines[1]) != len(lines) - 2:
            raise ValueError(f"{folder}/{EPOCHS_FILE} does not hold version 0, a count and so many entries")
        entries = [(int(epoch), int(start)) for epoch, start in map(str.split, lines[2:])]
        if any(not (a[0] < b[0] and a[1] <= b[1]) for a, b in pairwise(entries)):
            raise ValueError(f"{folder}/{EPOCHS_FILE} holds epochs that do not grow: {entries}")
        return cls(entries)

    def write(self, disk: Disk, folder: str) -> None:
        """Put them on the disk if they have changed."""
        if not self.unwritten:
            return
        self.unwritten = False
        entries = list(self.entries)
        lines = ["0", str(len(entries)), *(f"{epoch} {start}" for epoch, start in entries)]
        try:
            disk.replace(f"{folder}/{EPOCHS_FILE}", "\n".join([*lines, ""]).encode())
        except OSError:
            self.unwritten = True
            raise

    @property
    def latest(self) -> int:
        """The newest epoch, -1 if there is none."""
        return self.entries[-1][0] if self.entries else -1

    def assign(self, epoch: int, start_offset: int) -> None:
        """A leader's term begins at an offset. Epochs that are not newer than the latest change nothing."""
        if epoch < 0 or (self.entries and epoch <= self.entries[-1][0]):
            return
        # A term in which nothing was written leaves no trace.
        kept = [entry for entry in self.entries if entry[1] < start_offset]
        self.entries = [*kept, (epoch, start_offset)]
        self.unwritten = True

    def end_offset(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to the given one, and the offset after its last record."""
        if epoch < 0 or not self.entries or epoch > self.latest:
            return UNDEFINED
        if epoch == self.latest:
            return epoch, log_end_offset
        after = bisect_right(self.entries, epoch, key=_epoch)
        return self.entries[after - 1][0] if after else epoch, self.entries[after][1]

    def of_offset(self, offset: int) -> int:
        """The epoch in which an offset was written, -1 if that is not known."""
        after = bisect_right(self.entries, offset, key=_start)
        return self.entries[after - 1][0] if after else -1

    def truncate_end(self, offset: int) -> None:
        """Forget the epochs that began at or after an offset."""
        kept = [entry for entry in self.entries if entry[1] < offset]
        self.unwritten |= len(kept) < len(self.entries)
        self.entries = kept

    def truncate_start(self, offset: int) -> None:
        """Forget the epochs that ended at or before an offset; the one it lies in begins there."""
        after = bisect_right(self.entries, offset, key=_start)
        if after and self.entries[after - 1][1] < offset:
            self.entries = [(self.entries[after - 1][0], offset), *self.entries[after:]]
            self.unwritten = True
