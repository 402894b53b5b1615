"""One piece of work with one client library, in a process of its own: what `bench.client` has its contenders do.

`python -m bench.client_work LOOP LIBRARY TASK ADDRESS TOPIC COUNT SIZE` prints seconds, one or many, as JSON. What
counts is the work alone: imports, connecting and the first record of a topic come before it, and so does a fifth of
the work, to warm up. LOOP is the event loop of
those libraries that have one, uvloop or asyncio.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from .memory import Reserve

T = TypeVar("T")

BATCH_BYTES = 256 * 1024
LINGER_MS = 5
WARM_UP = 200
"""Records before the clock starts: connections, metadata and producer ids are there then."""
FIRST_SHARE = 5
"""What part of the work everybody does before that which counts, with a client of its own: code is loaded, codecs are
made and memory is found then, which on a virtual machine can take longer than all the rest."""
RECORD_BYTES = 16
"""What a record takes besides its value."""
HOLDERS = 2
"""In how many places, besides where they come from, all records may be at once: a table, and the broker's files."""
TIMEOUT_S = 120.0
POLL_RECORDS = 10_000


def value_of(size: int) -> bytes:
    """A value that is not all the same byte."""
    return (bytes(range(33, 127)) * (size // 94 + 1))[:size]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it in the event loop that the command names."""
    return uvloop.run(work) if sys.argv[1] == "uvloop" else asyncio.run(work)


# ---- confluent-kafka ----


def confluent_produce(address: str, topic: str, count: int, size: int) -> float:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": address,
            "enable.idempotence": True,
            "linger.ms": LINGER_MS,
            "batch.size": BATCH_BYTES,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 32 * 1024,
        }
    )
    value = value_of(size)

    def send(number: int) -> None:
        for _ in range(number):
            while True:
                try:
                    producer.produce(topic, value)
                    break
                except BufferError:
                    producer.poll(0.01)
        assert producer.flush(TIMEOUT_S) == 0

    send(WARM_UP)
    return timed(lambda: send(count))


def confluent_latency(address: str, topic: str, count: int, size: int) -> list[float]:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 0})
    value = value_of(size)
    arrived: list[Any] = []

    def send() -> None:
        arrived.clear()
        producer.produce(topic, value, on_delivery=lambda error, message: arrived.append(error))
        while not arrived:
            producer.poll(1)
        assert arrived == [None]

    return latencies(send, count)


def confluent_consume(address: str, topic: str, count: int, size: int) -> float:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "queued.max.messages.kbytes": 64 * 1024,
            # As the others do unasked.
            "check.crcs": True,
            # Otherwise it rests for a second whenever 100,000 records lie ready, which small ones do at once.
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 5,
        }
    )
    partitions = consumer.list_topics(topic, TIMEOUT_S).topics[topic].partitions

    def read() -> None:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        total = 0
        while total < count:
            found = consumer.consume(POLL_RECORDS, 5.0)
            assert found, f"{total} of {count}, and then nothing for 5 s"
            for message in found:
                total += len(message.value() or b"") == size

    try:
        return timed(read)
    finally:
        consumer.close()


# ---- aiokafka ----


def aiokafka_produce(address: str, topic: str, count: int, size: int) -> float:
    from aiokafka import AIOKafkaProducer

    async def work() -> float:
        producer = AIOKafkaProducer(
            bootstrap_servers=address, enable_idempotence=True, linger_ms=LINGER_MS, max_batch_size=BATCH_BYTES
        )
        await producer.start()
        value = value_of(size)
        for _ in range(WARM_UP):
            await producer.send(topic, value)
        await producer.flush()
        started = start_clock()
        for _ in range(count):
            await producer.send(topic, value)
        await producer.flush()
        elapsed = time.perf_counter() - started
        await producer.stop()
        return elapsed

    return run(work())


