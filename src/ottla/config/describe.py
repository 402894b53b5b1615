"""What DescribeConfigs tells about each config: its value, where that comes from, and what it stands above."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from ottla.config.broker import BrokerConfig
from ottla.config.definition import ConfigDefinition, ConfigSource
from ottla.config.parse import ConfigType, render
from ottla.config.topic import TopicConfig, inherited


class ConfigSynonym(NamedTuple):
    """A value that a config would take, or does, and who says so. Stronger ones come first."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One config as DescribeConfigs shows it. A sensitive value is None."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: ConfigType
    documentation: str
    synonyms: tuple[ConfigSynonym, ...]


def describe_topic(
    overrides: Mapping[str, str], broker: BrokerConfig, names: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """A topic's configs, or those of these names; unknown names are left out, as Kafka does.

    >>> (entry,) = describe_topic({}, BrokerConfig({"log.retention.minutes": "5"}), ["retention.ms"])
    >>> entry.value, entry.source.name, [synonym.name for synonym in entry.synonyms]
    ('300000', 'STATIC_BROKER', ['log.retention.minutes', 'log.retention.hours'])
    """
    for definition in _chosen(TopicConfig.definitions, names):
        value = overrides.get(definition.name)
        synonyms = []
        if value is None:
            value = render(inherited(definition, broker))
        else:
            synonyms.append(ConfigSynonym(definition.name, value, ConfigSource.DYNAMIC_TOPIC))
        for synonym in definition.synonyms:
            synonyms += _broker_synonyms(broker, BrokerConfig.definition(synonym.name))
        yield _entry(definition, value, synonyms, read_only=False)


def describe_broker(broker: BrokerConfig, names: Collection[str] | None = None) -> Iterator[ConfigEntry]:
    """A broker's configs, or those of these names; unknown names are left out.

    >>> (entry,) = describe_broker(BrokerConfig(), ["num.partitions"])
    >>> entry.value, entry.source.name, entry.read_only
    ('1', 'DEFAULT', True)
    """
    set_for_listeners = {name: broker.definition(name) for _, layer in broker.layers() for name in layer}
    for definition in _chosen({**BrokerConfig.definitions, **set_for_listeners}, names):
        value = render(broker.value(definition.name))
        yield _entry(definition, value, _broker_synonyms(broker, definition), read_only=not definition.dynamic)


def _chosen(definitions: Mapping[str, ConfigDefinition], names: Collection[str] | None) -> Iterator[ConfigDefinition]:
    for name, definition in definitions.items():
        if names is None or name in names:
            yield definition


def _broker_synonyms(broker: BrokerConfig, definition: ConfigDefinition) -> list[ConfigSynonym]:
    name = definition.name
    found = [ConfigSynonym(name, layer[name], source) for source, layer in broker.layers() if name in layer]
    if definition.default is not None:
        found.append(ConfigSynonym(name, definition.default_text, ConfigSource.DEFAULT))
    return found


def _entry(
    definition: ConfigDefinition, value: str | None, synonyms: list[ConfigSynonym], read_only: bool
) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    if definition.sensitive:
        value = None
        synonyms = [ConfigSynonym(synonym.name, None, synonym.source) for synonym in synonyms]
    return ConfigEntry(
        name=definition.name,
        value=value,
        source=source,
        read_only=read_only,
        sensitive=definition.sensitive,
        type=definition.type,
        documentation=definition.documentation,
        synonyms=tuple(synonyms),
    )
