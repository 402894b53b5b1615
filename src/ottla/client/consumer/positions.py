"""Where reading begins in a partition, and whether it can go on where it was."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import PartitionState, Start, Subscription
from ottla.client.errors import LogTruncationError, NoOffsetForPartitionError, error_of
from ottla.client.offsets import EARLIEST, LATEST, IsolationLevel, ask_offsets
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.net import Connection
from ottla.wire.api.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.errors import ErrorCode, KafkaError

Committed = Callable[[list[TopicPartition]], Awaitable[dict[TopicPartition, OffsetAndMetadata | None]]]

FIRST_VERSION_FOR_CONSUMERS = 3
"""Before, only followers could ask where an epoch ends."""

CONSUMER = -1
UNKNOWN_END = -1

_ENDS = {Start.EARLIEST: EARLIEST, Start.LATEST: LATEST}


class Positions:
    """Finds positions that are not known, and makes sure of those that may not hold under a new leader."""

    def __init__(
        self,
        cluster: Cluster,
        subscription: Subscription,
        signal: Signal,
        *,
        reset: Start | None,
        isolation_level: IsolationLevel,
        committed: Committed | None,
        back_off: Callable[[PartitionState, Exception], None],
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._signal = signal
        self._reset = reset
        self._isolation_level = isolation_level
        self._committed = committed
        self._back_off = back_off
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin."""
        kinds: dict[str, tuple[Callable[[PartitionState], bool], Callable[[list[PartitionState]], Awaitable[None]]]] = {
            "committed positions": (lambda state: state.start is Start.COMMITTED, self._take_committed),
            "resets": (lambda state: state.start not in (None, Start.COMMITTED), self._take_reset),
            "validation": (lambda state: state.unvalidated, self._validate),
        }
        for name, (concerns, work) in kinds.items():
            task = asyncio.create_task(self._attend(concerns, work), name=f"ottla consumer: {name}")
            self._tasks.append(task)

    async def close(self) -> None:
        """End."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _attend(
        self, concerns: Callable[[PartitionState], bool], work: Callable[[list[PartitionState]], Awaitable[None]]
    ) -> None:
        """Do the work for all partitions that it concerns, as soon as there are any."""
        loop = asyncio.get_running_loop()
        while True:
            states = [one for one in self._subscription.assigned.values() if concerns(one) and one.error is None]
            due = [one for one in states if one.not_before <= loop.time()]
            if not due:
                wait_s = min((one.not_before - loop.time() for one in states), default=None)
                await self._subscription.unsettled.wait(wait_s)
                continue
            try:
                await work(due)
            except Exception as error:  # noqa: BLE001 - the user is told
                for state in due:
                    self._back_off(state, error)
            # A position that was found is for those who fetch; one that was not, for another of these tasks.
            self._signal.notify()
            self._subscription.unsettled.notify()

    # Where to begin.

    async def _take_committed(self, states: list[PartitionState]) -> None:
        seeks = {state: state.seeks for state in states}
        committed: dict[TopicPartition, OffsetAndMetadata | None] = {}
        if self._committed is not None:
            committed = await self._committed([state.partition for state in states])
        for state in states:
            if state.seeks != seeks[state]:
                continue
            found = committed.get(state.partition)
            if found is None or found.offset < 0:
                state.begin_at(Start.RESET)
            else:
                state.seek(found.offset, found.leader_epoch)

    async def _take_reset(self, states: list[PartitionState]) -> None:
        times: dict[TopicPartition, int] = {}
        by_partition = {state.partition: (state, state.seeks) for state in states}
        for state in states:
            start = self._reset if state.start is Start.RESET else state.start
            if start is None:
                error = NoOffsetForPartitionError(f"there is no position to begin {state.partition} at")
                self._subscription.fail(state, error)
            else:
                times[state.partition] = _ENDS[start]

        async def ask(connection: Connection, partitions: list[TopicPartition]) -> None:
            wanted = {one: times[one] for one in partitions}
            found = await ask_offsets(connection, wanted, self._isolation_level)
            for partition, answer in found.items():
                state, seeks = by_partition[partition]
                if state.seeks != seeks:
                    continue
                if isinstance(answer, KafkaError):
                    self._refused(state, answer)
                else:
                    assert answer is not None, "a log has ends"
                    state.seek(answer.offset)

        await self._ask_leaders([one for one in states if one.partition in times], ask)

    # Whether it can go on.

    async def _validate(self, states: list[PartitionState]) -> None:
        by_partition = {state.partition: (state, state.seeks) for state in states}

        async def ask(connection: Connection, partitions: list[TopicPartition]) -> None:
            if not _can_validate(connection):
                for one in partitions:
                    by_partition[one][0].unvalidated = False
                return
            topics: dict[str, OffsetForLeaderTopic] = {}
            for one in partitions:
                leader = self._cluster.picture.leader(one)
                topics.setdefault(one.topic, OffsetForLeaderTopic(topic=one.topic)).partitions.append(
                    OffsetForLeaderPartition(
                        partition=one.partition,
                        current_leader_epoch=-1 if leader is None else leader.epoch,
                        leader_epoch=by_partition[one][0].leader_epoch,
                    )
                )
            request = OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=list(topics.values()))
            response: Any = await connection.request(request)
            for topic in response.topics:
                for answer in topic.partitions:
                    partition = TopicPartition(topic.topic, answer.partition)
                    state, seeks = by_partition.get(partition, (None, 0))
                    if state is None or state.seeks != seeks:
                        continue
                    if answer.error_code:
                        self._refused(state, error_of(answer.error_code, f"epochs of {partition}"))
                    else:
                        self._take_epoch_end(state, answer.end_offset)

        await self._ask_leaders(states, ask)

    def _take_epoch_end(self, state: PartitionState, end_offset: int) -> None:
        """What a leader has of the epoch in which the record before the position was written."""
        state.unvalidated = False
        state.failures = 0
        position = state.position
        assert position is not None, "a position that is not known is not validated"
        if end_offset != UNKNOWN_END and end_offset >= position:
            return
        if self._reset is None:
            error = LogTruncationError(f"{state.partition} was cut at {end_offset}, before {position}")
            self._subscription.fail(state, error)
        elif end_offset == UNKNOWN_END:
            state.begin_at(Start.RESET)
        else:
            state.seek(end_offset)

    # Leaders.

    async def _ask_leaders(
        self, states: list[PartitionState], ask: Callable[[Connection, list[TopicPartition]], Awaitable[None]]
    ) -> None:
        """Ask each leader about its partitions. Whoever cannot be asked is asked later, and holds up nobody."""
        if not states:
            return
        by_partition = {state.partition: state for state in states}
        leaders = await self._cluster.find_leaders(by_partition)
        for partition, error in leaders.missing.items():
            self._back_off(by_partition[partition], error)

        async def ask_one(node_id: int, partitions: list[TopicPartition]) -> None:
            try:
                await ask(await self._cluster.broker(node_id), partitions)
            except Exception as error:  # noqa: BLE001 - the user is told
                for partition in partitions:
                    self._refused(by_partition[partition], error)

        await asyncio.gather(*[ask_one(node_id, led) for node_id, led in leaders.by_node.items()])

    def _refused(self, state: PartitionState, error: Exception) -> None:
        if not (isinstance(error, KafkaError) and error.code is ErrorCode.UNKNOWN_LEADER_EPOCH):
            self._cluster.forget_leader(state.partition)
        self._back_off(state, error)


def _can_validate(connection: Connection) -> bool:
    try:
        return connection.version_of(OffsetForLeaderEpochRequest) >= FIRST_VERSION_FOR_CONSUMERS
    except KafkaError:
        return False
