"""A topic's effective configs."""

import gc

import pytest

from ottla.config import BrokerConfig, TopicConfig
from ottla.config.definition import ConfigDefinition
from ottla.wire.errors import ErrorCode, KafkaError

LONGEST = 2**63 - 1
WEEK_MS = 7 * 24 * 3600 * 1000

# Kafka 4's documented defaults.
DEFAULTS = {
    "cleanup.policy": frozenset({"delete"}),
    "compression.gzip.level": -1,
    "compression.lz4.level": 9,
    "compression.type": "producer",
    "compression.zstd.level": 3,
    "delete.retention.ms": 86_400_000,
    "file.delete.delay.ms": 60_000,
    "flush.messages": LONGEST,
    "flush.ms": LONGEST,
    "follower.replication.throttled.replicas": (),
    "index.interval.bytes": 4096,
    "leader.replication.throttled.replicas": (),
    "local.retention.bytes": -2,
    "local.retention.ms": -2,
    "max.compaction.lag.ms": LONGEST,
    "max.message.bytes": 1_048_588,
    "message.downconversion.enable": True,
    "message.timestamp.after.max.ms": 3_600_000,
    "message.timestamp.before.max.ms": LONGEST,
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": 0.5,
    "min.compaction.lag.ms": 0,
    "min.insync.replicas": 1,
    "preallocate": False,
    "remote.log.copy.disable": False,
    "remote.log.delete.on.disable": False,
    "remote.storage.enable": False,
    "retention.bytes": -1,
    "retention.ms": WEEK_MS,
    "segment.bytes": 1 << 30,
    "segment.index.bytes": 10 << 20,
    "segment.jitter.ms": 0,
    "segment.ms": WEEK_MS,
    "unclean.leader.election.enable": False,
}


def test_the_defaults_are_kafkas() -> None:
    config = TopicConfig()
    found = {name: getattr(config, name.replace(".", "_")) for name in TopicConfig.definitions}
    assert found == DEFAULTS
    assert {name: definition.default for name, definition in TopicConfig.definitions.items()} == DEFAULTS


@pytest.mark.parametrize("definition", TopicConfig.definitions.values(), ids=lambda definition: str(definition.name))
def test_every_default_passes_its_own_check(definition: ConfigDefinition) -> None:
    assert definition.default_text is not None
    assert definition.value(definition.default_text) == definition.default
    assert definition.documentation.endswith(".")


def test_what_is_set_for_a_topic_wins_over_its_broker() -> None:
    broker = BrokerConfig({"log.segment.bytes": "2000", "log.cleanup.policy": "compact"})
    config = TopicConfig({"segment.bytes": "3000"}, broker)
    assert (config.segment_bytes, config.cleanup_policy) == (3000, frozenset({"compact"}))


@pytest.mark.parametrize(
    ("broker", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-1", "log.retention.hours": "2"}, -1),
    ],
)
def test_retention_is_that_of_the_finest_unit_set(broker: dict[str, str], retention_ms: int) -> None:
    assert TopicConfig({}, BrokerConfig(broker)).retention_ms == retention_ms


def test_rolling_and_flushing_fall_back_in_steps() -> None:
    broker = BrokerConfig({"log.roll.hours": "1", "log.roll.jitter.hours": "2", "log.flush.scheduler.interval.ms": "5"})
    config = TopicConfig({}, broker)
    assert (config.segment_ms, config.segment_jitter_ms, config.flush_ms) == (3_600_000, 7_200_000, 5)
    config = TopicConfig({}, broker.with_dynamic(own={"log.roll.ms": "6", "log.flush.interval.ms": "7"}))
    assert (config.segment_ms, config.flush_ms) == (6, 7)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("segment.bytes", "13", "at least 14"),
        ("retention.ms", "-2", "at least -1"),
        ("cleanup.policy", "delete,shrink", "'shrink' is not among"),
        ("cleanup.policy", "delete,delete", "twice"),
        ("compression.type", "brotli", "must be one of"),
        ("min.cleanable.dirty.ratio", "1.1", "between 0 and 1"),
        ("message.timestamp.type", "createTime", "must be one of"),
        ("remote.storage.enable", "true", "no tiered storage"),
        ("min.insync.replicas", "0", "at least 1"),
    ],
)
def test_a_value_out_of_bounds_is_refused(name: str, text: str, complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint) as caught:
        TopicConfig({name: text})
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert f"{name} = {text!r}" in caught.value.message


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(KafkaError, match=r"no topic config 'retention\.md'; did you mean 'retention\.ms'\?"):
        TopicConfig({"retention.md": "1"})
    with pytest.raises(KafkaError, match=r"no topic config 'zzz'$"):
        TopicConfig({"zzz": "1"})


def test_the_compaction_lags_must_agree() -> None:
    with pytest.raises(KafkaError, match=r"must not exceed max\.compaction\.lag\.ms, which is 9"):
        TopicConfig({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"})


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="cannot be changed"):
        TopicConfig().segment_bytes = 1


def test_topics_with_the_same_overrides_share_a_config() -> None:
    broker = BrokerConfig()
    configs = [TopicConfig.of({"retention.ms": str(number % 3)}, broker) for number in range(300)]
    assert len(set(map(id, configs))) == 3
    assert [config.retention_ms for config in configs[:3]] == [0, 1, 2]
    assert TopicConfig.of({}, broker) is not TopicConfig.of({}, broker.with_dynamic(own={"log.retention.ms": "5"}))


def test_configs_that_no_topic_has_any_more_are_forgotten() -> None:
    def living() -> int:
        gc.collect()
        return sum(isinstance(found, TopicConfig) for found in gc.get_objects())

    broker = BrokerConfig()
    before = living()
    configs = [TopicConfig.of({"retention.ms": str(number)}, broker) for number in range(100)]
    assert living() == before + 100
    del configs
    assert living() == before
