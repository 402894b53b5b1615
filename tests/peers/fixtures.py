"""The brokers that the client's tests run against. A `conftest.py` imports these fixtures by name."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.testing import TestBroker
from ottla.wire.api.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.interop.raw_client import LATEST, RawClient
from tests.java import skip_without_maven
from tests.waiting import until

from .kafka import KAFKA_3, KAFKA_4, KafkaBroker

Broker = TestBroker | KafkaBroker
NewTopicFunction = Callable[..., str]

TIMEOUT_S = 20

QUICK_GROUPS = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "5000",
}
"""Settings that let members of the consumer protocol hear of each other soon."""

LASTING = {"log.retention.ms": "-1"}
"""Settings for a broker that serves many tests: records with timestamps of long ago stay, however long that takes."""

LONGEST_NAME = 200


def has_consumer_protocol(broker: Broker) -> bool:
    """Whether groups may be of the newer protocol, in which the broker assigns partitions."""
    return not (isinstance(broker, KafkaBroker) and broker.version == KAFKA_3)


def _kafka(name: str, version: str) -> object:
    skip = skip_without_maven(f"NOTHING OF THIS WAS TRIED AGAINST APACHE KAFKA {version}")
    return pytest.param(version, id=name, marks=[pytest.mark.maven, skip])


@pytest.fixture(
    scope="session",
    params=[pytest.param("ottla", id="ottla"), _kafka("kafka-4", KAFKA_4), _kafka("kafka-3.9", KAFKA_3)],
)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Ottla, then Kafka 4, then Kafka 3.9, one at a time; all tests of a process share it, so names must be their own.

    pytest runs the tests of one broker together, and ends it before it starts the next.
    """
    is_ottla = request.param == "ottla"
    started: Broker = TestBroker(QUICK_GROUPS | LASTING) if is_ottla else KafkaBroker(request.param, QUICK_GROUPS)
    with started:
        yield started


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses, fit for topics and groups."""
    legal = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in request.node.name)
    # Tests of one name may stand in several modules, and share a broker.
    module = request.node.module.__name__.rpartition(".")[2]
    return f"{module}-{legal.strip('-')}"[-LONGEST_NAME:]


def wait_for_topic(broker: Broker, topic: str, partitions: int = 1) -> None:
    """Return when a topic can be used. Kafka's brokers hear of it a moment after the controller has made it."""
    wanted = [ListOffsetsPartition(partition_index=number, timestamp=LATEST) for number in range(partitions)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])

    with RawClient((broker.host, broker.port)) as client:

        def is_there() -> bool:
            return all(one.error_code == 0 for one in client.call(request, 1).topics[0].partitions)

        until(is_there, f"the broker has all partitions of {topic}")


@pytest.fixture
def new_topic(broker: Broker, name: str) -> Iterator[NewTopicFunction]:
    """Makes a topic, `new_topic(partitions=3, retention_ms=1000)`, and gives its name; a client that is not under test
    does that."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    numbers = count(1)
    made: list[str] = []

    def create(partitions: int = 1, **configs: object) -> str:
        topic = f"{name}-{next(numbers)}"
        settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
        wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=settings)
        admin.create_topics([wanted])[topic].result(TIMEOUT_S)
        made.append(topic)
        wait_for_topic(broker, topic, partitions)
        return topic

    yield create
    for deletion in admin.delete_topics(made).values() if made else ():
        # A test may have deleted its topic.
        deletion.exception(TIMEOUT_S)
