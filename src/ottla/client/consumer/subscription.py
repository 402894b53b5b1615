"""What a consumer reads, and how far its user has come. Pure state: nothing here talks to a broker.

A record is *handed out* when the user gets it, and *finished* when he comes back for more. What lies between is *in
hand*: an automatic commit leaves it out, so that a crash in the middle of the user's work loses nothing.
"""

import asyncio
import re
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable
from enum import Enum
from itertools import islice

from ottla.client.checks import check_topic, place_of, shown
from ottla.client.consumer.chunk import Chunk
from ottla.client.consumer.missing import MissingTopics
from ottla.client.consumer.runs import Run
from ottla.client.consumer.signal import Signal
from ottla.client.errors import IllegalStateError
from ottla.client.types import ConsumerRecord, OffsetAndMetadata, TopicPartition


class Start(Enum):
    """Where to read a partition from, as long as its position is not known."""

    COMMITTED = "committed"
    """Where the group is; if it has been nowhere, as `auto_offset_reset` says."""
    RESET = "reset"
    """As `auto_offset_reset` says."""
    EARLIEST = "earliest"
    LATEST = "latest"


class Mode(Enum):
    """How a consumer came to its partitions."""

    NONE = "none"
    USER = "user"
    """They were given with `assign`."""
    TOPICS = "topics"
    """Topics were subscribed to, by name or by pattern."""


