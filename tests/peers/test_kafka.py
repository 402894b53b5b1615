"""Apache Kafka as a broker in tests: it comes, goes, comes again, and says why it does not come."""

import os
import socket

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.java import skip_without_maven

from .kafka import KAFKA_4, KafkaBroker
from .ports import ReservedPort

TIMEOUT_S = 20

needs_maven = skip_without_maven("APACHE KAFKA CANNOT BE STARTED")


def topics(broker: KafkaBroker) -> dict[str, int]:
    found = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=TIMEOUT_S).topics
    return {name: len(topic.partitions) for name, topic in found.items()}


@pytest.mark.maven
@pytest.mark.slow
@needs_maven
def test_a_broker_that_was_stopped_or_killed_comes_back_where_it_was() -> None:
    with KafkaBroker(KAFKA_4, {"num.partitions": "3"}) as broker:
        address = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic("kept", replication_factor=1)])["kept"].result(TIMEOUT_S)
        broker.stop()
        assert refuses(broker)
        broker.start()
        assert topics(broker) == {"kept": 3}
        broker.kill()
        assert refuses(broker)
        broker.start()
        assert (broker.bootstrap_servers, topics(broker)) == (address, {"kept": 3})
        process_id = broker.process_id
        assert process_id is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
    assert not broker.folder.exists()


@pytest.mark.maven
@needs_maven
def test_a_broker_that_does_not_start_says_why_and_leaves_nothing_behind() -> None:
    broker = KafkaBroker(KAFKA_4, {"num.partitions": "none"})
    with pytest.raises(RuntimeError, match=r"num\.partitions"), broker:
        pass
    assert broker.process_id is None
    assert not broker.folder.exists()


def test_a_reserved_port_is_refused_until_somebody_listens_on_it_and_again_after() -> None:
    port = ReservedPort()
    address = ("127.0.0.1", port.number)
    for _ in range(2):
        with socket.socket() as client, pytest.raises(ConnectionRefusedError):
            client.connect(address)
        with socket.create_server(address) as server, socket.create_connection(address) as client:
            accepted, _ = server.accept()
            accepted.close()
            assert client.recv(1) == b""
    port.close()


def refuses(broker: KafkaBroker) -> bool:
    with socket.socket() as client:
        return client.connect_ex((broker.host, broker.port)) != 0
