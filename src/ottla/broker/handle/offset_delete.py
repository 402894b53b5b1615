"""OffsetDelete (47): forget what a group has committed for topics that it does not read. There is one version."""

from typing import TYPE_CHECKING

from ottla.broker.request import Answer, Request
from ottla.coordinator.group.shard import GroupShard
from ottla.wire.api.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Have the group decide."""
    body: OffsetDeleteRequest = request.body
    return broker.groups.ask(request, body.group_id, GroupShard.offset_delete, body, _refuse)


def _refuse(error: KafkaError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)
