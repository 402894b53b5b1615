"""DescribeConfigs (32): what is set for topics and brokers, where it comes from and what it means.

v0 only tells whether a value is the default; v1 has sources and synonyms, v3 types and documentation. A broker with an
empty name stands for what is set for all brokers while they run.
"""

import asyncio
from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster import acl
from ottla.config.definition import ConfigSource
from ottla.config.describe import ConfigEntry, describe_broker, describe_topic
from ottla.wire.api.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


class ResourceType(IntEnum):
    """What can have configs, as the protocol numbers it."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def check_config_access(
    broker: "Broker", request: Request, operation: acl.ACLOperation, resource_type: int, name: str
) -> None:
    """The KafkaError to answer if somebody may not do that to the configs of a resource."""
    if resource_type == ResourceType.TOPIC:
        check_allowed(broker, request, operation, acl.ResourceType.TOPIC, name)
    elif resource_type == ResourceType.GROUP:
        check_allowed(broker, request, operation, acl.ResourceType.GROUP, name)
    else:
        check_allowed(broker, request, operation, acl.ResourceType.CLUSTER)


def handle(broker: "Broker", request: Request) -> Answer:
    """Describe each resource for itself."""
    return _answer_all(broker, request)


async def _answer_all(broker: "Broker", request: Request) -> DescribeConfigsResponse:
    body: DescribeConfigsRequest = request.body
    response = DescribeConfigsResponse()
    for resource in body.resources:
        response.results.append(_answer(broker, request, resource))
        # Tools ask for all topics at once, which takes a while; others get their turn in between.
        await asyncio.sleep(0)
    return response


def _answer(broker: "Broker", request: Request, resource: DescribeConfigsResource) -> DescribeConfigsResult:
    body: DescribeConfigsRequest = request.body
    result = DescribeConfigsResult(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        check_config_access(
            broker, request, acl.ACLOperation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name
        )
        result.configs = [
            DescribeConfigsResourceResult(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                is_default=_is_default(entry, resource),
                config_source=entry.source,
                is_sensitive=entry.sensitive,
                synonyms=_synonyms(entry) if body.include_synonyms else [],
                config_type=entry.type,
                documentation=entry.documentation if body.include_documentation else None,
            )
            for entry in _entries(broker, resource)
        ]
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
    return result


def _entries(broker: "Broker", resource: DescribeConfigsResource) -> Iterable[ConfigEntry]:
    # Some clients send an empty list where they mean everything.
    names = frozenset(resource.configuration_keys or ()) or None
    if resource.resource_type == ResourceType.TOPIC:
        return describe_topic(broker.topics.existing(resource.resource_name).configs, broker.config, names)
    if resource.resource_type != ResourceType.BROKER:
        raise unsupported_type(resource.resource_type)
    if named_broker(broker, resource.resource_name) is not None:
        return describe_broker(broker.config, names)
    return _cluster_defaults(broker, names)


def _cluster_defaults(broker: "Broker", names: frozenset[str] | None) -> Iterable[ConfigEntry]:
    """Only what was set for all brokers, and nothing of what this one has for itself."""
    chosen = [name for name in broker.config.dynamic_default if names is None or name in names]
    for entry in describe_broker(broker.config.with_dynamic(own={}), chosen):
        default_only = (each for each in entry.synonyms if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER)
        yield entry._replace(synonyms=tuple(default_only))


def _is_default(entry: ConfigEntry, resource: DescribeConfigsResource) -> bool:
    if resource.resource_type == ResourceType.TOPIC:
        # To a client of v0, what is not the default was set for the topic.
        return entry.source is not ConfigSource.DYNAMIC_TOPIC
    return entry.source is ConfigSource.DEFAULT


def _synonyms(entry: ConfigEntry) -> list[DescribeConfigsSynonym]:
    return [DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source) for each in entry.synonyms]


def named_broker(broker: "Broker", name: str) -> int | None:
    """The broker that a resource names: this one, or None for all brokers; INVALID_REQUEST for any other."""
    if name == "":
        return None
    if name == str(broker.node_id):
        return broker.node_id
    raise KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"broker {name!r} is not this one; ask for {broker.node_id}, or for '', which stands for all brokers",
    )


def unsupported_type(resource_type: int) -> KafkaError:
    """The error for a kind of resource that has no configs here."""
    known = {kind.value: kind.name for kind in ResourceType}
    kind = known.get(resource_type, "not known")
    return KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"resource type {resource_type} ({kind}) has no configs here; topics (2) and brokers (4) have",
    )
