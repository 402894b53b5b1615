from concurrent.futures import ThreadPoolExecutor

import pytest

from ottla import NewTopic, TopicPartition
from ottla.errors import BrokerUnreachableError, ClientClosedError, TopicAlreadyExistsError
from ottla.sync import Admin, Producer, read_table


def test_what_is_changed_can_be_seen(servers: str, topic: str) -> None:
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=3)])
        assert topic in admin.list_topics()
        assert len(admin.describe_topics([topic])[topic].partitions) == 3
        admin.alter_consumer_group_offsets("readers", {TopicPartition(topic, 1): 0})
        assert list(admin.list_consumer_group_offsets("readers")) == [TopicPartition(topic, 1)]
        with pytest.raises(TopicAlreadyExistsError):
            admin.create_topics([topic])


def test_threads_may_share_it(servers: str, topic: str) -> None:
    with Admin(servers) as admin, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: admin.create_topics([f"{topic}-{number}"]), range(16)))
        assert {f"{topic}-{number}" for number in range(16)} <= set(admin.list_topics())


def test_it_can_be_started_and_stopped_by_hand_and_again(servers: str) -> None:
    admin = Admin(servers)
    with pytest.raises(ClientClosedError, match="with Admin"):
        admin.list_topics()
    assert admin.start() is admin
    assert admin.start() is admin
    admin.describe_cluster()
    admin.close()
    admin.close()
    with pytest.raises(ClientClosedError, match="with Admin"):
        admin.list_topics()


def test_a_broker_that_cannot_be_reached_is_told_at_the_start() -> None:
    with pytest.raises(BrokerUnreachableError, match=r"127\.0\.0\.1:1"):
        Admin("127.0.0.1:1", request_timeout_ms=200).start()


def test_a_topic_becomes_a_table(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number)
    table = read_table(topic, 2, 5, bootstrap_servers=servers, columns=["offset", "value"])
    assert table.to_pydict() == {"offset": [2, 3, 4], "value": [b"2", b"3", b"4"]}
