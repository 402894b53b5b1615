"""Records: deleting old ones, and who writes new ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.client.admin.part import AdminPart, Answers, by_topic, outcome, places_of
from ottla.client.checks import place_of
from ottla.client.errors import OffsetOutOfRangeError
from ottla.client.types import TopicPartition
from ottla.net import Connection
from ottla.wire.api.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.api.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.api.describe_producers import ProducerState as ProducerStateOnWire
from ottla.wire.errors import KafkaError


@dataclass(frozen=True, slots=True)
class ProducerState:
    """A producer as a partition remembers it.

    >>> ProducerState(4000, 0, last_sequence=16, last_timestamp=1_700_000_000_000).current_transaction_start_offset
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    """The sequence number of its last record."""
    last_timestamp: int
    """When it last wrote, in milliseconds."""
    coordinator_epoch: int | None = None
    """None if it never wrote in a transaction."""
    current_transaction_start_offset: int | None = None
    """Where the transaction begins that it is in the middle of."""


class RecordAdmin(AdminPart):
    """The methods that concern records. Partitions are asked for at their leaders."""

    async def delete_records(
        self, records_to_delete: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before these offsets, all with -1; gives back where the partitions begin then.

        >>> run(lambda admin: admin.create_topics(["orders"]))
        >>> run(lambda admin: admin.delete_records({TopicPartition("orders", 0): -1}))
        {TopicPartition(topic='orders', partition=0): 0}
        """
        wanted = {place_of(place, "records_to_delete"): offset for place, offset in records_to_delete.items()}
        patience_ms = self._patience_ms(timeout_ms)

        async def ask_one(connection: Connection, left: list[TopicPartition]) -> Answers[TopicPartition, int]:
            topics = [
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=one, offset=wanted[TopicPartition(topic, one)])
                        for one in indexes
                    ],
                )
                for topic, indexes in by_topic(left).items()
            ]
            request = DeleteRecordsRequest(topics=topics, timeout_ms=patience_ms)
            response = await self._change(connection, request, patience_ms)
            answers: dict[TopicPartition, int | KafkaError] = {}
            for topic in response.topics:
                for one in topic.partitions:
                    place = TopicPartition(topic.name, one.partition_index)
                    error = outcome(one.error_code, None, "partition", str(place))
                    if isinstance(error, OffsetOutOfRangeError):
                        reason = f"the log of {place} does not reach offset {wanted[place]}"
                        error = OffsetOutOfRangeError(reason, "give one that is in it, its end at most, or -1 for all")
                    answers[place] = error or one.low_watermark
            return answers

        async def ask(left: list[TopicPartition]) -> Answers[TopicPartition, int]:
            return await self._ask_leaders(left, ask_one)

        return await self._each(wanted, ask, timeout_ms=timeout_ms)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """The idempotent and transactional producers that partitions remember.

        >>> run(lambda admin: admin.create_topics(["orders"]))
        >>> run(lambda admin: admin.describe_producers([TopicPartition("orders", 0)]))
        {TopicPartition(topic='orders', partition=0): ()}
        """

        async def ask_one(
            connection: Connection, left: list[TopicPartition]
        ) -> Answers[TopicPartition, tuple[ProducerState, ...]]:
            topics = [TopicRequest(name=topic, partition_indexes=some) for topic, some in by_topic(left).items()]
            response = await connection.request(DescribeProducersRequest(topics=topics))
            answers: dict[TopicPartition, tuple[ProducerState, ...] | KafkaError] = {}
            for topic in response.topics:
                for one in topic.partitions:
                    place = TopicPartition(topic.name, one.partition_index)
                    failure = outcome(one.error_code, one.error_message, "partition", str(place))
                    answers[place] = failure or tuple(map(_producer, one.active_producers))
            return answers

        async def ask(left: list[TopicPartition]) -> Answers[TopicPartition, tuple[ProducerState, ...]]:
            return await self._ask_leaders(left, ask_one)

        return await self._each(places_of(partitions), ask)


def _producer(state: ProducerStateOnWire) -> ProducerState:
    return ProducerState(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.coordinator_epoch if state.coordinator_epoch >= 0 else None,
        state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None,
    )