class PartitionState:
    """One partition that is assigned to this consumer."""

    __slots__ = (
        "_held_from",
        "_iterated",
        "_leader_epoch",
        "_position",
        "chunks",
        "current_epoch",
        "error",
        "failures",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "not_before",
        "partition",
        "paused",
        "run",
        "seeks",
        "served",
        "start",
        "stop_offset",
        "topic_id",
        "turn",
        "unvalidated",
        "withheld",
    )

    def __init__(self, partition: TopicPartition, start: Start = Start.COMMITTED) -> None:
        self.partition = partition
        self.start: Start | None = start
        """Where to begin; None once the position is known."""
        self.stop_offset: int | None = None
        """Nothing is fetched from there on, since nobody wants it."""
        self.paused = False
        """The user wants nothing of it for now."""
        self.withheld = False
        """The group is handing it over: nothing is fetched, and nothing handed out."""
        self.unvalidated = False
        """Its leader has changed since the position was reached, so that the log may have been cut before it."""
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.error: Exception | None = None
        """Why it cannot be read on; nothing is fetched until the user has been told."""
        self.current_epoch = -1
        """The epoch of the leader that was last fetched from."""
        self.failures = 0
        self.not_before = 0.0
        """When to fetch again after failures in a row, by the event loop's clock."""
        self.topic_id: bytes | None = None
        """That of the topic which the position is of; None until it is fetched from."""
        self.served = 0
        self.turn = 0
        """When records came last; partitions that got none for long come first in the next fetch."""
        self.seeks = 0
        """How often the position was set. A reply to a fetch from before is of no use."""
        self.chunks: deque[Chunk] = deque()
        """What was fetched and not decoded yet."""
        self.run: Run | None = None
        """What was decoded and is being handed out."""
        self._position: int | None = None
        self._leader_epoch = -1
        self._held_from: int | None = None
        self._iterated = False

    def __repr__(self) -> str:
        return f"PartitionState({self.partition}, position={self.position})"

    @property
    def position(self) -> int | None:
        """The next offset that the user gets; None until it is known."""
        return self._position if self.run is None else self.run.position

    @property
    def leader_epoch(self) -> int:
        """The epoch of the record before the position, -1 if that is not known."""
        run = self.run
        return self._leader_epoch if run is None or run.last_offset is None else run.leader_epoch

    @property
    def in_hand(self) -> bool:
        """Whether the user has records of it that he has not come back from."""
        return self._held_from is not None

    @property
    def finished(self) -> int | None:
        """The offset up to which the user is done."""
        if self._held_from is None:
            return self.position
        if self._iterated and self.run is not None and self.run.last_offset is not None:
            return self.run.last_offset
        return self._held_from

    @property
    def buffered_bytes(self) -> int:
        """Bytes that were fetched and not handed out yet."""
        return sum(chunk.size for chunk in self.chunks)

    @property
    def has_records(self) -> bool:
        """Whether there is something to hand out, or at least to look at."""
        return bool(self.chunks) or (self.run is not None and bool(self.run.left))

    @property
    def fetch_offset(self) -> int | None:
        """What to fetch next."""
        if self.chunks:
            return self.chunks[-1].next_offset
        return self._position if self.run is None else self.run.next_offset

    @property
    def is_readable(self) -> bool:
        """Whether records may be fetched and handed out."""
        return not (self.paused or self.withheld) and self.start is None

    def seek(self, offset: int, leader_epoch: int = -1) -> None:
        """Read on from an offset."""
        self._drop()
        self._position, self._leader_epoch, self.start = offset, leader_epoch, None
        self.unvalidated = leader_epoch >= 0

    def begin_at(self, start: Start) -> None:
        """Have the position found anew."""
        self._drop()
        self._position, self._leader_epoch, self.start = None, -1, start
        self.unvalidated = False

    def begin_run(self, run: Run) -> None:
        """Let the user have the records of a run next."""
        self._settle()
        self.run = run

    def hold(self, *, iterated: bool = False) -> None:
        """The user is about to get records of the run: one after another if `iterated`."""
        if self._held_from is None:
            self._held_from = self.position
        self._iterated = iterated

    def take(self, limit: int | None = None) -> list[ConsumerRecord]:
        """The records of the run that are left, or so many of them."""
        run = self.run
        assert run is not None, "there is a run whenever records are taken"
        if run.left == len(run.records) and (limit is None or run.left <= limit):
            self.run = None
            self._position, self._leader_epoch = run.next_offset, run.leader_epoch
            return run.records
        return list(islice(run.iterator, limit))

    def advance(self, offset: int, leader_epoch: int = -1) -> None:
        """What lies before an offset was handed out, or is nothing for the user."""
        self._settle()
        self._position, self._leader_epoch = offset, leader_epoch

    def take_back(self) -> None:
        """The user is done with what he had in hand."""
        # A loop that he comes back to after another call is to ask anew.
        self.stop_run()
        self._held_from = None
        self._iterated = False
        if self.run is not None and not self.run.left:
            self._settle()

    def stop_run(self) -> None:
        """Have whoever is iterating come back before he gets the next record. Nothing is lost."""
        if self.run is None or not self._iterated:
            return
        # What was handed out counts up to the record in hand, and no more of this run will be.
        later = self.run.cut()
        held = self.run.last_offset
        self._settle()
        self.run = later
        self._iterated = False
        if held is not None:
            self._held_from = held

    def _settle(self) -> None:
        if self.run is not None:
            self._position, self._leader_epoch = self.run.position, self.leader_epoch
            if self._iterated and self.run.last_offset is not None:
                self._held_from, self._iterated = self.run.last_offset, False
            self.run = None

    def drop_chunks(self) -> None:
        """Forget what was fetched and not decoded."""
        self.chunks.clear()

    def _drop(self) -> None:
        """Forget what was fetched and not handed out."""
        if self.run is not None:
            self.run.cut()
            self._settle()
        # What the user has in hand is no longer where he reads on, so there is nothing to wait for.
        self._held_from, self._iterated = None, False
        self.drop_chunks()
        self.error, self.failures, self.not_before = None, 0, 0.0
        self.topic_id = None
        self.seeks += 1


def _compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    if not isinstance(pattern, (str, re.Pattern)) or not isinstance(getattr(pattern, "pattern", ""), str):
        raise TypeError(f"pattern is {shown(pattern)}; give a regular expression as a str, or compiled from one")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"pattern is {pattern!r}, which is no regular expression: {error}") from error