def aiokafka_latency(address: str, topic: str, count: int, size: int) -> list[float]:
    from aiokafka import AIOKafkaProducer

    async def work() -> list[float]:
        producer = AIOKafkaProducer(bootstrap_servers=address, enable_idempotence=True)
        await producer.start()
        value = value_of(size)
        found = await async_latencies(lambda: producer.send_and_wait(topic, value), count)
        await producer.stop()
        return found

    return run(work())


def aiokafka_consume(address: str, topic: str, count: int, size: int) -> float:
    from aiokafka import AIOKafkaConsumer

    async def work() -> float:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False
        )
        await consumer.start()
        started = start_clock()
        total = 0
        while total < count:
            found = await consumer.getmany(timeout_ms=5000, max_records=POLL_RECORDS)
            assert found, f"{total} of {count}, and then nothing for 5 s"
            for records in found.values():
                for record in records:
                    total += len(record.value) == size
        elapsed = time.perf_counter() - started
        await consumer.stop()
        return elapsed

    return run(work())


# ---- kafka-python ----


def kafka_python_produce(address: str, topic: str, count: int, size: int) -> float:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=address, linger_ms=LINGER_MS, batch_size=BATCH_BYTES)
    value = value_of(size)

    def send(number: int) -> None:
        for _ in range(number):
            producer.send(topic, value)
        producer.flush(TIMEOUT_S)

    send(WARM_UP)
    try:
        return timed(lambda: send(count))
    finally:
        producer.close()


def kafka_python_latency(address: str, topic: str, count: int, size: int) -> list[float]:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=address)
    value = value_of(size)
    try:
        return latencies(lambda: producer.send(topic, value).get(timeout=TIMEOUT_S), count)
    finally:
        producer.close()


def kafka_python_consume(address: str, topic: str, count: int, size: int) -> float:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=address,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=POLL_RECORDS,
    )

    def read() -> None:
        total = 0
        while total < count:
            found = consumer.poll(timeout_ms=5000)
            assert found, f"{total} of {count}, and then nothing for 5 s"
            for records in found.values():
                for record in records:
                    total += len(record.value) == size

    try:
        return timed(read)
    finally:
        consumer.close()


# ---- Ottla ----


def ottla_produce(address: str, topic: str, count: int, size: int) -> float:
    import ottla

    async def work() -> float:
        async with ottla.Producer(bootstrap_servers=address, linger_ms=LINGER_MS, batch_size=BATCH_BYTES) as producer:
            value = value_of(size)
            for _ in range(WARM_UP):
                await producer.send(topic, value)
            await producer.flush()
            started = start_clock()
            for _ in range(count):
                await producer.send(topic, value)
            await producer.flush()
            return time.perf_counter() - started

    return run(work())


def ottla_latency(address: str, topic: str, count: int, size: int) -> list[float]:
    import ottla

    async def work() -> list[float]:
        async with ottla.Producer(bootstrap_servers=address) as producer:
            value = value_of(size)
            return await async_latencies(lambda: producer.send_and_wait(topic, value), count)

    return run(work())


