"""confluent-kafka, which is librdkafka: its mock cluster, and its producer and consumer set up for tests."""

from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, Message, Producer, TopicPartition

from ottla.record import Codec, Record

TIMEOUT_S = 10
# Only what is critical: the options that make librdkafka speak to old brokers cause a page of deprecation notes.
QUIET = {"log_level": 2}


class MockCluster:
    """librdkafka's own broker, which lives inside a producer and keeps batches as it gets them.

    It gives each batch its offset and leader epoch. Of the old message sets it takes those without compression, and
    refuses the others with UNSUPPORTED_VERSION, so all of these go to `OldBroker`. Its Produce v5 is broken: the
    response lacks the log start offset.
    """

    def __init__(self) -> None:
        self._owner = Producer({"bootstrap.servers": "replaced:1", "test.mock.num.brokers": 1, **QUIET})
        broker = next(iter(self._owner.list_topics(timeout=TIMEOUT_S).brokers.values()))
        self.address = (broker.host, broker.port)


def write(address: tuple[str, int], topic: str, originals: Iterable[Record], codec: Codec, **options: Any) -> None:
    """Have librdkafka write records to partition 0 of a topic."""
    producer = new_producer(address, codec, **options)
    write_with(producer, topic, originals)


def new_producer(address: tuple[str, int], codec: Codec, **options: Any) -> Producer:
    """A producer that waits for more records rather than send few; `a_b` in options stands for `a.b`."""
    settings = {
        "bootstrap.servers": _bootstrap(address),
        "compression.type": codec.name.lower(),
        "linger.ms": TIMEOUT_S * 500,
        "message.timeout.ms": TIMEOUT_S * 1000,
        **QUIET,
        **_dotted(options),
    }
    return Producer(settings)


def write_with(producer: Producer, topic: str, originals: Iterable[Record]) -> None:
    """Write records, and see that they arrive."""
    failures: list[str] = []

    def delivered(error: object, message: Message) -> None:
        if error is not None:
            failures.append(f"{message.key()!r}: {error}")

    for record in originals:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=0,
            timestamp=record.timestamp,
            headers=list(record.headers),
            on_delivery=delivered,
        )
    assert producer.flush(TIMEOUT_S) == 0, "librdkafka could not deliver in time"
    assert failures == []


def read(
    address: tuple[str, int], topic: str, count: int, *, timestamp_type: int, offset: int = 0, **options: Any
) -> list[Record]:
    """Have librdkafka read that many records of partition 0, checksums checked, all with this type of timestamp."""
    settings = {
        "bootstrap.servers": _bootstrap(address),
        "group.id": "none, but it wants one",
        "enable.auto.commit": False,
        "check.crcs": True,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 50,
        **QUIET,
        **_dotted(options),
    }
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        found: list[Message] = []
        while len(found) < count:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"nothing more comes after {len(found)} of {count} records"
            assert message.error() is None, str(message.error())
            found.append(message)
    finally:
        consumer.close()
    assert {message.timestamp()[0] for message in found} == {timestamp_type}
    return [_record(message) for message in found]


def _record(message: Any) -> Record:
    kind, timestamp = message.timestamp()
    headers: Sequence[tuple[str, bytes | None]] = message.headers() or ()
    if kind == TIMESTAMP_NOT_AVAILABLE:
        timestamp = -1
    return Record(message.offset(), timestamp, message.key(), message.value(), headers)


def _bootstrap(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


def _dotted(options: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in options.items()}
