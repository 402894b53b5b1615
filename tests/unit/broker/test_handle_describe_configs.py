from collections.abc import Iterable
from typing import Any

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.topic import TopicConfig
from ottla.wire.api.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, STATIC_BROKER, DEFAULT = 1, 2, 3, 4, 5
INT, LONG = 3, 5


def describe(
    small: SmallBroker, kind: int, name: str, keys: Iterable[str] | None = None, version: int = 4, **changes: Any
) -> Any:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if keys is None else list(keys)
    )
    (result,) = small.ask(DescribeConfigsRequest(resources=[resource], **changes), version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def described(small: SmallBroker, kind: int, name: str, key: str, version: int = 4, **changes: Any) -> Any:
    result = describe(small, kind, name, [key], version, **changes)
    assert (result.error_code, result.error_message) == (0, None)
    (config,) = result.configs
    assert config.name == key
    return config


@pytest.mark.parametrize("keys", [None, []])
def test_without_names_all_configs_are_described(small: SmallBroker, keys: list[str] | None) -> None:
    small.create("orders")
    topic = describe(small, TOPIC, "orders", keys)
    assert {config.name for config in topic.configs} == set(TopicConfig.definitions)
    broker = describe(small, BROKER, "1", keys)
    assert {config.name for config in broker.configs} == set(BrokerConfig.definitions)


def test_a_name_that_is_not_known_is_left_out(small: SmallBroker) -> None:
    small.create("orders")
    result = describe(small, TOPIC, "orders", ["no.such.config", "retention.ms"])
    assert [config.name for config in result.configs] == ["retention.ms"]


@pytest.mark.parametrize("settings", [{"log.segment.bytes": "5000"}])
@pytest.mark.parametrize("version", range(1, 5))
def test_sources_tell_where_a_topics_values_come_from(small: SmallBroker, version: int) -> None:
    small.create("orders", retention_ms="1000")
    for key, value, source in (
        ("retention.ms", "1000", DYNAMIC_TOPIC),
        ("segment.bytes", "5000", STATIC_BROKER),
        ("max.message.bytes", "1048588", DEFAULT),
    ):
        config = described(small, TOPIC, "orders", key, version)
        assert (config.value, config.config_source, config.read_only, config.synonyms) == (value, source, False, [])


@pytest.mark.parametrize("settings", [{"log.segment.bytes": "5000"}])
def test_version_zero_tells_what_was_set_for_the_topic_itself(small: SmallBroker) -> None:
    small.create("orders", retention_ms="1000")
    assert not described(small, TOPIC, "orders", "retention.ms", 0).is_default
    assert described(small, TOPIC, "orders", "segment.bytes", 0).is_default
    assert not described(small, BROKER, "1", "log.segment.bytes", 0).is_default
    assert described(small, BROKER, "1", "num.partitions", 0).is_default


@pytest.mark.parametrize("settings", [{"log.segment.bytes": "5000"}])
def test_synonyms_come_strongest_first_if_asked_for(small: SmallBroker) -> None:
    small.create("orders", segment_bytes="7000")
    config = described(small, TOPIC, "orders", "segment.bytes", include_synonyms=True)
    assert [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms] == [
        ("segment.bytes", "7000", DYNAMIC_TOPIC),
        ("log.segment.bytes", "5000", STATIC_BROKER),
        ("log.segment.bytes", "1073741824", DEFAULT),
    ]


@pytest.mark.parametrize("version", [3, 4])
def test_types_come_from_version_three_on_and_documentation_if_asked_for(small: SmallBroker, version: int) -> None:
    small.create("orders")
    plain = described(small, TOPIC, "orders", "retention.ms", version)
    assert (plain.config_type, plain.documentation) == (LONG, None)
    documented = described(small, BROKER, "1", "num.partitions", version, include_documentation=True)
    assert documented.config_type == INT
    assert documented.documentation.startswith("Partitions")


def test_only_what_can_change_while_the_broker_runs_is_not_read_only(small: SmallBroker) -> None:
    assert described(small, BROKER, "1", "num.partitions").read_only
    assert not described(small, BROKER, "1", "log.retention.ms").read_only


def test_the_empty_broker_name_tells_only_what_is_set_for_all_brokers(small: SmallBroker) -> None:
    assert describe(small, BROKER, "").configs == []
    small.broker.config = small.broker.config.with_dynamic(
        default={"message.max.bytes": "5000", "log.retention.ms": "1000"}, own={"message.max.bytes": "6000"}
    )
    result = describe(small, BROKER, "", include_synonyms=True)
    assert {config.name: config.value for config in result.configs} == {
        "message.max.bytes": "5000",
        "log.retention.ms": "1000",
    }
    for config in result.configs:
        assert config.config_source == DYNAMIC_DEFAULT_BROKER
        assert [(each.value, each.source) for each in config.synonyms] == [(config.value, DYNAMIC_DEFAULT_BROKER)]
    assert describe(small, BROKER, "", ["log.retention.ms"]).configs[0].value == "1000"
    own = described(small, BROKER, "1", "message.max.bytes")
    assert (own.value, own.config_source) == ("6000", DYNAMIC_BROKER)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nothing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "no/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "1", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "m", ErrorCode.INVALID_REQUEST),
        (GROUP, "g", ErrorCode.INVALID_REQUEST),
        (0, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_resource_that_is_not_there_says_so(small: SmallBroker, kind: int, name: str, code: ErrorCode) -> None:
    result = describe(small, kind, name)
    assert (result.error_code, result.configs) == (code, [])
    assert result.error_message
