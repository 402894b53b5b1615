"""What DescribeConfigs tells, and what the alterations make."""

import pytest

from ottla.config import BrokerConfig, ConfigSource, ConfigType, TopicConfig
from ottla.config.alter import Alteration, AlterOperation, alter, replace_all
from ottla.config.definition import INT, PASSWORD, ConfigDefinition
from ottla.config.describe import ConfigEntry, ConfigSynonym, _entry, describe_broker, describe_topic
from ottla.wire.errors import ErrorCode, KafkaError

SET, DELETE, APPEND, SUBTRACT = AlterOperation


def of_topic(name: str, overrides: dict[str, str], broker: BrokerConfig) -> ConfigEntry:
    (entry,) = describe_topic(overrides, broker, [name])
    return entry


def test_every_config_is_described_with_its_effective_value() -> None:
    broker = BrokerConfig({"log.retention.minutes": "1"})
    overrides = {"segment.bytes": "100"}
    config = TopicConfig(overrides, broker)
    entries = {entry.name: entry for entry in describe_topic(overrides, broker)}
    assert entries.keys() == TopicConfig.definitions.keys()
    for name, entry in entries.items():
        assert entry.value is not None
        assert TopicConfig.definition(name).value(entry.value) == getattr(config, name.replace(".", "_"))
        assert not entry.read_only
    assert {entry.name for entry in describe_broker(broker)} == set(BrokerConfig.definitions)


def test_every_layer_above_the_default_is_told_strongest_first() -> None:
    broker = BrokerConfig(
        {"log.segment.bytes": "100"},
        dynamic_default={"log.segment.bytes": "200"},
        dynamic={"log.segment.bytes": "300"},
    )
    below = (
        ConfigSynonym("log.segment.bytes", "300", ConfigSource.DYNAMIC_BROKER),
        ConfigSynonym("log.segment.bytes", "200", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ConfigSynonym("log.segment.bytes", "100", ConfigSource.STATIC_BROKER),
        ConfigSynonym("log.segment.bytes", "1073741824", ConfigSource.DEFAULT),
    )
    entry = of_topic("segment.bytes", {"segment.bytes": "400"}, broker)
    assert (entry.value, entry.source) == ("400", ConfigSource.DYNAMIC_TOPIC)
    assert entry.synonyms == (ConfigSynonym("segment.bytes", "400", ConfigSource.DYNAMIC_TOPIC), *below)
    entry = of_topic("segment.bytes", {}, broker)
    assert (entry.value, entry.source, entry.synonyms) == ("300", ConfigSource.DYNAMIC_BROKER, below)
    (entry,) = describe_broker(broker, ["log.segment.bytes"])
    assert (entry.value, entry.source, entry.synonyms) == ("300", ConfigSource.DYNAMIC_BROKER, below)
    assert entry.type is ConfigType.INT


def test_a_default_says_so() -> None:
    entry = of_topic("retention.ms", {}, BrokerConfig())
    assert (entry.value, entry.source) == ("604800000", ConfigSource.DEFAULT)
    assert entry.synonyms == (ConfigSynonym("log.retention.hours", "168", ConfigSource.DEFAULT),)
    entry = of_topic("leader.replication.throttled.replicas", {}, BrokerConfig())
    assert (entry.value, entry.source, entry.synonyms) == ("", ConfigSource.DEFAULT, ())


def test_an_empty_override_is_an_override() -> None:
    entry = of_topic("cleanup.policy", {"cleanup.policy": ""}, BrokerConfig())
    assert (entry.value, entry.source) == ("", ConfigSource.DYNAMIC_TOPIC)


def test_unset_configs_without_a_default_are_null() -> None:
    (entry,) = describe_broker(BrokerConfig(), ["log.retention.ms"])
    assert (entry.value, entry.source, entry.synonyms) == (None, ConfigSource.DEFAULT, ())


def test_unknown_names_are_left_out() -> None:
    assert list(describe_topic({}, BrokerConfig(), ["no.such.config"])) == []


def test_a_secret_is_never_told() -> None:
    definition = ConfigDefinition("key", PASSWORD, None, "Secret.", lambda value: "is wrong")
    entry = _entry(definition, "secret", [ConfigSynonym("key", "secret", ConfigSource.STATIC_BROKER)], read_only=True)
    assert entry.sensitive
    assert "secret" not in repr(entry)
    with pytest.raises(KafkaError) as caught:
        definition.value("secret")
    assert "secret" not in str(caught.value)
    assert not ConfigDefinition("key", INT, 1, "Plain.").sensitive


def altered(current: dict[str, str], *changes: Alteration) -> dict[str, str]:
    return alter(TopicConfig, current, changes, {"cleanup.policy": "delete"}.get)


def test_configs_are_set_deleted_appended_to_and_subtracted_from() -> None:
    current = {"retention.ms": "1", "segment.ms": "2"}
    assert altered(
        current,
        Alteration("retention.ms", SET, " 5 "),
        Alteration("segment.ms", DELETE),
        Alteration("cleanup.policy", APPEND, "compact"),
    ) == {"retention.ms": "5", "cleanup.policy": "delete,compact"}
    assert current == {"retention.ms": "1", "segment.ms": "2"}


def test_appending_what_is_there_and_subtracting_what_is_not_change_nothing() -> None:
    assert altered({}, Alteration("cleanup.policy", APPEND, "delete")) == {"cleanup.policy": "delete"}
    assert altered({"cleanup.policy": "compact"}, Alteration("cleanup.policy", SUBTRACT, "delete")) == {
        "cleanup.policy": "compact"
    }


def test_deleting_goes_back_to_the_default_and_forgets_what_nobody_knows_any_more() -> None:
    assert altered({}, Alteration("retention.ms", DELETE)) == {}
    assert altered({"once.known": "1"}, Alteration("once.known", DELETE)) == {}


@pytest.mark.parametrize(
    ("change", "code", "complaint"),
    [
        (Alteration("no.such", SET, "1"), ErrorCode.INVALID_CONFIG, "no topic config"),
        (Alteration("no.such", DELETE), ErrorCode.INVALID_CONFIG, "no topic config"),
        (Alteration("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG, "not a whole number"),
        (Alteration("retention.ms", SET, None), ErrorCode.INVALID_REQUEST, "has no value"),
        (Alteration("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG, "is no list"),
        (Alteration("cleanup.policy", APPEND, "shrink"), ErrorCode.INVALID_CONFIG, "'shrink' is not among"),
        (Alteration("retention.ms", 4, "1"), ErrorCode.INVALID_REQUEST, "no operation 4"),
    ],
)
def test_a_change_that_cannot_be_is_refused(change: Alteration, code: ErrorCode, complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint) as caught:
        altered({}, change)
    assert caught.value.code is code


def test_one_config_cannot_be_changed_twice_at_once() -> None:
    with pytest.raises(KafkaError, match="is there twice") as caught:
        altered({}, Alteration("retention.ms", SET, "1"), Alteration("retention.ms", DELETE))
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_the_older_request_replaces_everything() -> None:
    assert replace_all(TopicConfig, [("retention.ms", "1")]) == {"retention.ms": "1"}
    with pytest.raises(KafkaError, match="has no value"):
        replace_all(TopicConfig, [("retention.ms", None)])
