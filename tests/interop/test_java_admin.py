"""Java's administration client, of Kafka 4 and of Kafka 3, on a broker by Ottla."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ottla.record import Codec
from ottla.testing import TestBroker
from tests.java import JavaError, skip_without_maven

from . import confluent
from .java_admin import JavaAdmin
from .samples import NOW_MS, sample

pytestmark = [pytest.mark.maven, skip_without_maven("Java's administration client tried nothing on the broker")]

Call = Callable[..., Any]
BROKER_ID = 1


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker({"num.partitions": "2"}) as started:
        yield started


@pytest.fixture
def call(java_admin: JavaAdmin, broker: TestBroker) -> Call:
    return partial(java_admin.call, broker.bootstrap_servers)


@pytest.fixture
def create(call: Call, topic: str) -> Call:
    """Creates the topic of this test."""
    return partial(call, "create_topic", topic=topic, config={}, validate_only=False)


def refuses(exception: str, why: str = "") -> Any:
    """Expect that exception of Java."""
    return pytest.raises(JavaError, match=rf"org\.apache\.kafka\.common\.errors\.{exception}: .*{why}")


def test_topics_are_created_listed_described_and_deleted(
    call: Call, create: Call, broker: TestBroker, topic: str
) -> None:
    made = create(partitions=3, replication=1, config={"retention.ms": "1000000"})
    assert (made["partitions"], made["replication"]) == (3, 1)
    assert made["config"]["retention.ms"]["value"] == "1000000"
    assert made["config"]["retention.ms"]["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert made["config"]["segment.bytes"]["source"] == "DEFAULT_CONFIG"
    assert topic in call("list_topics")
    described = call("describe_topic", topic=topic)
    assert described["id"] == made["id"]
    assert not described["internal"]
    assert described["partitions"] == [[number, BROKER_ID, [BROKER_ID], [BROKER_ID]] for number in range(3)]
    seen = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(topic, timeout=10).topics[topic]
    assert sorted(seen.partitions) == [0, 1, 2]
    call("delete_topic", topic=topic)
    assert topic not in call("list_topics")
    with refuses("UnknownTopicOrPartitionException"):
        call("describe_topic", topic=topic)
    with refuses("UnknownTopicOrPartitionException", topic):
        call("delete_topic", topic=topic)


def test_a_topic_without_numbers_gets_the_broker_s_and_one_with_replicas_gets_those(create: Call, topic: str) -> None:
    made = create()
    assert (made["partitions"], made["replication"]) == (2, 1)
    made = create(topic=f"{topic}-assigned", assignment=[[BROKER_ID]] * 4)
    assert (made["partitions"], made["replication"]) == (4, 1)


def test_a_topic_that_is_only_validated_is_not_there(call: Call, create: Call, topic: str) -> None:
    assert create(partitions=3, validate_only=True)["partitions"] == 3
    assert topic not in call("list_topics")


def test_topics_that_cannot_be_are_refused(create: Call) -> None:
    create()
    with refuses("TopicExistsException", "exists"):
        create()
    with refuses("InvalidTopicException"):
        create(topic="not a name")
    with refuses("InvalidPartitionsException"):
        create(topic="other", partitions=0)
    with refuses("InvalidReplicationFactorException"):
        create(topic="other", replication=2)
    with refuses("InvalidConfigurationException", "cleanup.policy"):
        create(topic="other", config={"cleanup.policy": "forget"})
    with refuses("InvalidReplicaAssignmentException"):
        create(topic="other", assignment=[[17]])


def test_partitions_are_added_and_never_taken(call: Call, create: Call, topic: str) -> None:
    create(partitions=1)
    call("create_partitions", topic=topic, count=4)
    assert [partition[0] for partition in call("describe_topic", topic=topic)["partitions"]] == [0, 1, 2, 3]
    with refuses("InvalidPartitionsException", "has 4 partitions"):
        call("create_partitions", topic=topic, count=3)


def test_a_topic_s_configs_are_described_with_their_sources_and_altered(call: Call, create: Call, topic: str) -> None:
    create(config={"retention.ms": "1000000"})
    describe = partial(call, "describe_configs", type="TOPIC", name=topic)
    alter = partial(call, "alter_configs", type="TOPIC", name=topic)
    found = describe()
    assert found["retention.ms"]["synonyms"] == [
        ["retention.ms", "1000000", "DYNAMIC_TOPIC_CONFIG"],
        ["log.retention.hours", "168", "DEFAULT_CONFIG"],
    ]
    assert (found["retention.ms"]["type"], found["cleanup.policy"]["type"]) == ("LONG", "LIST")
    assert all(config["documentation"] for config in found.values())
    alter(operations=[["SET", "max.message.bytes", "4711"], ["APPEND", "cleanup.policy", "compact"]])
    alter(operations=[["DELETE", "retention.ms", None]])
    found = describe()
    assert (found["max.message.bytes"]["value"], found["max.message.bytes"]["source"]) == (
        "4711",
        "DYNAMIC_TOPIC_CONFIG",
    )
    assert found["cleanup.policy"]["value"] == "delete,compact"
    assert (found["retention.ms"]["value"], found["retention.ms"]["source"]) == ("604800000", "DEFAULT_CONFIG")
    alter(operations=[["SUBTRACT", "cleanup.policy", "delete"]])
    assert describe()["cleanup.policy"]["value"] == "compact"
    with refuses("InvalidConfigurationException", "retention.ms"):
        alter(operations=[["SET", "retention.ms", "soon"]])
    with refuses("UnknownTopicOrPartitionException"):
        call("describe_configs", type="TOPIC", name="nowhere")


def test_a_broker_s_configs_are_described_and_its_defaults_altered(call: Call, broker: TestBroker) -> None:
    found = call("describe_configs", type="BROKER", name=str(BROKER_ID))
    assert (found["num.partitions"]["value"], found["num.partitions"]["source"]) == ("2", "STATIC_BROKER_CONFIG")
    assert found["log.dirs"]["read_only"]
    alter = partial(call, "alter_configs", type="BROKER", name="")
    alter(operations=[["SET", "log.retention.ms", "86400000"]])
    defaults = call("describe_configs", type="BROKER", name="")
    assert {name: config["value"] for name, config in defaults.items()} == {"log.retention.ms": "86400000"}
    alter(operations=[["DELETE", "log.retention.ms", None]])
    assert call("describe_configs", type="BROKER", name="") == {}


def test_offsets_are_listed_and_records_deleted(call: Call, create: Call, broker: TestBroker, topic: str) -> None:
    create(partitions=1)
    find = partial(call, "list_offset", topic=topic, partition=0, isolation="READ_UNCOMMITTED")
    assert (find(at="earliest"), find(at="latest")) == ([0, -1, 0], [0, -1, 0])
    assert find(at="max timestamp") == [-1, -1, None]
    originals = sample(count=50)
    confluent.write((broker.host, broker.port), topic, originals, Codec.GZIP)
    newest = max(originals, key=lambda record: record.timestamp)
    assert find(at="latest") == [len(originals), -1, 0]
    assert find(at="latest", isolation="READ_COMMITTED") == [len(originals), -1, 0]
    assert find(at="max timestamp") == [newest.offset, newest.timestamp, 0]
    assert find(at=NOW_MS + 400) == [next(r.offset for r in originals if r.timestamp >= NOW_MS + 400), NOW_MS + 400, 0]
    assert call("delete_records", topic=topic, partition=0, before=10) == 10
    assert find(at="earliest") == [10, -1, 0]
    assert call("delete_records", topic=topic, partition=0, before=-1) == len(originals)
    assert find(at="earliest") == [len(originals), -1, 0]
    with refuses("OffsetOutOfRangeException"):
        call("delete_records", topic=topic, partition=0, before=1000)


def test_the_cluster_and_its_folders_are_described(call: Call, create: Call, broker: TestBroker, topic: str) -> None:
    cluster = call("describe_cluster")
    assert cluster["controller"] == BROKER_ID
    assert cluster["nodes"] == [[BROKER_ID, broker.host, broker.port]]
    create(partitions=1)
    confluent.write((broker.host, broker.port), topic, sample(count=50), Codec.NONE)
    ((folder, found),) = call("describe_log_dirs", broker=BROKER_ID).items()
    assert Path(folder) == Path(broker.folder)
    assert found["error"] is None
    assert found["total"] >= found["usable"] > 0
    assert found["sizes"][f"{topic}-0"] == (Path(folder) / f"{topic}-0" / f"{0:020}.log").stat().st_size > 0


def test_producers_are_described(call: Call, create: Call, broker: TestBroker, topic: str) -> None:
    create(partitions=1)
    assert call("describe_producers", topic=topic, partition=0) == []
    originals = sample(count=50)
    confluent.write((broker.host, broker.port), topic, originals, Codec.NONE, enable_idempotence=True)
    ((producer_id, epoch, last_sequence, last_timestamp),) = call("describe_producers", topic=topic, partition=0)
    assert (producer_id >= 0, epoch, last_sequence) == (True, 0, len(originals) - 1)
    # The time of the append, by which producers are forgotten; the records say that they are from 2023.
    assert last_timestamp > max(record.timestamp for record in originals)


def test_what_java_creates_confluent_kafka_administers(
    call: Call, create: Call, broker: TestBroker, topic: str
) -> None:
    create(partitions=1)
    confluent.write((broker.host, broker.port), topic, sample(count=50), Codec.NONE)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 5)]).values()
    assert deleted.result(10).low_watermark == 5
    assert call("list_offset", topic=topic, partition=0, isolation="READ_UNCOMMITTED", at="earliest")[0] == 5
    (gone,) = admin.delete_topics([topic]).values()
    gone.result(10)
    assert topic not in call("list_topics")
