"""Configs of topics, brokers and groups: look at them and change them."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, TypeVar

from ottla.client.admin.config_types import (
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    read_change,
)
from ottla.client.admin.part import AdminPart, Answers, AskBroker, lacks, list_of, outcome
from ottla.client.checks import shown
from ottla.net import Connection
from ottla.wire.api import alter_configs, incremental_alter_configs
from ottla.wire.api.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.schema import schema_of

E = TypeVar("E", bound=IntEnum)
R = TypeVar("R")


class ConfigAdmin(AdminPart):
    """The methods that concern configs."""

    async def describe_configs(
        self,
        config_resources: Iterable[ConfigResource],
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Configs by name, for each resource.

        >>> run(lambda admin: admin.create_topics(["orders"]))
        >>> orders = ConfigResource("topic", "orders")
        >>> entry = run(lambda admin: admin.describe_configs([orders]))[orders]["cleanup.policy"]
        >>> entry.value, entry.source.name, entry.is_default
        ('delete', 'DEFAULT_CONFIG', True)
        """

        async def ask(
            connection: Connection, resources: list[ConfigResource]
        ) -> Answers[ConfigResource, dict[str, ConfigEntry]]:
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=one.resource_type,
                        resource_name=one.name,
                        configuration_keys=None if one.configs is None else list(one.configs),
                    )
                    for one in resources
                ],
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            )
            response = await connection.request(request)
            return {_resource_of(result): _outcome(result) or _entries(result.configs) for result in response.results}

        return await self._each_resource(config_resources, ask)

    async def alter_configs(self, config_resources: Iterable[ConfigResource], validate_only: bool = False) -> None:
        """Set configs to new values, or with None back to their defaults. Those that are not named stay as they are.

        A pair `("append", value)` or `("subtract", value)` adds to or takes from a config that is a list.

        >>> run(lambda admin: admin.create_topics(["orders"]))
        >>> change = {"retention.ms": "60000", "cleanup.policy": ("append", "compact"), "segment.ms": None}
        >>> run(lambda admin: admin.alter_configs([ConfigResource("topic", "orders", change)]))
        >>> found = run(lambda admin: admin.describe_configs([ConfigResource("topic", "orders", list(change))]))
        >>> [entry.value for entry in found[ConfigResource("topic", "orders")].values()]
        ['delete,compact', '60000', '604800000']
        """

        async def ask(connection: Connection, resources: list[ConfigResource]) -> Answers[ConfigResource, None]:
            if schema_of(incremental_alter_configs.IncrementalAlterConfigsRequest).key in connection.offer:
                request: object = _changes(resources, validate_only)
            else:
                before = await self.describe_configs([ConfigResource(one.resource_type, one.name) for one in resources])
                request = _replacement({one: _merged(one, before[one]) for one in resources}, validate_only)
            response = await connection.request(request)
            return {_resource_of(result): _outcome(result) for result in response.responses}

        given = _resources(config_resources)
        for one in given:
            if not isinstance(one.configs, Mapping):
                raise TypeError(f"configs of {one} are {one.configs!r}; give a dict of names and new values")
            for name, change in one.configs.items():
                read_change(name, change)
        await self._each_resource(given, ask, change=True)

    async def _each_resource(
        self, resources: Iterable[ConfigResource], ask: AskBroker[ConfigResource, R], *, change: bool = False
    ) -> dict[ConfigResource, R]:
        async def ask_all(left: list[ConfigResource]) -> Answers[ConfigResource, R]:
            by_node: dict[int, list[ConfigResource]] = {}
            others: list[ConfigResource] = []
            for one in left:
                if one.node_id is None:
                    others.append(one)
                else:
                    by_node.setdefault(one.node_id, []).append(one)
            answers: dict[ConfigResource, R | KafkaError] = {}
            if others:
                connection = await (self._cluster.controller() if change else self._cluster.any_broker())
                answers.update(await ask(connection, others))
            return answers | await self._ask_brokers(by_node, ask)

        # The controller knows for sure which topics there are.
        final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,) if change else ()
        return await self._each(_resources(resources), ask_all, final=final)


