"""Fetching ahead of the user: from all leaders at once, as long as there is room."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from ottla.client.checks import check_number
from ottla.client.cluster import Cluster
from ottla.client.connections import Lane
from ottla.client.consumer.replies import Replies
from ottla.client.consumer.sessions import LAST_VERSION_WITH_NAMES, FetchSession, Wanted
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import PartitionState, Subscription
from ottla.client.errors import OffsetOutOfRangeError, error_of
from ottla.client.outage import Outage
from ottla.client.picture import NO_LEADER, NO_TOPIC_ID, Leader
from ottla.client.types import TopicPartition
from ottla.wire.api.fetch import FetchRequest, FetchResponse
from ottla.wire.errors import ErrorCode, KafkaError

SHORT_WAIT_MS = 50
"""How long a fetch waits for records while other partitions have none fetched for lack of room."""

PARTITION_BYTES, REPLY_BYTES = 2**20, 50 * 2**20
"""Bytes of one partition in a reply, and of a reply, at most, unless the user says so."""

PARTITION_BYTES_OF_COLUMNS, REPLY_BYTES_OF_COLUMNS = 8 * 2**20, 8 * 2**20
"""The same where whole columns are read. Each part of a reply costs about as much as a thousand rows of it, so they are
larger; but replies that do not stay in the processor's caches cost more than that."""

FIRST_VERSION_WITH_MAX_BYTES = 3
LARGEST_INT32 = 2**31 - 1

