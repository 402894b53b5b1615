"""ConsumerGroupHeartbeat (68): join, stay in and leave a group whose coordinator assigns the partitions.

The member says what has changed for it, and hears what has changed for it. v1 has subscriptions by regular expression,
and members that choose their own ids.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.coordinator.group.shard import GroupShard
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Have the group decide."""
    body: ConsumerGroupHeartbeatRequest = request.body
    if "consumer" not in broker.config.group_coordinator_rebalance_protocols:
        message = "the consumer protocol is switched off: group.coordinator.rebalance.protocols does not name it"
        return _refuse(KafkaError(ErrorCode.UNSUPPORTED_VERSION, message))
    try:
        check_allowed(broker, request, ACLOperation.READ, ResourceType.GROUP, body.group_id)
        for name in body.subscribed_topic_names or ():
            check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.TOPIC, name)
    except KafkaError as error:
        return _refuse(error)
    return broker.groups.ask(request, body.group_id, GroupShard.consumer_group_heartbeat, body, _refuse)


def _refuse(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
