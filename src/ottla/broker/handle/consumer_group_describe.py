"""ConsumerGroupDescribe (69): state and members of groups whose coordinator assigns. v1 tells the members' protocol."""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import authorized_operations, check_allowed, topic_failure
from ottla.broker.coordinator import together
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.coordinator.group.shard import GroupShard
from ottla.wire.api.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Describe each group for itself."""
    body: ConsumerGroupDescribeRequest = request.body
    operations = body.include_authorized_operations

    def merge(answers: list[ConsumerGroupDescribeResponse]) -> ConsumerGroupDescribeResponse:
        groups = [_or_refused(broker, request, group) for answer in answers for group in answer.groups]
        for group in groups:
            if operations and not group.error_code:
                group.authorized_operations = authorized_operations(broker, request, ResourceType.GROUP, group.group_id)
        return ConsumerGroupDescribeResponse(groups=groups)

    return together([_describe(broker, request, group_id) for group_id in body.group_ids], merge)


def _or_refused(broker: "Broker", request: Request, group: DescribedGroup) -> DescribedGroup:
    """The group, unless it shows the names of topics that the client may not see."""
    if broker.authorizer is None:
        return group
    names = {name for member in group.members for name in member.subscribed_topic_names}
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            names.update(topic.topic_name for topic in assignment.topic_partitions)
    if not any(topic_failure(broker, request, ACLOperation.DESCRIBE, name) for name in sorted(names)):
        return group
    return DescribedGroup(
        group_id=group.group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="the group reads topics that you may not describe",
    )


def _describe(broker: "Broker", request: Request, group_id: str) -> Answer:
    def refuse(error: KafkaError) -> ConsumerGroupDescribeResponse:
        group = DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
        return ConsumerGroupDescribeResponse(groups=[group])

    try:
        check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.GROUP, group_id)
    except KafkaError as error:
        return refuse(error)
    asked = ConsumerGroupDescribeRequest(group_ids=[group_id])
    return broker.groups.ask(request, group_id, GroupShard.consumer_group_describe, asked, refuse)
