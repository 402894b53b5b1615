"""A topic's configs: what they are called, what they fall back to, and the values that hold for one topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from ottla.config.broker import BrokerConfig
from ottla.config.check import only
from ottla.config.definition import BOOLEAN, LIST, LONG, ConfigDefinition, Configs, Synonym, option
from ottla.config.parse import Value, refuse

_NOTHING: Mapping[str, str] = MappingProxyType({})
_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000
_NO_TIERS = "there is no tiered storage"


def fallback(*synonyms: str | Synonym) -> Any:
    """Declare a topic config that falls back to the first of these broker configs that is set.

    Type, check and documentation are those of the first, the default is that of the last.
    """
    chain = tuple(Synonym(synonym) if isinstance(synonym, str) else synonym for synonym in synonyms)
    first, last = BrokerConfig.definition(chain[0].name), BrokerConfig.definition(chain[-1].name)
    default = chain[-1].convert(last.default)
    return option(first.type, default, first.documentation, first.check, synonyms=chain)


class TopicConfig(Configs):
    """A topic's effective configs: what was set for the topic, over what its broker says.

    >>> config = TopicConfig({"cleanup.policy": "compact,delete"}, BrokerConfig({"log.retention.hours": "2"}))
    >>> sorted(config.cleanup_policy), config.retention_ms
    (['compact', 'delete'], 7200000)
    >>> TopicConfig({"retention.ms": "soon"})
    Traceback (most recent call last):
        ...
    ottla.wire.errors.KafkaError: INVALID_CONFIG: retention.ms = 'soon': not a whole number; write digits only
    """

    kind: ClassVar[str] = "topic"

    cleanup_policy: frozenset[str] = fallback("log.cleanup.policy")
    compression_gzip_level: int = fallback("compression.gzip.level")
    compression_lz4_level: int = fallback("compression.lz4.level")
    compression_type: str = fallback("compression.type")
    compression_zstd_level: int = fallback("compression.zstd.level")
    delete_retention_ms: int = fallback("log.cleaner.delete.retention.ms")
    file_delete_delay_ms: int = fallback("log.segment.delete.delay.ms")
    flush_messages: int = fallback("log.flush.interval.messages")
    flush_ms: int = fallback("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
    follower_replication_throttled_replicas: tuple[str, ...] = option(
        LIST, (), "Followers, as PARTITION:BROKER, that copy no faster than their broker's throttle."
    )
    index_interval_bytes: int = fallback("log.index.interval.bytes")
    leader_replication_throttled_replicas: tuple[str, ...] = option(
        LIST, (), "Leaders, as PARTITION:BROKER, that are copied no faster than their broker's throttle."
    )
    local_retention_bytes: int = option(LONG, -2, "Accepted for Kafka's sake; all records are local.")
    local_retention_ms: int = option(LONG, -2, "Accepted for Kafka's sake; all records are local.")
    max_compaction_lag_ms: int = fallback("log.cleaner.max.compaction.lag.ms")
    max_message_bytes: int = fallback("message.max.bytes")
    message_downconversion_enable: bool = fallback("log.message.downconversion.enable")
    message_timestamp_after_max_ms: int = fallback("log.message.timestamp.after.max.ms")
    message_timestamp_before_max_ms: int = fallback("log.message.timestamp.before.max.ms")
    message_timestamp_type: str = fallback("log.message.timestamp.type")
    min_cleanable_dirty_ratio: float = fallback("log.cleaner.min.cleanable.ratio")
    min_compaction_lag_ms: int = fallback("log.cleaner.min.compaction.lag.ms")
    min_insync_replicas: int = fallback("min.insync.replicas")
    preallocate: bool = fallback("log.preallocate")
    remote_log_copy_disable: bool = option(
        BOOLEAN, False, "Accepted for Kafka's sake; there is no tiered storage.", only(_NO_TIERS, False)
    )
    remote_log_delete_on_disable: bool = option(
        BOOLEAN, False, "Accepted for Kafka's sake; there is no tiered storage.", only(_NO_TIERS, False)
    )
    remote_storage_enable: bool = option(
        BOOLEAN, False, "Whether old segments move to another storage.", only(_NO_TIERS, False)
    )
    retention_bytes: int = fallback("log.retention.bytes")
    retention_ms: int = fallback(
        "log.retention.ms",
        Synonym("log.retention.minutes", _MINUTE_MS),
        Synonym("log.retention.hours", _HOUR_MS),
    )
    segment_bytes: int = fallback("log.segment.bytes")
    segment_index_bytes: int = fallback("log.index.size.max.bytes")
    segment_jitter_ms: int = fallback("log.roll.jitter.ms", Synonym("log.roll.jitter.hours", _HOUR_MS))
    segment_ms: int = fallback("log.roll.ms", Synonym("log.roll.hours", _HOUR_MS))
    unclean_leader_election_enable: bool = fallback("unclean.leader.election.enable")

    overrides: Mapping[str, str]

    def __init__(self, overrides: Mapping[str, str] = _NOTHING, broker: BrokerConfig | None = None) -> None:
        defaults = _family(broker or _DEFAULT_BROKER).defaults
        vars(self).update(defaults, **self.checked(overrides), overrides=MappingProxyType(dict(overrides)))
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            refuse(
                "min.compaction.lag.ms",
                str(self.min_compaction_lag_ms),
                f"must not exceed max.compaction.lag.ms, which is {self.max_compaction_lag_ms}",
            )

    @classmethod
    def of(cls, overrides: Mapping[str, str], broker: BrokerConfig) -> TopicConfig:
        """The same object for the same overrides, however many topics have them.

        >>> broker = BrokerConfig()
        >>> config = TopicConfig.of({"retention.ms": "1"}, broker)
        >>> config is TopicConfig.of({"retention.ms": "1"}, broker)
        True
        """
        shared = _family(broker).shared
        key = frozenset(overrides.items())
        found = shared.get(key)
        if found is None:
            found = shared[key] = cls(overrides, broker)
        return found


def inherited(definition: ConfigDefinition, broker: BrokerConfig) -> Value:
    """What a topic config is if nothing was set for the topic."""
    for synonym in definition.synonyms:
        if broker.is_set(synonym.name):
            return synonym.convert(broker.value(synonym.name))
    return definition.default


@dataclass(slots=True)
class _Family:
    """What the topics of one broker share."""

    defaults: dict[str, Value]
    shared: WeakValueDictionary[frozenset[tuple[str, str]], TopicConfig] = field(default_factory=WeakValueDictionary)


_DEFAULT_BROKER = BrokerConfig()
_families: WeakKeyDictionary[BrokerConfig, _Family] = WeakKeyDictionary()


def _family(broker: BrokerConfig) -> _Family:
    found = _families.get(broker)
    if found is None:
        defaults = {each.attribute: inherited(each, broker) for each in TopicConfig.definitions.values()}
        found = _families[broker] = _Family(defaults)
    return found
