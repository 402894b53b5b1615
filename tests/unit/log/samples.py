"""Logs in real folders, a clock that stands still, and batches as producers send them."""

import shutil
from errno import ENOSPC
from os import strerror
from pathlib import Path

from ottla.config.topic import TopicConfig
from ottla.log.files import OpenFiles
from ottla.log.log import Log
from ottla.log.retention import Removed
from ottla.ports.disk import SystemDisk, SystemFile
from ottla.record.batch import Batch, batches, records
from ottla.record.build import build_batch
from ottla.record.compression import Codec
from ottla.record.control import build_end_marker
from ottla.record.kernels import Record

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
FOLDER = "orders-0"


class StillClock:
    """Time that moves when a test says so."""

    def __init__(self, now_ms: int = NOW) -> None:
        self.time_ms = now_ms

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic(self) -> float:
        return self.time_ms / 1_000


class FussyFile(SystemFile):
    """A file that its disk may refuse to write or to sync."""

    def __init__(self, disk: "FussyDisk", name: str, path: str, create: bool) -> None:
        super().__init__(path, create)
        self._disk = disk
        self._name = name

    def append(self, *buffers: bytes | bytearray | memoryview) -> None:
        self._disk.check(self._name)
        super().append(*buffers)

    def sync(self) -> None:
        self._disk.check(self._name)
        self._disk.synced.append(self._name)
        super().sync()


class FussyDisk(SystemDisk):
    """A real disk that refuses to make, write or sync files with a certain ending, as if it were full."""

    refused: str | None = None

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.synced: list[str] = []

    def check(self, name: str) -> None:
        if self.refused is not None and name.endswith(self.refused):
            raise OSError(ENOSPC, strerror(ENOSPC), name)

    def open(self, name: str, *, create: bool = False) -> SystemFile:
        if create:
            self.check(name)
        return FussyFile(self, name, self._path(name), create)

    def sync_folder(self, name: str = "") -> None:
        self.synced.append(name + "/")
        super().sync_folder(name)


class Place:
    """A data folder with one log in it."""

    def __init__(self, root: Path, **configs: object) -> None:
        self.root = root
        self.disk = FussyDisk(str(root))
        self.files = OpenFiles(self.disk, limit=16)
        self.clock = StillClock()
        self.config = config_of(**configs)

    @property
    def folder(self) -> Path:
        return self.root / FOLDER

    def create(self) -> Log:
        return Log.create(self.disk, self.files, FOLDER, self.config, self.clock, TOPIC_ID)

    def recover(self, recovery_point: int = 0, start_offset: int | None = None) -> Log:
        """The log as a new process would find it after a crash."""
        self.files = OpenFiles(self.disk, limit=16)
        return Log.open(
            self.disk,
            self.files,
            FOLDER,
            self.config,
            self.clock,
            recovery_point=recovery_point,
            start_offset=start_offset,
        )

    def reopen(self, log: Log) -> Log:
        """Close the log and open it as a new process would after a clean stop."""
        state = log.close()
        self.files = OpenFiles(self.disk, limit=16)
        return Log.open(self.disk, self.files, FOLDER, self.config, self.clock, state=state)

    def reopen_as_is(self, log: Log) -> Log:
        """The same log with all files opened anew, as after they had fallen out of the cache."""
        state = log.close()
        return Log.open(self.disk, OpenFiles(self.disk, limit=16), FOLDER, self.config, self.clock, state=state)

    def crash(self, target: Path) -> "Place":
        """A copy of the folder as it is now, with nothing closed or flushed."""
        shutil.copytree(self.root, target)
        copy = Place(target)
        copy.config, copy.clock = self.config, self.clock
        return copy

    def names(self, suffix: str = "") -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if path.name.endswith(suffix))


def config_of(**configs: object) -> TopicConfig:
    """A config by attribute names: `segment_bytes=1000`."""
    return TopicConfig({name.replace("_", "."): str(value) for name, value in configs.items()})


def batch_of(
    *values: bytes | str,
    timestamp: int = NOW,
    producer: tuple[int, int, int] | None = None,
    codec: Codec = Codec.NONE,
    transactional: bool = False,
    key: bytes | None = None,
) -> Batch:
    """A batch with one record per value; `producer` is its id, epoch and base sequence."""
    producer_id, producer_epoch, base_sequence = producer or (-1, -1, -1)
    content = [value.encode() if isinstance(value, str) else value for value in values]
    data = build_batch(
        [Record(number, timestamp, key, value) for number, value in enumerate(content)],
        codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )
    return Batch(bytearray(data))


def timed_batch(*timestamps: int) -> Batch:
    """A batch with one record per timestamp."""
    data = build_batch([Record(number, time, None, b"v") for number, time in enumerate(timestamps)])
    return Batch(bytearray(data))


def marker(producer_id: int, epoch: int, *, commit: bool) -> Batch:
    """The control batch that ends a transaction."""
    data = build_end_marker(
        commit=commit, producer_id=producer_id, producer_epoch=epoch, coordinator_epoch=0, timestamp_ms=NOW
    )
    return Batch(bytearray(data))


def fill(log: Log, count: int, *, size: int = 100, first: int = 0, timestamp: int = NOW) -> None:
    """Append batches of one record each: `value 0`, `value 1` and so on, padded."""
    for number in range(first, first + count):
        log.append_as_leader(batch_of(f"value {number}".ljust(size), timestamp=timestamp), 0)


def enforce(log: Log, now_ms: int, high_watermark: int | None = None) -> list[Removed]:
    """Retention, with all that has to be on the disk before segments go."""
    removed = log.expire(now_ms, high_watermark)
    log.secure(log.start_offset)
    log.release(log.start_offset)
    return removed


def read_all(log: Log, offset: int | None = None, end: int | None = None) -> list[Record]:
    """All records from an offset on, fetch by fetch, as a consumer gets them."""
    offset = log.start_offset if offset is None else offset
    end = log.end_offset if end is None else end
    found: list[Record] = []
    while (piece := log.read(offset, 10_000, end=end)) is not None:
        for batch in batches(piece.read()):
            assert isinstance(batch, Batch)
            batch.check_crc()
            found += [record for record in records(batch) if record.offset >= offset]
            offset = batch.next_offset
    return found


def values(log: Log) -> list[str]:
    """The values of all records, without padding."""
    return [(record.value or b"").decode().strip() for record in read_all(log)]
