"""What a reply to a fetch means for the partitions that it tells of."""

import asyncio
import logging
from collections.abc import Iterable

from ottla.client.cluster import Cluster
from ottla.client.consumer.chunk import Chunk, extent_of
from ottla.client.consumer.sessions import LAST_VERSION_WITH_NAMES, Wanted
from ottla.client.consumer.subscription import PartitionState, Start, Subscription
from ottla.client.errors import CorruptRecordError, MessageSizeTooLargeError, OffsetOutOfRangeError, error_of
from ottla.client.picture import Leader
from ottla.client.types import TopicPartition
from ottla.record._kernel_types import LARGEST_INT64
from ottla.wire.api.fetch import FetchResponse, NodeEndpoint, PartitionData
from ottla.wire.errors import ErrorCode, KafkaError

FIRST_VERSION_WITH_WHOLE_MESSAGES = 3
"""From here on a broker sends at least one message, however large it is."""

_TOPIC_IS_ANOTHER = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)
_LEADER_IS_BEHIND = (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE)

log = logging.getLogger(__name__)


class Replies:
    """Puts what was fetched where it belongs."""

    def __init__(self, cluster: Cluster, subscription: Subscription, *, resets: bool) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._resets = resets
        """Whether a position outside the log is moved, or is an error."""
        self._count = 0

    def take(self, response: FetchResponse, version: int, wanted: dict[TopicPartition, Wanted]) -> None:
        """Take a reply to a request for `wanted`."""
        for topic in response.responses:
            name = topic.topic if version <= LAST_VERSION_WITH_NAMES else self._cluster.topic_name(topic.topic_id)
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                state = self._subscription.assigned.get(partition)
                asked = wanted.get(partition)
                # The user may have moved on, or the group, while the reply was on its way.
                if state is None or asked is None or state.fetch_offset != asked.offset:
                    continue
                if data.error_code:
                    self._take_error(state, data, asked, response.node_endpoints)
                else:
                    self._take_data(state, data, asked, version)

    def failed(self, partitions: Iterable[TopicPartition], error: Exception) -> None:
        """No reply came: ask who leads these partitions, and try again after a while."""
        for partition in partitions:
            state = self._subscription.assigned.get(partition)
            self._cluster.forget_leader(partition)
            if state is not None:
                self.back_off(state, error)
        self._subscription.unsettled.notify()

    def back_off(self, state: PartitionState, error: Exception) -> None:
        """Leave a partition alone for a while, or until the user knows if that cannot help."""
        if isinstance(error, KafkaError) and error.retriable:
            state.failures += 1
            state.not_before = asyncio.get_running_loop().time() + self._cluster.backoff_s(state.failures)
        else:
            self._subscription.fail(state, error)

    def _take_data(self, state: PartitionState, data: PartitionData, asked: Wanted, version: int) -> None:
        state.failures = 0
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset if data.last_stable_offset >= 0 else None
        state.log_start_offset = data.log_start_offset if data.log_start_offset >= 0 else None
        if not data.records:
            return
        records = memoryview(data.records)
        found = extent_of(records)
        if found is None:
            if version < FIRST_VERSION_WITH_WHOLE_MESSAGES:
                message = (
                    f"the message at offset {asked.offset} of {state.partition} is larger than "
                    f"max_partition_fetch_bytes, {asked.max_bytes}, and the broker is too old to send it nevertheless"
                )
                self._subscription.fail(state, MessageSizeTooLargeError(message))
            return
        if not asked.offset < found.next_offset <= LARGEST_INT64:
            end = found.next_offset
            message = f"what was fetched of {state.partition} at offset {asked.offset} claims to end at {end}"
            self._subscription.fail(state, CorruptRecordError(message).at(state.partition, asked.offset))
            return
        self._count += 1
        state.served = self._count
        state.chunks.append(Chunk(records, found, data.aborted_transactions or ()))

    def _take_error(
        self, state: PartitionState, data: PartitionData, asked: Wanted, endpoints: Iterable[NodeEndpoint]
    ) -> None:
        partition = state.partition
        error = error_of(data.error_code, f"{partition} at offset {asked.offset}")
        if isinstance(error, OffsetOutOfRangeError):
            self.take_out_of_range(state, error.at(partition, asked.offset))
            return
        if error.code in _TOPIC_IS_ANOTHER:
            self._cluster.picture.forget_topic(partition.topic)
        elif error.retriable and error.code not in _LEADER_IS_BEHIND:
            leader = data.current_leader
            if leader is not None and leader.leader_id >= 0:
                newer = Leader(leader.leader_id, leader.leader_epoch)
                if self._cluster.picture.take_hint(partition, newer, endpoints):
                    self._subscription.unsettled.notify()
                    return
            self._cluster.forget_leader(partition)
        self.back_off(state, error)
        self._subscription.unsettled.notify()

    def take_out_of_range(self, state: PartitionState, error: KafkaError) -> None:
        """The log has nothing at the position: begin anew where the user said, or tell him."""
        if state.has_records:
            # What was fetched before the log was cut comes first.
            state.failures += 1
            state.not_before = asyncio.get_running_loop().time() + self._cluster.backoff_s(state.failures)
        elif self._resets:
            log.info("a position is outside the log: %s; reading goes on where auto_offset_reset says", error.message)
            state.begin_at(Start.RESET)
            self._subscription.unsettled.notify()
        else:
            self._subscription.fail(state, error)