class Subscription:
    """What a consumer reads.

    >>> subscription = Subscription()
    >>> subscription.assign_by_user([TopicPartition("orders", 0)])
    >>> subscription.state(TopicPartition("orders", 0)).seek(17)
    >>> subscription.positions_to_commit()
    {TopicPartition(topic='orders', partition=0): OffsetAndMetadata(offset=17, metadata='', leader_epoch=-1)}
    """

    def __init__(self) -> None:
        self.mode = Mode.NONE
        self.topics: frozenset[str] | None = None
        """The topics that were subscribed to by name."""
        self.pattern: re.Pattern[str] | None = None
        """What the names of topics must begin with, if they were subscribed to by pattern."""
        self.matched: frozenset[str] = frozenset()
        """The topics that the pattern was last seen to match."""
        self.assigned: dict[TopicPartition, PartitionState] = {}
        self.failed: dict[TopicPartition, PartitionState] = {}
        """Those that have an error for the user to see."""
        self.unsettled = Signal()
        """Notified when a leader or a position is to be found, or a position to be made sure of."""
        self.missing = MissingTopics()
        self.reads_columns = False
        """Whether the user takes whole columns, for which larger replies pay."""
        self.calls_waiting = 0
        """Calls of the user that wait for records. While there are any, he is not to be missed."""
        self._held: list[PartitionState] = []
        self._returns = 0
        self._watchers: list[Callable[[], None]] = []
        self._waiting: set[asyncio.Future[None]] = set()
        self._taker: weakref.ref[asyncio.Task[object]] | None = None

    # What is read.

    def watch(self, called: Callable[[], None]) -> None:
        """Have something called when topics or partitions have changed."""
        self._watchers.append(called)

    def changed(self) -> None:
        """Tell those who watch."""
        self.unsettled.notify()
        for called in self._watchers:
            called()

    def subscribe(self, topics: Iterable[str] = (), pattern: str | re.Pattern[str] | None = None) -> None:
        """Read topics by name or by pattern, instead of those before. Partitions come with `add`."""
        if self.mode is Mode.USER:
            raise IllegalStateError("partitions were assigned by hand; call unsubscribe() before subscribe()")
        if isinstance(topics, str):
            raise TypeError(f"topics is the string {topics!r}; give a list of names, or pattern=")
        names = list(topics)
        for name in names:
            check_topic(name)
        wanted = frozenset(names)
        if bool(wanted) == (pattern is not None):
            raise ValueError("subscribe to topics or to a pattern, one of the two")
        # Whoever gives a pattern that is none goes on with what he had.
        self.pattern = None if pattern is None else _compiled(pattern)
        self.topics, self.matched = wanted or None, frozenset()
        self.mode = Mode.TOPICS
        self.changed()

    def unsubscribe(self) -> None:
        """Read nothing. Those who watch are told before the partitions go too, for a last look at the positions."""
        self.mode, self.topics, self.pattern, self.matched = Mode.NONE, None, None, frozenset()
        self.changed()
        self.remove(list(self.assigned))

    def assign_by_user(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, and no others. Those that stay keep their position."""
        if self.mode is Mode.TOPICS:
            raise IllegalStateError("topics were subscribed to; call unsubscribe() before assign()")
        wanted = [place_of(partition, "partitions") for partition in partitions]
        self.mode = Mode.USER
        self._forget([one for one in self.assigned if one not in set(wanted)])
        for one in wanted:
            self.assigned.setdefault(one, PartitionState(one))
        self.changed()

    def check_chosen(self) -> None:
        """Raise if nobody has said what to read."""
        if self.mode is Mode.NONE:
            raise IllegalStateError("there is nothing to read; subscribe to topics, or assign partitions first")

    def wants(self, topic: str) -> bool:
        """Whether a topic is subscribed to."""
        if self.pattern is not None:
            return self.pattern.match(topic) is not None
        return self.topics is not None and topic in self.topics

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions that the group gave to this member. Nothing is fetched before `release`."""
        for one in partitions:
            if one not in self.assigned:
                self.assigned[one] = PartitionState(one)
                self.assigned[one].withheld = True
        self.changed()

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch partitions, and hand out what comes."""
        for state in self._states(partitions):
            state.withheld = False
        self.changed()

    def withhold(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch no more of partitions, and hand out nothing of them."""
        for state in self._states(partitions):
            state.withheld = True
            state.stop_run()
        self.changed()

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions that went to another member, or are not read any more."""
        self._forget(partitions)
        self.changed()

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        for one in list(partitions):
            state = self.assigned.pop(one, None)
            if state is not None:
                state.begin_at(Start.COMMITTED)

    def state(self, partition: TopicPartition) -> PartitionState:
        """The state of a partition, which must be assigned."""
        found = self.assigned.get(partition)
        if found is None:
            there = ", ".join(map(str, sorted(self.assigned))) or "none"
            raise IllegalStateError(f"{TopicPartition(*partition)} is not assigned to this consumer; assigned: {there}")
        return found

    def _states(self, partitions: Iterable[TopicPartition] | None) -> Collection[PartitionState]:
        if partitions is None:
            return self.assigned.values()
        return [self.assigned[one] for one in partitions if one in self.assigned]

    def fail(self, state: PartitionState, error: Exception) -> None:
        """Fetch no more of a partition until the user has been told why."""
        state.error = error
        self.failed[state.partition] = state

    # How far the user is.

    def finished_positions(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What may be committed without being asked to: up to the records that the user is done with."""
        found = {}
        for state in self._states(partitions):
            if (offset := state.finished) is not None:
                found[state.partition] = OffsetAndMetadata(offset, "", state.leader_epoch)
        return found

    def positions_to_commit(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the user commits when he names no offsets: everything that was handed out."""
        found = {}
        for state in self.assigned.values():
            if (offset := state.position) is not None:
                found[state.partition] = OffsetAndMetadata(offset, "", state.leader_epoch)
        return found

    def in_hand(self, partitions: Iterable[TopicPartition] | None = None) -> bool:
        """Whether the user has records of these partitions that he has not come back from."""
        return any(state.in_hand for state in self._states(partitions))

    def hand_out(self, state: PartitionState, *, iterated: bool = False) -> None:
        """The user is about to get records of a partition: one after another if `iterated`."""
        state.hold(iterated=iterated)
        self._held.append(state)

    def remember_taker(self) -> None:
        """The task that runs is the one that takes records."""
        task = asyncio.current_task()
        self._taker = None if task is None else weakref.ref(task)

    @property
    def is_abandoned(self) -> bool:
        """Whether another task of the user took what is in hand, and has not come to a good end.

        A worker that was cancelled in the middle of a record must not have it committed by whoever stops the consumer.
        """
        task = None if self._taker is None else self._taker()
        if task is None or task is asyncio.current_task():
            return False
        return not task.done() or task.cancelled() or task.exception() is not None

    def user_returned(self) -> None:
        """The user is done with what he had in hand."""
        self._returns += 1
        for state in self._held:
            state.take_back()
        self._held.clear()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    @property
    def progress(self) -> tuple[int, ...]:
        """A value that is another one whenever the user has come for more."""
        return (self._returns, *[state.finished or 0 for state in self._held])

    async def wait_until_returned(self, partitions: Collection[TopicPartition], timeout_s: float) -> bool:
        """Wait until the user has come back from what he has of these partitions; False if he did not in time."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self.in_hand(partitions):
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.add(waiting)
            try:
                async with asyncio.timeout_at(deadline):
                    await waiting
            except TimeoutError:
                return not self.in_hand(partitions)
            finally:
                self._waiting.discard(waiting)
        return True
