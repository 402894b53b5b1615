"""OffsetDelete (47): forget what a group has committed for topics that it does not read. There is one version."""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed, divided, topic_failure
from ottla.broker.coordinator import together
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.coordinator.group.shard import GroupShard
from ottla.wire.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Have the group decide, about topics that the client may read."""
    body: OffsetDeleteRequest = request.body
    try:
        check_allowed(broker, request, ACLOperation.DELETE, ResourceType.GROUP, body.group_id)
    except KafkaError as error:
        return _refuse(error)
    body.topics, refused = divided(
        body.topics, lambda topic: topic_failure(broker, request, ACLOperation.READ, topic.name)
    )
    if not refused:
        return _delete(broker, request, body)

    def merge(answers: list[OffsetDeleteResponse]) -> OffsetDeleteResponse:
        if not answers[0].error_code:
            answers[0].topics += map(_refused, refused)
        return answers[0]

    return together([_delete(broker, request, body)], merge)


def _refused(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
        ],
    )


def _delete(broker: "Broker", request: Request, body: OffsetDeleteRequest) -> Answer:
    return broker.groups.ask(request, body.group_id, GroupShard.offset_delete, body, _refuse)


def _refuse(error: KafkaError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)
