"""Groups of confluent-kafka (librdkafka), in both protocols."""

from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from ottla.testing import TestBroker

from .group_story import GROUP, PARTITIONS, PATIENCE_S, SETTINGS, TOPIC, read, tell, write


class Member:
    """A consumer of librdkafka."""

    def __init__(self, broker: TestBroker, **settings: Any) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **settings,
            }
        )
        self._consumer.subscribe([TOPIC])

    def poll(self) -> list[bytes]:
        messages = self._consumer.consume(100, 0.1)
        for message in messages:
            assert message.error() is None, message.error()
        return [message.value() or b"" for message in messages]

    def partitions(self) -> set[int]:
        return {assigned.partition for assigned in self._consumer.assignment()}

    def commit(self) -> None:
        for committed in self._consumer.commit(asynchronous=False):
            assert committed.error is None, committed.error

    def close(self) -> None:
        self._consumer.close()


CLASSIC: dict[str, Any] = {"group.protocol": "classic", "heartbeat.interval.ms": 200, "session.timeout.ms": 6000}
MEMBERS: dict[str, dict[str, Any]] = {
    "classic, eager": {**CLASSIC, "partition.assignment.strategy": "range"},
    "classic, cooperative": {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    "consumer, uniform": {"group.protocol": "consumer"},
    "consumer, range": {"group.protocol": "consumer", "group.remote.assignor": "range"},
}


@pytest.mark.parametrize("kind", MEMBERS)
def test_members_come_and_go_and_nothing_is_lost_or_read_twice(kind: str) -> None:
    with TestBroker(SETTINGS) as broker:
        tell(broker, lambda: Member(broker, **MEMBERS[kind]))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_can_be_looked_at_and_changed_by_an_administrator(protocol: str) -> None:
    with TestBroker(SETTINGS) as broker:
        written = write(broker, "first", 40)
        member = Member(broker, **{"group.protocol": protocol, "client.id": "reader"})
        read(member, written)
        member.commit()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})

        listed = admin.list_consumer_groups().result(PATIENCE_S)
        assert listed.errors == []
        (group,) = listed.valid
        assert (group.group_id, group.state.name, group.type.name) == (GROUP, "STABLE", protocol.upper())
        described = admin.describe_consumer_groups([GROUP])[GROUP].result(PATIENCE_S)
        (seen,) = described.members
        assert (described.state.name, seen.client_id) == ("STABLE", "reader")
        assert {assigned.partition for assigned in seen.assignment.topic_partitions} == set(range(PARTITIONS))

        asked = [ConsumerGroupTopicPartitions(GROUP)]
        offsets = admin.list_consumer_group_offsets(asked)[GROUP].result(PATIENCE_S).topic_partitions
        assert {(one.partition, one.offset) for one in offsets} == {(index, 10) for index in range(PARTITIONS)}
        with pytest.raises(KafkaException):
            admin.delete_consumer_groups([GROUP])[GROUP].result(PATIENCE_S)

        member.close()
        back = [TopicPartition(TOPIC, index, 5) for index in range(PARTITIONS)]
        change = [ConsumerGroupTopicPartitions(GROUP, back)]
        admin.alter_consumer_group_offsets(change)[GROUP].result(PATIENCE_S)
        again = Member(broker, **{"group.protocol": protocol})
        read(again, {b"first-%d" % number for number in range(20, 40)})
        again.close()
        admin.delete_consumer_groups([GROUP])[GROUP].result(PATIENCE_S)
        assert admin.list_consumer_groups().result(PATIENCE_S).valid == []
