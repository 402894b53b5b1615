"""Aborted transactions of a segment, so that readers of committed records can skip them. Kafka's `.txnindex`."""

from struct import Struct
from typing import NamedTuple

from ottla.log.files import OpenFiles

_ENTRY = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """A transaction whose marker, at `last_offset`, says that it is void."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    """When the marker was written. Whoever reads no further needs no later entries."""


class AbortedIndex:
    """The aborted transactions whose markers lie in one segment, in the order of their markers."""

    __slots__ = ("_count", "_files", "name", "unsynced")

    def __init__(self, files: OpenFiles, name: str) -> None:
        self._files = files
        self._count = -1
        self.name = name
        self.unsynced = False

    def entries(self) -> list[AbortedTransaction]:
        """All of them."""
        if self._count == 0:
            return []
        try:
            file = self._files.get(self.name)
        except FileNotFoundError:
            self._count = 0
            return []
        data = file.read_at(0, file.size() // _ENTRY.size * _ENTRY.size)
        found = [AbortedTransaction(*fields) for _, *fields in _ENTRY.iter_unpack(data)]
        self._count = len(found)
        return found

    def append(self, transaction: AbortedTransaction) -> None:
        """Add one; nothing happens if it is there already, as it may be when a log is replayed."""
        known = self.entries()
        if known and known[-1].last_offset >= transaction.last_offset:
            return
        file = self._files.create(self.name)
        if file.size() % _ENTRY.size:
            file.truncate(len(known) * _ENTRY.size)
        file.append(_ENTRY.pack(0, *transaction))
        self._count = len(known) + 1
        self.unsynced = True

    def truncate(self, offset: int) -> None:
        """Drop those whose marker is at or after an offset."""
        known = self.entries()
        kept = sum(entry.last_offset < offset for entry in known)
        if known and kept < len(known):
            self._files.get(self.name).truncate(kept * _ENTRY.size)
            self._count = kept
            self.unsynced = True

    def sync(self) -> None:
        """Return when all entries are on the disk."""
        if self.unsynced:
            self.unsynced = False
            try:
                self._files.get(self.name).sync()
            except OSError:
                self.unsynced = True
                raise
