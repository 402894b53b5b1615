"""IncrementalAlterConfigs (44): set, delete, append to and subtract from single configs of topics and brokers."""

from typing import TYPE_CHECKING

from ottla.broker.handle.alter_configs import Change, alter_resource, named_twice, repeated_resources
from ottla.broker.handle.describe_configs import check_config_access
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation
from ottla.config.alter import Alteration, alter
from ottla.wire.api.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Alter one resource after the other; each succeeds or fails for itself."""
    return _alter_all(broker, request)


async def _alter_all(broker: "Broker", request: Request) -> IncrementalAlterConfigsResponse:
    body: IncrementalAlterConfigsRequest = request.body
    response = IncrementalAlterConfigsResponse()
    repeated = repeated_resources((each.resource_type, each.resource_name) for each in body.resources)
    for resource in body.resources:
        kind, name = resource.resource_type, resource.resource_name
        result = AlterConfigsResourceResponse(error_message=None, resource_type=kind, resource_name=name)
        response.responses.append(result)
        try:
            if (kind, name) in repeated:
                raise named_twice(name)
            check_config_access(broker, request, ACLOperation.ALTER_CONFIGS, kind, name)
            await alter_resource(broker, kind, name, _alteration(resource), validate_only=body.validate_only)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
    return response


def _alteration(resource: AlterConfigsResource) -> Change:
    alterations = [Alteration(config.name, config.config_operation, config.value) for config in resource.configs]
    return lambda configs, current, effective: alter(configs, current, alterations, effective)
