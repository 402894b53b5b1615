"""ListConfigResources (74): what has configs.

v0 lists client metrics subscriptions only, of which there are none; v1 lists resources of the types that are asked for,
or of all types.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.handle.describe_configs import ResourceType
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation
from ottla.cluster.acl import ResourceType as AclResourceType
from ottla.wire.api.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """List topics and brokers; of the other types there is nothing that could be described."""
    body: ListConfigResourcesRequest = request.body
    try:
        check_allowed(broker, request, ACLOperation.DESCRIBE_CONFIGS, AclResourceType.CLUSTER)
    except KafkaError as error:
        return ListConfigResourcesResponse(error_code=error.code)
    if request.version == 0:
        return ListConfigResourcesResponse()
    asked = set(body.resource_types) or set(ResourceType)
    if not asked <= set(ResourceType):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind) for kind, name in _resources(broker) if kind in asked
        ]
    )


def _resources(broker: "Broker") -> Iterator[tuple[ResourceType, str]]:
    for topic in broker.image.topics:
        yield ResourceType.TOPIC, topic
    for node_id in broker.image.brokers:
        yield ResourceType.BROKER, str(node_id)
