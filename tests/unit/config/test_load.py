"""A broker's start settings from files, the environment and arguments."""

import pytest

from ottla.config import BrokerConfig
from ottla.config.load import load_broker_config, parse_properties
from ottla.wire.errors import ErrorCode, KafkaError


def refused(**where: object) -> str:
    with pytest.raises(KafkaError) as caught:
        load_broker_config(**where)  # type: ignore[arg-type]
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    return caught.value.message


def test_nothing_said_means_the_defaults() -> None:
    assert load_broker_config().static == {}
    assert load_broker_config(environment={"PATH": "/bin"}, file_name="a.properties").static == {}


def test_later_places_win() -> None:
    text = '"num.partitions" = 2\n"log.segment.bytes" = 100\nnode.id = 5'
    environment = {"OTTLA_NUM_PARTITIONS": "3", "OTTLA_LOG_SEGMENT_BYTES": "200"}
    config = load_broker_config(text, environment=environment, overrides=["num.partitions = 4"])
    assert (config.num_partitions, config.log_segment_bytes, config.node_id) == (4, 200, 5)


def test_toml_may_be_flat_or_in_tables_and_use_its_own_types() -> None:
    text = """
    listeners = ["A://:1", "B://:2"]
    "auto.create.topics.enable" = false
    [log]
    "segment.bytes" = 100
    dirs = "data"
    [log.cleaner.min.cleanable]
    ratio = 0.25
    """
    config = load_broker_config(text, "ottla.toml")
    assert config.listeners == ("A://:1", "B://:2")
    assert config.auto_create_topics_enable is False
    assert (config.log_segment_bytes, config.log_dirs, config.log_cleaner_min_cleanable_ratio) == (100, ("data",), 0.25)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a = ", "ottla.toml is not TOML: "),
        ('"num.partitions" = 2024-01-01', "ottla.toml: num.partitions = "),
        ('"log.dirs" = [1]', "ottla.toml: log.dirs = [1] is neither"),
        ('"log.dir" = "a"\nlog = {dir = "b"}', "ottla.toml: log.dir is there twice"),
        (
            '"num.partitons" = 1',
            "ottla.toml: there is no broker config 'num.partitons'; did you mean 'num.partitions'?",
        ),
        ('"num.partitions" = "many"', "num.partitions = 'many': not a whole number"),
        ('"num.partitions" = 1.0', "num.partitions = '1.0': not a whole number"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_its_name(text: str, complaint: str) -> None:
    assert refused(file_text=text, file_name="ottla.toml").startswith(complaint)


def test_unknown_names_are_refused_wherever_they_stand() -> None:
    assert refused(environment={"OTTLA_NUM_PARTITONS": "1"}) == (
        "the environment: there is no broker config 'num.partitons'; did you mean 'num.partitions'?"
    )
    assert refused(overrides=["x=1"]) == "the arguments: there is no broker config 'x'"
    assert refused(overrides=["num.partitions"]) == "'num.partitions' sets nothing; write it as NAME=VALUE"


def test_the_environment_of_other_commands_is_left_alone() -> None:
    environment = {"OTTLA_PURE_PYTHON": "1", "OTTLA_BOOTSTRAP": "localhost:9092"}
    assert load_broker_config(environment=environment).static == {}


def test_a_value_may_hold_an_equals_sign() -> None:
    assert load_broker_config(overrides=["broker.rack=a=b"]).broker_rack == "a=b"


# The settings of the file that Kafka 4 is started with in its quick start.
KAFKAS_OWN = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=data
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_the_file_that_kafka_starts_with_is_read() -> None:
    config = load_broker_config(KAFKAS_OWN, "server.properties")
    assert len(config.static) == 24
    assert config.data_folder == "data"
    assert [str(address) for address in config.listener_addresses()] == ["PLAINTEXT://:9092"]
    assert config.log_flush_interval_messages == BrokerConfig().log_flush_interval_messages


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("a=1\r\nb = 2\n\n! no\n  # no\n", {"a": "1", "b": "2"}),
        ("a:1\nb 2\nc", {"a": "1", "b": "2", "c": ""}),
        ("a = x = y", {"a": "x = y"}),
        ("a=1,\\\n    2,\\\n    3", {"a": "1,2,3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n#2", {"a": "1#2"}),
        ("a\\=b=\\u0041\\tC", {"a=b": "A\tC"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_properties_are_read_as_java_does(text: str, settings: dict[str, str]) -> None:
    assert parse_properties(text, "server.properties") == settings