def ottla_consume(address: str, topic: str, count: int, size: int) -> float:
    """With `getmany`, as the other libraries here."""
    import ottla

    async def work() -> float:
        async with ottla.Consumer(topic, bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
            started = start_clock()
            total = 0
            while total < count:
                found = await consumer.getmany(timeout_ms=5000, max_records=POLL_RECORDS)
                assert found, f"{total} of {count}, and then nothing for 5 s"
                for records in found.values():
                    for record in records:
                        total += len(record.value) == size
            return time.perf_counter() - started

    return run(work())


def ottla_iterate(address: str, topic: str, count: int, size: int) -> float:
    """With `async for`, record by record."""
    import ottla

    async def work() -> float:
        async with ottla.Consumer(topic, bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
            started = start_clock()
            total = 0
            async for record in consumer:
                total += len(record.value) == size
                if total == count:
                    break
            return time.perf_counter() - started

    return run(work())


def ottla_send_arrow(address: str, topic: str, count: int, size: int) -> float:
    """Whole columns into a topic."""
    import pyarrow as pa

    import ottla

    ottla.keep_freed_memory()
    table = pa.table({"value": pa.array([value_of(size)] * count, pa.binary())})

    async def work() -> float:
        async with ottla.Producer(bootstrap_servers=address, linger_ms=LINGER_MS) as producer:
            await producer.send_arrow(table.slice(0, WARM_UP), topic=topic)
            await producer.flush()
            started = start_clock()
            await producer.send_arrow(table, topic=topic)
            await producer.flush()
            return time.perf_counter() - started

    return run(work())


def ottla_read_arrow(address: str, topic: str, count: int, size: int) -> float:
    """Whole columns out of a topic, table by table: all that is known of every record."""
    return _read_arrow(address, topic, count, size, zero_copy=False)


def ottla_read_views(address: str, topic: str, count: int, size: int) -> float:
    """The same, with values that stay in the bytes that were fetched."""
    return _read_arrow(address, topic, count, size, zero_copy=True)


def _read_arrow(address: str, topic: str, count: int, size: int, *, zero_copy: bool) -> float:
    import ottla

    ottla.keep_freed_memory()

    async def work() -> float:
        async with ottla.Consumer(topic, bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
            started = start_clock()
            total = seen = 0
            while total < count:
                table = await consumer.read_arrow(timeout_ms=5000, zero_copy=zero_copy)
                assert table.num_rows, f"{total} of {count}, and then nothing for 5 s"
                total += table.num_rows
                seen += _bytes_of(table["value"], are_views=zero_copy)
            elapsed = time.perf_counter() - started
        assert seen >= size * count
        return elapsed

    return run(work())


def _bytes_of(values: Any, *, are_views: bool) -> int:
    """How many bytes there are in a column."""
    import numpy as np
    import pyarrow.compute as pc

    if not are_views:
        return int(pc.sum(pc.binary_length(values)).as_py())
    # A view is four numbers, the first of which is a length; pyarrow's functions do not know views.
    return sum(int(np.frombuffer(chunk.buffers()[1], np.int32)[::4].sum()) for chunk in values.chunks)


def ottla_read_table(address: str, topic: str, count: int, size: int) -> float:
    """Whole columns out of a topic: key, value, offset, timestamp, partition and topic of every record."""
    import ottla

    async def work() -> float:
        await ottla.read_table(topic, 0, 1, bootstrap_servers=address)
        started = start_clock()
        table = await ottla.read_table(topic, bootstrap_servers=address)
        elapsed = time.perf_counter() - started
        assert table.num_rows >= count
        assert _bytes_of(table["value"], are_views=False) >= size * count
        return elapsed

    return run(work())


# ---- timing ----


reserve = Reserve()


def start_clock() -> float:
    """Let go of the memory that was found for what comes now, and look at the clock."""
    reserve.release()
    return time.perf_counter()


def timed(work: Callable[[], object]) -> float:
    started = start_clock()
    work()
    return time.perf_counter() - started


def latencies(send: Callable[[], object], count: int) -> list[float]:
    for _ in range(WARM_UP):
        send()
    return [timed(send) for _ in range(count)]


async def async_latencies(send: Callable[[], Any], count: int) -> list[float]:
    for _ in range(WARM_UP):
        await send()
    found = []
    for _ in range(count):
        started = time.perf_counter()
        await send()
        found.append(time.perf_counter() - started)
    return found


LIBRARIES = ("ottla", "confluent", "aiokafka", "kafka_python")


def main() -> None:
    """Do the work that the arguments name."""
    library, task, address, topic, count, size = sys.argv[2:]
    work = globals()[f"{library}_{task}"]
    if task != "latency":
        work(address, topic, int(count) // FIRST_SHARE, int(size))
        reserve.fill(int(count) * (int(size) + RECORD_BYTES) * HOLDERS)
    print(json.dumps(work(address, topic, int(count), int(size))))


if __name__ == "__main__":
    main()
