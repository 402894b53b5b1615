"""What is in a topic, as confluent-kafka reads it: a client that is not under test."""

from contextlib import closing
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

TIMEOUT_S = 20


class Read(NamedTuple):
    """A record."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: tuple[int, int]
    headers: list[Any]


def read_all(bootstrap_servers: str, topic: str) -> list[Read]:
    """All records of a topic, by partition and offset; checksums are checked."""
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "none, but it wants one",
        "enable.auto.commit": False,
        "check.crcs": True,
        "fetch.wait.max.ms": 50,
        "log_level": 2,
    }
    with closing(Consumer(settings)) as consumer:
        partitions = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
        missing = 0
        for number in partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=TIMEOUT_S)
            missing += high - low
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        found: list[Read] = []
        while len(found) < missing:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"nothing more comes after {len(found)} of {missing} records"
            assert message.error() is None, str(message.error())
            found.append(
                Read(
                    message.partition() or 0,
                    message.offset() or 0,
                    message.key(),
                    message.value(),
                    message.timestamp(),
                    list(message.headers() or []),
                )
            )
    return sorted(found, key=lambda record: (record.partition, record.offset))


def values(bootstrap_servers: str, topic: str) -> list[bytes | None]:
    """The values of all records of a topic."""
    return [record.value for record in read_all(bootstrap_servers, topic)]