def _resources(given: Iterable[ConfigResource]) -> list[ConfigResource]:
    hint = "give a list, as in [ConfigResource('topic', 'orders', {'retention.ms': '60000'})]"
    if isinstance(given, (Mapping, ConfigResource)):
        raise TypeError(f"config_resources is {shown(given)}; {hint}")
    found = list_of(given, "config_resources")
    for one in found:
        if not isinstance(one, ConfigResource):
            raise TypeError(f"config_resources has {shown(one)}; {hint}")
    return found


def _resource_of(result: Any) -> ConfigResource:
    return ConfigResource(_known(ConfigResourceType, result.resource_type), result.resource_name)


def _outcome(result: Any) -> KafkaError | None:
    kind = _known(ConfigResourceType, result.resource_type).name.lower()
    return outcome(result.error_code, result.error_message, kind, result.resource_name)


def _entries(configs: Iterable[DescribeConfigsResourceResult]) -> dict[str, ConfigEntry]:
    return {item.name: _entry(item) for item in sorted(configs, key=lambda item: item.name)}


def _entry(item: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        item.name,
        item.value,
        # The first version only says whether it is a default.
        ConfigSource.DEFAULT_CONFIG if item.is_default else _known(ConfigSource, item.config_source),
        item.read_only,
        item.is_sensitive,
        _known(ConfigType, item.config_type),
        tuple(ConfigSynonym(one.name, one.value, _known(ConfigSource, one.source)) for one in item.synonyms),
        item.documentation,
    )


def _known(kind: type[E], number: int) -> E:
    """The member with this number, or the one for what only newer brokers know."""
    return next((one for one in kind if one == number), kind(0))


def _changes(resources: Iterable[ConfigResource], validate_only: bool) -> object:
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=resource.resource_type,
                resource_name=resource.name,
                configs=[
                    incremental_alter_configs.AlterableConfig(name=name, config_operation=operation, value=value)
                    for name, (operation, value) in _operations(resource).items()
                ],
            )
            for resource in resources
        ],
        validate_only=validate_only,
    )


def _operations(resource: ConfigResource) -> dict[str, tuple[AlterConfigOp, str | None]]:
    assert isinstance(resource.configs, Mapping)
    return {name: read_change(name, change) for name, change in resource.configs.items()}


# Brokers before 2.3 only take all configs of a resource at once, and drop those that are left out.

_OWN = {
    ConfigResourceType.TOPIC: (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.UNKNOWN),
    ConfigResourceType.BROKER: (ConfigSource.DYNAMIC_BROKER_CONFIG,),
}


def _merged(resource: ConfigResource, before: Mapping[str, ConfigEntry]) -> dict[str, str | None]:
    own = _OWN.get(resource.resource_type, ())
    if resource.resource_type is ConfigResourceType.BROKER and not resource.name:
        own = (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,)
    changes = _operations(resource)
    merged = {name: entry.value for name, entry in before.items() if entry.source in own}
    for name in merged:
        if before[name].is_sensitive and name not in changes:
            raise lacks("the broker", f"changing single configs, and does not tell {name}: set that again as well")
    for name, (operation, value) in changes.items():
        words = (before[name].value or "").split(",") if name in before and before[name].value else []
        if operation is AlterConfigOp.DELETE:
            merged.pop(name, None)
        elif operation is AlterConfigOp.APPEND:
            merged[name] = ",".join(dict.fromkeys([*words, *(value or "").split(",")]))
        elif operation is AlterConfigOp.SUBTRACT:
            merged[name] = ",".join(word for word in words if word not in (value or "").split(","))
        else:
            merged[name] = value
    return merged


def _replacement(configs: Mapping[ConfigResource, Mapping[str, str | None]], validate_only: bool) -> object:
    return alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=resource.resource_type,
                resource_name=resource.name,
                configs=[alter_configs.AlterableConfig(name=name, value=value) for name, value in whole.items()],
            )
            for resource, whole in configs.items()
        ],
        validate_only=validate_only,
    )
