"""Other people's clients, unmodified."""

import asyncio
import shutil
import subprocess
import time
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition

from ottla.testing import TestBroker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COUNT = 300
RECORDS = [(b"key-%d" % index if index % 3 else None, b"value-%d" % index * (index % 20)) for index in range(COUNT)]
HEADERS: list[Any] = [("trace", b"a1"), ("empty", b"")]


def confluent_read(broker: TestBroker, topic: str, count: int, offset: int = 0) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, offset)])
    found: list[Any] = []
    deadline = time.monotonic() + 20
    while len(found) < count and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.5):
            assert message.error() is None, message.error()
            found.append(message)
    consumer.close()
    return found


def confluent_write(broker: TestBroker, topic: str, codec: str, **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec, **settings})
    failures: list[Any] = []
    for key, value in RECORDS:
        producer.produce(topic, key=key, value=value, headers=HEADERS, on_delivery=lambda e, _: failures.append(e))
    assert producer.flush(20) == 0
    assert [failure for failure in failures if failure is not None] == []


@pytest.mark.parametrize("codec", CODECS)
def test_confluent_kafka_writes_and_reads(broker: TestBroker, codec: str) -> None:
    confluent_write(broker, "topic", codec)
    found = confluent_read(broker, "topic", COUNT)
    assert [(message.key(), message.value()) for message in found] == RECORDS
    assert [message.offset() for message in found] == list(range(COUNT))
    assert found[0].headers() == HEADERS
    middle = confluent_read(broker, "topic", COUNT - 200, offset=200)
    assert [message.offset() for message in middle] == list(range(200, COUNT))


def test_confluent_kafka_writes_idempotently(broker: TestBroker) -> None:
    confluent_write(broker, "topic", "lz4", **{"enable.idempotence": True})
    assert [message.value() for message in confluent_read(broker, "topic", COUNT)] == [value for _, value in RECORDS]


def test_confluent_kafka_finds_offsets_by_time(broker: TestBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for index in range(10):
        producer.produce("timed", value=b"v", timestamp=1_700_000_000_000 + index * 1000)
    producer.flush(20)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    (found,) = consumer.offsets_for_times([TopicPartition("timed", 0, 1_700_000_004_500)], timeout=10)
    assert found.offset == 5
    assert consumer.get_watermark_offsets(TopicPartition("timed", 0), timeout=10) == (0, 10)
    consumer.close()


def test_a_large_message_goes_through_and_a_larger_one_is_refused(broker: TestBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.max.bytes": 5_000_000})
    outcomes: list[Any] = []
    for size in (900_000, 2_000_000):
        producer.produce("large", value=b"x" * size, on_delivery=lambda e, _: outcomes.append(e))
        producer.flush(20)
    assert outcomes[0] is None
    assert outcomes[1].name() == "MSG_SIZE_TOO_LARGE"
    (message,) = confluent_read(broker, "large", 1)
    assert len(message.value()) == 900_000


@pytest.mark.parametrize("codec", CODECS)
def test_aiokafka_writes_and_reads(broker: TestBroker, codec: str) -> None:
    async def run() -> list[Any]:
        address = broker.bootstrap_servers
        async with AIOKafkaProducer(
            bootstrap_servers=address, compression_type=None if codec == "none" else codec, enable_idempotence=True
        ) as producer:
            for key, value in RECORDS:
                await producer.send("topic", key=key, value=value, headers=HEADERS)
        async with AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False) as consumer:
            consumer.assign([AioPartition("topic", 0)])
            await consumer.seek_to_beginning()
            return [await asyncio.wait_for(consumer.getone(), 10) for _ in range(COUNT)]

    found = asyncio.run(run())
    assert [(record.key, record.value) for record in found] == RECORDS
    assert found[7].headers == tuple(HEADERS)


@pytest.mark.parametrize("codec", CODECS)
def test_kafka_python_writes_and_reads(broker: TestBroker, codec: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, compression_type=None if codec == "none" else codec
    )
    sent = [producer.send("topic", key=key, value=value, headers=HEADERS) for key, value in RECORDS]
    producer.flush(20)
    assert [future.get(10).offset for future in sent] == list(range(COUNT))
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=10_000
    )
    consumer.assign([KafkaTopicPartition("topic", 0)])
    found = [next(consumer) for _ in range(COUNT)]
    consumer.close()
    assert [(record.key, record.value) for record in found] == RECORDS


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
@pytest.mark.parametrize("codec", CODECS)
def test_kcat_writes_and_reads(broker: TestBroker, codec: str) -> None:
    address = broker.bootstrap_servers
    text = "".join(f"key-{index}:value-{index}\n" for index in range(100))
    subprocess.run(
        ["kcat", "-P", "-b", address, "-t", "topic", "-K:", "-z", codec], input=text, text=True, check=True, timeout=30
    )
    read = ["kcat", "-C", "-b", address, "-t", "topic", "-K:", "-o", "beginning", "-e", "-q"]
    done = subprocess.run(read, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == text
    listing = subprocess.run(["kcat", "-L", "-b", address], capture_output=True, text=True, check=True, timeout=30)
    assert 'topic "topic" with 1 partitions' in listing.stdout