_SESSION_UNKNOWN = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    """How much to fetch at a time, and how far ahead."""

    fetch_min_bytes: int = 1
    fetch_max_bytes: int | None = None
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int | None = None
    buffer_memory: int = 64 * 2**20
    read_committed: bool = False
    allow_auto_create_topics: bool = True

    def __post_init__(self) -> None:
        check_number("buffer_memory", self.buffer_memory)
        for name, least in _LEAST.items():
            if (value := getattr(self, name)) is None and name in _CHOSEN:
                continue
            check_number(name, value)
            if not least <= value <= LARGEST_INT32:
                raise ValueError(f"{name} is {value}; it must be between {least} and {LARGEST_INT32}")
        if self.buffer_memory < 1:
            raise ValueError(f"buffer_memory is {self.buffer_memory}; it must be at least 1")

    def limits(self, *, of_columns: bool) -> tuple[int, int]:
        """How many bytes of a partition to ask for, and how many in all.

        >>> FetchOptions(fetch_max_bytes=2**20).limits(of_columns=True)
        (1048576, 1048576)
        """
        partition_bytes, reply_bytes = self.max_partition_fetch_bytes, self.fetch_max_bytes
        if partition_bytes is None:
            # A partition of which nothing is there is asked for whether there is room or not.
            larger = min(PARTITION_BYTES_OF_COLUMNS, self.buffer_memory // 8)
            partition_bytes = max(PARTITION_BYTES, larger) if of_columns else PARTITION_BYTES
            if reply_bytes is not None:
                partition_bytes = min(partition_bytes, reply_bytes)
        if reply_bytes is None:
            reply_bytes = max(REPLY_BYTES_OF_COLUMNS, partition_bytes) if of_columns else REPLY_BYTES
        return partition_bytes, reply_bytes


_CHOSEN = ("fetch_max_bytes", "max_partition_fetch_bytes")
_LEAST = {"fetch_min_bytes": 0, "fetch_max_bytes": 1, "fetch_max_wait_ms": 0, "max_partition_fetch_bytes": 1}


class Fetcher:
    """Keeps a fetch under way to each broker that leads partitions which are read."""

    def __init__(
        self,
        cluster: Cluster,
        subscription: Subscription,
        options: FetchOptions,
        signal: Signal,
        replies: Replies,
        report: Callable[[BaseException], None],
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._options = options
        self._signal = signal
        self._replies = replies
        self._report = report
        self._by_node: dict[int, asyncio.Task[None]] = {}
        self._expected: dict[int, int] = {}
        self._leaders: asyncio.Task[None] | None = None
        self._outage = Outage(log, "fetching")

    def start(self) -> None:
        """Begin."""
        self._leaders = asyncio.create_task(self._keep_leaders(), name="ottla consumer: leaders")

    async def close(self) -> None:
        """End; what is being fetched is given up."""
        tasks = [task for task in (self._leaders, *self._by_node.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Who leads what.

    async def _keep_leaders(self) -> None:
        failures = 0
        loop = asyncio.get_running_loop()
        max_age_s = self._cluster.options.metadata_max_age_ms / 1000
        refreshed_at = loop.time()
        while True:
            unknown = self._without_leader()
            if not unknown and loop.time() - refreshed_at >= max_age_s:
                unknown = {partition.topic for partition in self._subscription.assigned}
                refreshed_at = loop.time()
            if not unknown:
                failures = 0
                self._start_nodes()
                await self._subscription.unsettled.wait(max_age_s)
                continue
            try:
                await self._ask_leaders(unknown)
            except Exception as error:  # noqa: BLE001 - the user is told
                if not (isinstance(error, KafkaError) and error.retriable):
                    self._report(error)
                self._outage.met(f"cannot find out who leads {', '.join(sorted(unknown))}: {error}")
            self._start_nodes()
            if self._without_leader():
                failures += 1
                await asyncio.sleep(self._cluster.backoff_s(failures))

    def _without_leader(self) -> set[str]:
        found = set()
        for partition, state in self._subscription.assigned.items():
            leader = self._cluster.picture.leader(partition)
            if (leader is None or leader.node_id == NO_LEADER) and state.error is None:
                found.add(partition.topic)
        return found

    async def _ask_leaders(self, topics: set[str]) -> None:
        create = self._options.allow_auto_create_topics
        response = await self._cluster.metadata(sorted(topics), create=create)
        self._subscription.missing.look(response, self._subscription.assigned)
        for topic in response.topics:
            error = error_of(topic.error_code, f"topic {topic.name!r}") if topic.error_code else None
            if error is not None and not error.retriable:
                for partition, state in self._subscription.assigned.items():
                    if partition.topic == topic.name:
                        self._subscription.fail(state, error)
        self._signal.notify()

    def _start_nodes(self) -> None:
        for partition in self._subscription.assigned:
            leader = self._cluster.picture.leader(partition)
            if leader is not None and leader.node_id != NO_LEADER and leader.node_id not in self._by_node:
                node_id = leader.node_id
                task = asyncio.create_task(self._fetch_from(node_id), name=f"ottla consumer: broker {node_id}")
                self._by_node[node_id] = task

    # One broker.

    async def _fetch_from(self, node_id: int) -> None:
        session = FetchSession()
        try:
            while self._is_leader(node_id):
                wanted, max_bytes, wait_ms, pause_s = self._plan(node_id, in_turns=not session.is_open)
                if not wanted:
                    await self._signal.wait(pause_s)
                    continue
                self._expected[node_id] = max_bytes
                try:
                    await self._fetch(node_id, session, wanted, max_bytes, wait_ms)
                except Exception as error:  # noqa: BLE001 - the user is told
                    self._outage.met(f"broker {node_id}: {error}")
                    session.begin_anew()
                    self._replies.failed(wanted, error)
                else:
                    if self._outage.goes_on and self._is_well():
                        self._outage.over()
                finally:
                    del self._expected[node_id]
                self._signal.notify()
        finally:
            del self._by_node[node_id]
            self._subscription.unsettled.notify()

    def _is_well(self) -> bool:
        return not self._without_leader() and not any(one.failures for one in self._subscription.assigned.values())

    def _is_leader(self, node_id: int) -> bool:
        leader = self._cluster.picture.leader
        return any((leader(one) or Leader()).node_id == node_id for one in self._subscription.assigned)

    def _plan(self, node_id: int, *, in_turns: bool) -> tuple[dict[TopicPartition, Wanted], int, int, float | None]:
        """What to fetch now, how many bytes at most, how long the broker may wait; when to look again if nothing."""
        options = self._options
        states = self._subscription.assigned
        now = asyncio.get_running_loop().time()
        room = options.buffer_memory - self._buffered()
        partition_bytes, reply_bytes = options.limits(of_columns=self._subscription.reads_columns)
        least = min(partition_bytes, reply_bytes, options.buffer_memory)
        share = options.buffer_memory // max(1, len(states))
        wanted: dict[TopicPartition, Wanted] = {}
        wait_ms = options.fetch_max_wait_ms
        pause_s: float | None = None
        for partition, state in sorted(states.items(), key=_last_served) if in_turns else states.items():
            leader = self._cluster.picture.leader(partition)
            if leader is None or leader.node_id not in self._by_node:
                # Others learn who leads what, and forget it, too.
                self._subscription.unsettled.notify()
                continue
            if leader.node_id != node_id or not self._is_fetched(state, leader):
                continue
            if state.not_before > now:
                later_s = state.not_before - now
                pause_s = later_s if pause_s is None else min(pause_s, later_s)
            elif state.chunks and (room < least or state.buffered_bytes >= share):
                wait_ms = min(wait_ms, SHORT_WAIT_MS)
            elif self._is_same_topic(state, topic_id := self._cluster.topic_id(partition.topic)):
                offset = state.fetch_offset
                assert offset is not None, "a position that is not known is looked for first"
                wanted[partition] = Wanted(offset, partition_bytes, leader.epoch, topic_id)
        return wanted, max(least, min(reply_bytes, room)), wait_ms, pause_s

    def _is_fetched(self, state: PartitionState, leader: Leader) -> bool:
        if not state.is_readable or state.error is not None:
            return False
        if state.stop_offset is not None and (state.fetch_offset or 0) >= state.stop_offset:
            return False
        if leader.epoch != state.current_epoch:
            # A new leader may have less than the one before had. Only records say how far the epochs agree.
            state.unvalidated = state.unvalidated or (state.current_epoch >= 0 and state.leader_epoch >= 0)
            state.current_epoch = leader.epoch
            if state.unvalidated:
                self._subscription.unsettled.notify()
        return not state.unvalidated

    def _is_same_topic(self, state: PartitionState, topic_id: bytes) -> bool:
        """Whether the position is of this topic. In one of the same name it would leave out what is before it."""
        if topic_id == NO_TOPIC_ID or state.topic_id in (None, topic_id):
            state.topic_id = None if topic_id == NO_TOPIC_ID else topic_id
            return True
        message = f"the topic was made again, which position {state.position} of {state.partition} is not of"
        self._replies.take_out_of_range(state, OffsetOutOfRangeError(message))
        # No reply comes of what is not asked for, and whoever waits must be told nevertheless.
        self._signal.notify()
        return False

    def _buffered(self) -> int:
        """Bytes that are in memory or on their way. Copies what keeps replies alive that are read for the most part."""
        states = self._subscription.assigned.values()
        chunks = [chunk for state in states for chunk in state.chunks]
        needed = sum(chunk.size for chunk in chunks)
        replies = {id(chunk.data.obj): len(chunk.data.obj) for chunk in chunks}  # type: ignore[arg-type]
        kept = sum(replies.values())
        if kept > self._options.buffer_memory and needed < kept // 2:
            for chunk in chunks:
                chunk.detach()
            kept = needed
        return kept + sum(self._expected.values())

    async def _fetch(
        self,
        node_id: int,
        session: FetchSession,
        wanted: dict[TopicPartition, Wanted],
        max_bytes: int,
        wait_ms: int,
    ) -> None:
        connection = await self._cluster.broker(node_id, Lane.FETCH)
        version = connection.version_of(FetchRequest)
        if any(one.topic_id == NO_TOPIC_ID for one in wanted.values()):
            version = min(version, LAST_VERSION_WITH_NAMES)
        if version < FIRST_VERSION_WITH_MAX_BYTES:
            count = max(1, max_bytes // max(one.max_bytes for one in wanted.values()))
            wanted = dict(islice(wanted.items(), count))
        request = session.request(wanted, version)
        request.max_wait_ms, request.min_bytes, request.max_bytes = wait_ms, self._options.fetch_min_bytes, max_bytes
        request.isolation_level = int(self._options.read_committed)
        timeout_ms = wait_ms + self._cluster.request_timeout_ms
        response: FetchResponse = await connection.request(request, version=version, timeout_ms=timeout_ms)
        if response.error_code:
            _take_refusal(session, response.error_code)
            return
        session.accepted(response.session_id)
        self._replies.take(response, version, wanted)
        if response.throttle_time_ms:
            self._signal.notify()
            await connection.quiet()


def _take_refusal(session: FetchSession, code: int) -> None:
    error = error_of(code, "fetch")
    if error.code in _SESSION_UNKNOWN:
        session.forget()
    elif error.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
        session.begin_anew()
    else:
        raise error


def _last_served(item: tuple[TopicPartition, PartitionState]) -> int:
    return item[1].served
