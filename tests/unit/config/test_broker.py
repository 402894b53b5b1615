"""A broker's effective configs."""

import re

import pytest

from ottla.config import BrokerConfig, TopicConfig
from ottla.config.definition import ConfigDefinition
from ottla.wire.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("definition", BrokerConfig.definitions.values(), ids=lambda definition: str(definition.name))
def test_every_definition_is_sound(definition: ConfigDefinition) -> None:
    assert re.fullmatch(r"[a-z0-9]+(\.[a-z0-9]+)*", definition.name)
    assert definition.documentation.endswith(".")
    if definition.default_text is not None:
        assert definition.value(definition.default_text) == definition.default


def test_every_fallback_of_a_topic_config_is_a_broker_config_of_its_kind() -> None:
    for definition in TopicConfig.definitions.values():
        for synonym in definition.synonyms:
            found = BrokerConfig.definition(synonym.name)
            assert found.dynamic or synonym.factor != 1 or synonym.name == "log.flush.scheduler.interval.ms"
            assert isinstance(found.default, type(definition.default)) or found.default is None


def test_what_is_set_while_it_runs_wins_and_the_brokers_own_wins_most() -> None:
    static = BrokerConfig({"message.max.bytes": "1", "num.partitions": "9"})
    default = static.with_dynamic(default={"message.max.bytes": "2"})
    own = default.with_dynamic(own={"message.max.bytes": "3"})
    assert [config.message_max_bytes for config in (static, default, own)] == [1, 2, 3]
    assert own.num_partitions == 9
    assert own.with_dynamic(own={}).message_max_bytes == 2
    assert own.with_dynamic(own={}, default={}).message_max_bytes == 1


def test_only_some_configs_can_be_set_while_it_runs() -> None:
    BrokerConfig.check_dynamic({"log.retention.ms": "1"})
    for texts in ({"listeners": "PLAINTEXT://:1"}, {"log.retention.ms": "x"}, {"no.such": "1"}):
        with pytest.raises(KafkaError) as caught:
            BrokerConfig.check_dynamic(texts)
        assert caught.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("static", "node_id"),
    [({}, 1), ({"node.id": "7"}, 7), ({"broker.id": "8"}, 8), ({"node.id": "9", "broker.id": "09"}, 9)],
)
def test_the_two_names_of_the_brokers_number_agree(static: dict[str, str], node_id: int) -> None:
    config = BrokerConfig(static)
    assert (config.node_id, config.broker_id) == (node_id, node_id)


def test_two_different_numbers_are_refused() -> None:
    with pytest.raises(KafkaError, match=r"broker\.id = '2': node\.id is 1"):
        BrokerConfig({"node.id": "1", "broker.id": "2"})


def test_listeners_of_controllers_are_left_out() -> None:
    config = BrokerConfig(
        {
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
        }
    )
    assert [str(address) for address in config.listener_addresses()] == ["PLAINTEXT://:9092"]
    assert [str(address) for address in config.advertised_addresses()] == ["PLAINTEXT://localhost:9092"]
    assert BrokerConfig().advertised_addresses() == ()


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("listeners", "", "at least one listener"),
        ("listeners", "A://:1,A://:2", "same listener twice"),
        ("listeners", "A://:1,B://:1", "same port twice"),
        ("listeners", "A://:one", "is no port"),
        ("advertised.listeners", "A://:1", "no client can connect"),
        ("advertised.listeners", "A://0.0.0.0:1", "no client can connect"),
        ("log.dirs", "a,b", "one data folder"),
        ("process.roles", "king", "is not among"),
    ],
)
def test_a_value_that_cannot_work_is_refused(name: str, text: str, complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint):
        BrokerConfig({name: text})


def test_free_ports_may_be_asked_for_more_than_once() -> None:
    assert len(BrokerConfig({"listeners": "A://:0,B://:0"}).listener_addresses()) == 2


def test_the_data_folder_has_two_names() -> None:
    assert BrokerConfig({"log.dir": "one"}).data_folder == "one"
    assert BrokerConfig({"log.dir": "one", "log.dirs": "two"}).data_folder == "two"
