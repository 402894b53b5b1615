"""ConsumerGroupDescribe (69): state and members of groups whose coordinator assigns. v1 tells the members' protocol."""

from typing import TYPE_CHECKING

from ottla.broker.coordinator import together
from ottla.broker.handle.describe_groups import GROUP_OPERATIONS
from ottla.broker.request import Answer, Request
from ottla.coordinator.group.shard import GroupShard
from ottla.wire.api.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Describe each group for itself."""
    body: ConsumerGroupDescribeRequest = request.body
    operations = body.include_authorized_operations

    def merge(answers: list[ConsumerGroupDescribeResponse]) -> ConsumerGroupDescribeResponse:
        groups = [group for answer in answers for group in answer.groups]
        for group in groups:
            if operations and not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
        return ConsumerGroupDescribeResponse(groups=groups)

    return together([_describe(broker, request, group_id) for group_id in body.group_ids], merge)


def _describe(broker: "Broker", request: Request, group_id: str) -> Answer:
    def refuse(error: KafkaError) -> ConsumerGroupDescribeResponse:
        group = DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
        return ConsumerGroupDescribeResponse(groups=[group])

    asked = ConsumerGroupDescribeRequest(group_ids=[group_id])
    return broker.groups.ask(request, group_id, GroupShard.consumer_group_describe, asked, refuse)
