"""DescribeProducers (61): the producers whose sequence a partition remembers."""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.wire.api.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Answer each partition for itself."""
    body: DescribeProducersRequest = request.body
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_answer(broker, request, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in body.topics
        ]
    )


def _answer(broker: "Broker", request: Request, topic: str, index: int) -> PartitionResponse:
    result = PartitionResponse(partition_index=index)
    try:
        check_allowed(broker, request, ACLOperation.READ, ResourceType.TOPIC, topic)
        result.active_producers = [
            ProducerState(
                producer_id=state.producer_id,
                producer_epoch=state.epoch,
                last_sequence=state.last_sequence,
                last_timestamp=state.last_timestamp,
                coordinator_epoch=state.coordinator_epoch,
                current_txn_start_offset=state.transaction_first_offset,
            )
            for state in broker.leader(topic, index).log.producers.states.values()
        ]
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
    return result
