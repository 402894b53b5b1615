"""Bringing one log to the disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from ottla.log import snapshots
from ottla.log.chain import Chain
from ottla.log.epochs import Epochs
from ottla.log.seek import segments_from
from ottla.ports import Disk
from ottla.wire.errors import ErrorCode, KafkaError


class Syncer:
    """Syncs a log's files and names, in whichever thread. Once that has failed, the log can promise nothing more."""

    __slots__ = ("_chain", "_disk", "_folder", "_turns", "failure", "new_folder")

    def __init__(self, disk: Disk, folder: str, chain: Chain) -> None:
        self._disk = disk
        self._folder = folder
        self._chain = chain
        self._turns = Lock()
        self.failure: str | None = None
        """Why the log takes no more records."""
        self.new_folder = False
        """Whether the folder's own name has yet to be synced."""

    def check(self) -> None:
        """KAFKA_STORAGE_ERROR if the log has failed."""
        if self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Only one thread at a time is in here, where an OSError is the end of the log's promises."""
        with self._turns:
            self.check()
            try:
                yield
            except OSError as error:
                # What the page cache holds after a failed sync is anybody's guess.
                self.failure = f"{self._folder} could not be brought to the disk: {error}"
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure) from error

    @contextmanager
    def excluded(self) -> Iterator[None]:
        """Nobody syncs while somebody is in here."""
        with self._turns:
            yield

    def sync(self, start: int, end: int, epochs: Epochs | None) -> None:
        """Return when the records from one offset up to another are on the disk. To be called in a turn."""
        segments = self._chain.segments
        for number, segment in enumerate(segments):
            is_last = number + 1 == len(segments)
            # One that ends right at the start may have been rolled since: its indexes were finished then.
            if segment.base_offset >= end or (not is_last and segments[number + 1].base_offset < start):
                continue
            try:
                segment.sync()
            except FileNotFoundError:
                # Retention may take a segment away meanwhile.
                if segment in self._chain.segments:
                    raise
        self.sync_names()
        if epochs is not None:
            epochs.write(self._disk, self._folder)

    def secure(self, start_offset: int) -> None:
        """Return when what a log that begins at an offset needs is on the disk."""
        stays = segments_from(self._chain.segments, start_offset)[0]
        with self.turn():
            snapshots.sync(self._disk, self._folder, stays.base_offset)
            self.sync_names()

    def sync_names(self) -> None:
        """Return when the names of the log's files are on the disk."""
        if self._chain.names_changed:
            self._chain.names_changed = False
            self._disk.sync_folder(self._folder)
        if self.new_folder:
            self.new_folder = False
            self._disk.sync_folder(self._folder.rpartition("/")[0])
