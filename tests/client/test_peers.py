"""The brokers that the client is tested against do what a client needs; confluent-kafka says so."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource

from tests.faults import FaultProxy, cut_reply
from tests.peers.fixtures import Broker, has_consumer_protocol

TIMEOUT_S = 20
COUNT = 300


def produce(broker: Broker | FaultProxy, topic: str, values: list[bytes]) -> None:
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "linger.ms": 5})
    for value in values:
        producer.produce(topic, value, key=value, on_delivery=delivered)
    assert producer.flush(TIMEOUT_S) == 0, "not all was delivered in time"
    assert failures == []


def read(broker: Broker | FaultProxy, topic: str, group: str, count: int, **options: str) -> Iterator[bytes | None]:
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe([topic])
        for position in range(count):
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"nothing came after {position} of {count} records"
            if message.error() is not None:
                raise KafkaException(message.error())
            yield message.value()
        consumer.commit(asynchronous=False)


def test_what_is_produced_is_read_by_a_group(broker: Broker, new_topic: Callable[..., str], name: str) -> None:
    topic = new_topic(partitions=3)
    values = [f"value {number}".encode() for number in range(COUNT)]
    produce(broker, topic, values)
    assert sorted(filter(None, read(broker, topic, name, COUNT))) == sorted(values)
    # What the group has read it does not read again.
    produce(broker, topic, [b"one more"])
    assert list(read(broker, topic, name, 1)) == [b"one more"]


def test_groups_of_the_newer_protocol_work_where_there_is_one(
    broker: Broker, new_topic: Callable[..., str], name: str
) -> None:
    if not has_consumer_protocol(broker):
        pytest.skip("Kafka 3.9 has it as a preview that is off")
    topic = new_topic(partitions=2)
    produce(broker, topic, [b"one", b"two"])
    assert sorted(filter(None, read(broker, topic, name, 2, group_protocol="consumer"))) == [b"one", b"two"]


def test_a_fault_proxy_stands_before_each(broker: Broker, new_topic: Callable[..., str], name: str) -> None:
    topic = new_topic(partitions=2)
    values = [f"value {number}".encode() for number in range(COUNT)]
    with FaultProxy(broker.bootstrap_servers) as proxy:
        lost = proxy.on("Produce", cut_reply())
        produce(proxy, topic, values)
        assert sorted(filter(None, read(proxy, topic, name, COUNT))) == sorted(values)
        assert lost.done == 1
        # The leaders and the coordinator that the client was told of are the proxy's addresses.
        assert {"Produce", "InitProducerId", "Fetch", "JoinGroup", "OffsetCommit"} <= set(proxy.requests)


def test_topics_are_created_when_they_are_first_used(broker: Broker, name: str) -> None:
    produce(broker, name, [b"value"])
    assert list(read(broker, name, f"{name}-group", 1)) == [b"value"]


def test_a_topic_has_the_partitions_and_configs_it_was_made_with(broker: Broker, new_topic: Callable[..., str]) -> None:
    topic = new_topic(partitions=4, retention_ms=12345)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    assert len(admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions) == 4
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    configs = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    assert configs["retention.ms"].value == "12345"
