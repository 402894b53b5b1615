"""A partition as its leader holds it: the log, its high watermark, and those who wait.

With a single replica what is appended is committed at once, unless the topic's flush policy has acknowledgements wait
for the disk; then they wait together, and one sync serves all that came before it began.
"""

from collections.abc import Awaitable
from typing import Final, NamedTuple

from ottla.config.topic import TopicConfig
from ottla.log.append import Appended
from ottla.log.log import Log
from ottla.ports.disk import FileSlice
from ottla.record.batch import Batch
from ottla.replica.group_sync import GroupSync
from ottla.replica.validate import Checked
from ottla.replica.waiters import Waiters
from ottla.wire.errors import ErrorCode, KafkaError

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
DEBUG_REPLICA: Final = -2
"""The replica id that reads past the high watermark, as if it were a follower."""

NO_LEADER_EPOCH: Final = -1
IN_SYNC: Final = 1
"""Replicas in sync: the leader itself, while there are no others."""


class Read(NamedTuple):
    """What a fetch finds: a slice of a segment file, if there is any, and the marks that go with it."""

    records: FileSlice | None
    high_watermark: int
    last_stable_offset: int
    start_offset: int

    @property
    def size(self) -> int:
        """Bytes of records."""
        return 0 if self.records is None else self.records.length


class Partition:
    """The leader of one partition."""

    __slots__ = (
        "_dirty_since_ms",
        "_group_sync",
        "_rolled",
        "bytes_in",
        "bytes_out",
        "config",
        "index",
        "leader_epoch",
        "log",
        "records_in",
        "topic",
        "waiters",
    )

    def __init__(self, topic: str, index: int, log: Log, config: TopicConfig, leader_epoch: int) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.config = config
        self.leader_epoch = leader_epoch
        self.waiters = Waiters()
        self.bytes_in = 0
        """Bytes of batches that were appended since the log was opened, and below, the records in them."""
        self.records_in = 0
        self.bytes_out = 0
        """Bytes of batches that readers were given. Whoever answers them counts here: a read may be repeated."""
        self._group_sync = GroupSync(log.flush)
        # What a killed broker has left in the page cache is due at once.
        self._dirty_since_ms = 0
        self._rolled = False

    def check_in_sync(self) -> None:
        """Refuse acks=all where fewer replicas are in sync than the topic wants."""
        if self.config.min_insync_replicas > IN_SYNC:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.name} has {IN_SYNC} replica in sync, min.insync.replicas = {self.config.min_insync_replicas}",
            )

    @property
    def high_watermark(self) -> int:
        """The offset before which everything is committed."""
        return self.log.end_offset

    def check_epoch(self, claimed: int) -> None:
        """Compare the leader epoch that a client believes in with this leader's."""
        if claimed == NO_LEADER_EPOCH or claimed == self.leader_epoch:
            return
        if claimed < self.leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH, f"leader epoch {claimed} is over, it is {self.leader_epoch} now"
            )
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH, f"leader epoch {claimed} is not known here, it is {self.leader_epoch}"
        )

    def append(self, checked: Checked) -> Appended:
        """Append a batch that `check_records` has passed; it is readable at once."""
        return self._append(checked.batch, checked.now_ms, of_any_size=False)

    def append_own(self, batch: Batch, now_ms: int) -> Appended:
        """Append a batch that the broker itself has made: what producers must not do, and how much, is not checked."""
        return self._append(batch, now_ms, of_any_size=True)

    def _append(self, batch: Batch, now_ms: int, *, of_any_size: bool) -> Appended:
        appended = self.log.append_as_leader(batch, self.leader_epoch, of_any_size=of_any_size)
        if not appended.duplicate:
            if self.log.recovery_point >= appended.base_offset:
                self._dirty_since_ms = now_ms
            self._rolled = self._rolled or appended.rolled
            self.bytes_in += batch.size
            self.records_in += appended.last_offset - appended.base_offset + 1
            self.waiters.grew(batch.size)
        return appended

    def flush_is_due(self, now_ms: int) -> bool:
        """Whether flush.ms is over since the first record that was not synced, or a segment was finished."""
        if self.log.recovery_point >= self.log.end_offset:
            return False
        if self._rolled:
            self._rolled = False
            return True
        return self._dirty_since_ms <= now_ms - self.config.flush_ms

    def configure(self, config: TopicConfig) -> None:
        """Put changed configs into effect."""
        self.config = self.log.config = config

    @property
    def must_sync(self) -> bool:
        """Whether acknowledgements have to wait for the disk now."""
        return self.log.end_offset - self.log.recovery_point >= self.config.flush_messages

    async def synced(self) -> None:
        """Return when everything appended before this call is on the disk."""
        await self._group_sync.synced()

    def committed(self, next_offset: int) -> Awaitable[None] | None:
        """Something to await until all before an offset, which was appended, is committed; None if it is already.

        With one replica what is appended is committed, once it is on the disk where the flush policy asks for that.
        """
        return self.synced() if self.must_sync and self.log.recovery_point < next_offset else None

    @property
    def name(self) -> str:
        """As the log's folder is called."""
        return f"{self.topic}-{self.index}"

    def read(
        self, offset: int, max_bytes: int, *, isolation: int, replica_id: int, minimum_one: bool, wait: bool
    ) -> Read:
        """Read from an offset as far as this reader may see. Without `wait`, WouldWaitError if the disk is needed."""
        high_watermark = self.high_watermark
        stable = self.log.last_stable_offset(high_watermark)
        if replica_id == DEBUG_REPLICA:
            end = self.log.end_offset
        else:
            end = stable if isolation == READ_COMMITTED else high_watermark
        found = self.log.read(offset, max_bytes, end=end, minimum_one=minimum_one, wait=wait)
        return Read(found, high_watermark, stable, self.log.start_offset)

    def close(self) -> None:
        """Let everyone who waits go."""
        self.waiters.wake_all()
