"""AlterConfigs (33): replace everything that is set for a topic or a broker. All versions are alike but for encoding.

IncrementalAlterConfigs, which came after it, changes single configs; what both do to a resource is here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.broker.handle.describe_configs import ResourceType, check_config_access, named_broker, unsupported_type
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation
from ottla.cluster.image import TopicImage
from ottla.config.alter import replace_all
from ottla.config.broker import BrokerConfig
from ottla.config.definition import Configs
from ottla.config.parse import render
from ottla.config.topic import TopicConfig, inherited
from ottla.wire.api.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

Effective = Callable[[str], str | None]
"""The text that a config has where nothing is set for the resource itself."""

Change = Callable[[type[Configs], Mapping[str, str], Effective], dict[str, str]]
"""From what is set for a resource to what shall be set. Called anew if somebody else was faster."""


def handle(broker: "Broker", request: Request) -> Answer:
    """Alter one resource after the other; each succeeds or fails for itself."""
    return _alter_all(broker, request)


async def _alter_all(broker: "Broker", request: Request) -> AlterConfigsResponse:
    body: AlterConfigsRequest = request.body
    response = AlterConfigsResponse()
    repeated = repeated_resources((each.resource_type, each.resource_name) for each in body.resources)
    for resource in body.resources:
        kind, name = resource.resource_type, resource.resource_name
        result = AlterConfigsResourceResponse(error_message=None, resource_type=kind, resource_name=name)
        response.responses.append(result)
        try:
            if (kind, name) in repeated:
                raise named_twice(name)
            check_config_access(broker, request, ACLOperation.ALTER_CONFIGS, kind, name)
            await alter_resource(broker, kind, name, _replacement(resource), validate_only=body.validate_only)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
    return response


def _replacement(resource: AlterConfigsResource) -> Change:
    return lambda configs, _current, _effective: replace_all(
        configs, [(config.name, config.value) for config in resource.configs]
    )


def repeated_resources(resources: Iterable[tuple[int, str]]) -> frozenset[tuple[int, str]]:
    """Those that are there more than once.

    >>> repeated_resources([(2, "orders"), (4, "1"), (2, "orders")])
    frozenset({(2, 'orders')})
    """
    return frozenset(resource for resource, count in Counter(resources).items() if count > 1)


def named_twice(name: str) -> KafkaError:
    """The error for a resource that a request names more than once."""
    return KafkaError(ErrorCode.INVALID_REQUEST, f"resource {name!r} is there more than once; send it once")


async def alter_resource(
    broker: "Broker", resource_type: int, name: str, change: Change, *, validate_only: bool
) -> None:
    """Change what is set for a topic, for this broker or for all brokers; KafkaError if that cannot be."""
    if resource_type == ResourceType.TOPIC:
        await _alter_topic(broker, name, change, validate_only)
    elif resource_type == ResourceType.BROKER:
        await _alter_broker(broker, named_broker(broker, name), change, validate_only)
    else:
        raise unsupported_type(resource_type)


async def _alter_topic(broker: "Broker", name: str, change: Change, validate_only: bool) -> None:
    def effective(config: str) -> str | None:
        return render(inherited(TopicConfig.definition(config), broker.config))

    def altered(current: Mapping[str, str]) -> Mapping[str, str]:
        return change(TopicConfig, current, effective)

    await broker.topics.alter_configs(name, altered, validate_only=validate_only)


async def _alter_broker(broker: "Broker", node_id: int | None, change: Change, validate_only: bool) -> None:
    def effective(config: str) -> str | None:
        return render(_with_layer(broker.config, node_id, {}).value(config))

    def altered(current: Mapping[str, str]) -> Mapping[str, str]:
        configs = change(BrokerConfig, current, effective)
        BrokerConfig.check_dynamic(configs)
        _topic_configs(broker, _with_layer(broker.config, node_id, configs))
        return configs

    async with broker.topics.one_at_a_time:
        wanted = _with_layer(broker.config, node_id, altered(await broker.catalog.load_broker_configs(node_id)))
        prepared = [await prepare(wanted) for prepare in broker.preparations]
        if validate_only:
            return
        configs = await broker.catalog.alter_broker_configs(node_id, altered)
        broker.reconfigure(_with_layer(broker.config, node_id, configs))
        for adopt in prepared:
            adopt()


def _with_layer(config: BrokerConfig, node_id: int | None, texts: Mapping[str, str]) -> BrokerConfig:
    return config.with_dynamic(default=texts) if node_id is None else config.with_dynamic(own=texts)


def _topic_configs(broker: "Broker", config: BrokerConfig) -> list[tuple[TopicImage, TopicConfig]]:
    """What the topics' configs become over a changed broker; INVALID_CONFIG if a topic's own do not go with it."""
    return [(topic, TopicConfig.of(topic.configs, config)) for topic in broker.image.topics.values()]
