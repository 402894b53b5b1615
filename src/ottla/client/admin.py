"""Administration: topics, partitions and configs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.wire.api.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.api.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.api.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.api.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from ottla.wire.api.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.api.metadata import MetadataResponseTopic
from ottla.wire.errors import ErrorCode

FIRST_CREATE_VERSION_WITH_DEFAULTS = 4


class ResourceType(IntEnum):
    """What configs belong to."""

    TOPIC = 2
    BROKER = 4


class ConfigSource(IntEnum):
    """Where a config's value comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6


class ConfigResource(NamedTuple):
    """A topic by name, or a broker by its id as text; an empty name stands for all brokers."""

    resource_type: ResourceType
    name: str


class ConfigEntry(NamedTuple):
    """One config with its value."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    is_sensitive: bool
    documentation: str | None


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created; -1 stands for the broker's default."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    topic_configs: Mapping[str, str] = field(default_factory=dict)


class AdminClient:
    """Changes topics and configs. What fails raises KafkaError; of several in one call, the first that did."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def list_topics(self) -> list[MetadataResponseTopic]:
        """All topics, by name."""
        response = await self._cluster.metadata(None)
        return sorted(response.topics, key=lambda topic: topic.name or "")

    async def describe_topics(self, names: Iterable[str]) -> list[MetadataResponseTopic]:
        """These topics, each of which must exist."""
        response = await self._cluster.metadata(names)
        for topic in response.topics:
            unknown = topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            check(topic.error_code, f"there is no topic {topic.name!r}" if unknown else f"topic {topic.name!r}")
        return list(response.topics)

    async def create_topics(self, new_topics: Iterable[NewTopic], *, validate_only: bool = False) -> None:
        """Create topics, or only see whether they could be."""
        wanted = list(new_topics)

        async def create() -> None:
            connection = await self._cluster.controller()
            defaults = connection.version_of(CreateTopicsRequest) >= FIRST_CREATE_VERSION_WITH_DEFAULTS
            request = CreateTopicsRequest(
                topics=[_creatable(topic, -1 if defaults else 1) for topic in wanted],
                timeout_ms=self._cluster.request_timeout_ms,
                validate_only=validate_only,
            )
            response = await connection.request(request)
            for result in response.topics:
                check(result.error_code, result.error_message or f"topic {result.name!r}")

        await self._cluster.retrying(create)

    async def delete_topics(self, names: Iterable[str]) -> None:
        """Delete topics with all their records."""
        wanted = list(names)
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in wanted],
            topic_names=wanted,
            timeout_ms=self._cluster.request_timeout_ms,
        )
        response = await (await self._cluster.controller()).request(request)
        for result in response.responses:
            unknown = result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            reason = f"there is no topic {result.name!r}" if unknown else f"topic {result.name!r}"
            check(result.error_code, result.error_message or reason)

    async def create_partitions(self, totals: Mapping[str, int]) -> None:
        """Grow topics to these numbers of partitions."""
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in totals.items()],
            timeout_ms=self._cluster.request_timeout_ms,
        )
        response = await (await self._cluster.controller()).request(request)
        for result in response.results:
            check(result.error_code, result.error_message or f"topic {result.name!r}")

    async def describe_configs(self, resource: ConfigResource) -> list[ConfigEntry]:
        """All configs of a topic or broker, by name."""
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=resource.resource_type, resource_name=resource.name, configuration_keys=None
                )
            ],
            include_documentation=True,
        )
        if resource.resource_type is ResourceType.BROKER and resource.name:
            connection = await self._cluster.broker(int(resource.name))
        else:
            connection = await self._cluster.any_broker()
        response = await connection.request(request)
        found: list[ConfigEntry] = []
        for result in response.results:
            check(result.error_code, result.error_message or f"configs of {resource.name!r}")
            found += [
                ConfigEntry(item.name, item.value, _source(item), item.read_only, item.is_sensitive, item.documentation)
                for item in result.configs
            ]
        return sorted(found)

    async def alter_configs(self, resource: ConfigResource, changes: Mapping[str, str | None]) -> None:
        """Set configs, or with None go back to their defaults. The others stay."""
        configs = [
            AlterableConfig(name=name, config_operation=1 if value is None else 0, value=value)
            for name, value in changes.items()
        ]
        wanted = AlterConfigsResource(
            resource_type=resource.resource_type, resource_name=resource.name, configs=configs
        )
        if resource.resource_type is ResourceType.BROKER and resource.name:
            connection = await self._cluster.broker(int(resource.name))
        else:
            connection = await self._cluster.controller()
        response = await connection.request(IncrementalAlterConfigsRequest(resources=[wanted]))
        for result in response.responses:
            check(result.error_code, result.error_message or f"configs of {resource.name!r}")


def _source(item: DescribeConfigsResourceResult) -> ConfigSource:
    # The first version only says whether it is a default.
    if item.is_default:
        return ConfigSource.DEFAULT_CONFIG
    try:
        return ConfigSource(item.config_source)
    except ValueError:
        return ConfigSource.UNKNOWN


def _creatable(topic: NewTopic, default: int) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=default if topic.num_partitions < 0 else topic.num_partitions,
        replication_factor=default if topic.replication_factor < 0 else topic.replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.topic_configs.items()],
    )
