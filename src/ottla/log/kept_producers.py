"""The producers that a log knows, loaded when they are first needed, and their snapshots."""

from ottla.log import snapshots
from ottla.log.chain import Chain
from ottla.log.producers import Producers
from ottla.log.replay import load_producers
from ottla.ports import Clock, Disk


class KeptProducers:
    """Where the producers of one log are found and written down."""

    __slots__ = ("_chain", "_clock", "_disk", "_folder", "_producers", "_unstable_offset", "snapshot_offset")

    def __init__(self, disk: Disk, folder: str, clock: Clock, chain: Chain, end_offset: int) -> None:
        self._disk = disk
        self._folder = folder
        self._clock = clock
        self._chain = chain
        self._producers: Producers | None = None
        self._unstable_offset = -1
        self.snapshot_offset = end_offset
        """Where the newest snapshot was taken; -1 if there is none."""

    def found(self, producers: Producers, snapshot_offset: int) -> None:
        """Recovery has loaded them."""
        self._producers, self.snapshot_offset = producers, snapshot_offset

    def closed_with(self, unstable_offset: int) -> None:
        """They are as the log was closed, with the earliest open transaction at this offset, or -1."""
        self._unstable_offset = unstable_offset

    @property
    def loaded(self) -> Producers:
        """The producers, which are loaded now at the latest."""
        if self._producers is None:
            # Nothing of theirs was written since the log was opened, or they would have been loaded.
            if self.snapshot_offset == 0:
                self._producers = Producers()
            else:
                self._load([self.snapshot_offset])
        assert self._producers is not None
        return self._producers

    def _load(self, snapshot_offsets: list[int]) -> None:
        self._producers, self.snapshot_offset, _ = load_producers(
            self._disk, self._folder, self._chain.segments, snapshot_offsets, self._clock.now_ms()
        )

    def last_stable_offset(self, high_watermark: int) -> int:
        """Up to where no transaction is open, as far as is replicated."""
        if self._producers is None:
            return min(high_watermark, self._unstable_offset) if self._unstable_offset >= 0 else high_watermark
        unstable = self._producers.first_unstable_offset(high_watermark)
        return high_watermark if unstable is None else min(high_watermark, unstable)

    @property
    def unstable_offset(self) -> int:
        """Where the earliest open transaction begins; -1 if there is none."""
        if self._producers is None:
            return self._unstable_offset
        first_open = self._producers.first_open_offset()
        return -1 if first_open is None else first_open

    def expire(self, before_ms: int) -> int:
        """Forget those that were last heard of before a time; how many they were."""
        return 0 if self._producers is None else self._producers.expire(before_ms)

    def truncate(self, offset: int) -> None:
        """Go back to what was known at an offset, where the chain ends now."""
        if self.snapshot_offset > offset:
            self._disk.remove(snapshots.snapshot_name(self._folder, self.snapshot_offset))
        self._load([segment.base_offset for segment in self._chain.segments])

    def write_snapshot(self, offset: int) -> None:
        """Write down what is known at the end of the log."""
        if offset == self.snapshot_offset:
            return
        snapshots.write(self._disk, self._folder, offset, list(self.loaded.states.values()))
        if self.snapshot_offset >= 0 and all(
            segment.base_offset != self.snapshot_offset for segment in self._chain.segments
        ):
            # Snapshots where a segment begins stay as long as the segment.
            self._disk.remove(snapshots.snapshot_name(self._folder, self.snapshot_offset))
        self.snapshot_offset = offset
