"""Loads from librdkafka, through confluent-kafka, in a process of its own.

`python -m bench.brokers.librdkafka '{"task": "produce", ...}'` does one and prints what it found as JSON.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from .frames import values

TIMEOUT_S = 600.0
PATIENCE_S = 30.0
WARM_UP = 1_000
VARIETY = 1_000
POLL_RECORDS = 10_000
TICK_S = 0.001
STAMP_BYTES = 8
READY = "ready"


def start(task: str, **settings: Any) -> "subprocess.Popen[str]":
    """Begin a task in a process of its own."""
    command = [sys.executable, "-m", "bench.brokers.librdkafka", json.dumps({"task": task, **settings})]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(process: "subprocess.Popen[str]") -> Any:
    """What a task found; RuntimeError, with what it said, if it failed."""
    try:
        output, complaints = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    if process.returncode:
        raise RuntimeError(f"a load from librdkafka failed:\n{complaints[-2_000:]}")
    return json.loads(output.splitlines()[-1])


def run(task: str, **settings: Any) -> Any:
    """Begin a task and wait for what it finds."""
    return result(start(task, **settings))


def produce(bootstrap: str, topic: str, count: int, value_size: int, acks: int, codec: str) -> float:
    """Seconds for so many records, all of them acknowledged."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "compression.type": codec,
            "linger.ms": 5,
            "batch.size": 256 * 1024,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    several = values(VARIETY, value_size)

    def send(number: int) -> None:
        for index in range(number):
            while True:
                try:
                    producer.produce(topic, several[index % VARIETY])
                    break
                except BufferError:
                    producer.poll(0.01)
        if left := producer.flush(PATIENCE_S):
            raise TimeoutError(f"{left} records are not acknowledged after {PATIENCE_S:.0f} s")

    send(WARM_UP)
    return _timed(lambda: send(count))


def consume(bootstrap: str, topic: str, count: int) -> float:
    """Seconds for so many records, from the beginning of all partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "queued.max.messages.kbytes": 64 * 1024,
            # Otherwise it rests for a second whenever 100,000 records lie ready, which small ones do at once.
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 5,
        }
    )
    partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions

    def read() -> None:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        total = 0
        while total < count:
            found = consumer.consume(min(POLL_RECORDS, count - total), PATIENCE_S)
            if not found:
                raise TimeoutError(f"{total} of {count} records, and then none for {PATIENCE_S:.0f} s")
            total += len(found)

    try:
        return _timed(read)
    finally:
        consumer.close()


def send_at_rate(bootstrap: str, topic: str, count: int, rate: int, value_size: int) -> float:
    """Records at a fixed rate, a few each millisecond; each carries the time at which it was due. Seconds."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": -1, "linger.ms": 0})
    padding = values(1, value_size - STAMP_BYTES)[0]
    per_tick = max(1, round(rate * TICK_S))
    failed: list[object] = []

    def delivered(error: object, message: Message) -> None:
        if error is not None:
            failed.append(error)

    began = time.monotonic_ns()
    for tick in range(count // per_tick):
        due = began + int(tick * per_tick / rate * 1e9)
        while (early := due - time.monotonic_ns()) > 0:
            time.sleep(early / 1e9)
        value = due.to_bytes(STAMP_BYTES, "big") + padding
        for _ in range(per_tick):
            producer.produce(topic, value, partition=0, on_delivery=delivered)
        producer.poll(0)
    producer.flush(PATIENCE_S)
    if failed:
        raise RuntimeError(f"{len(failed)} records failed, the first with {failed[0]}")
    return (time.monotonic_ns() - began) / 1e9


def receive_stamped(bootstrap: str, topic: str, count: int) -> list[float]:
    """Says that it is ready, and then how long each record took from when it was due, in seconds."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.poll(0.5)
    print(READY, flush=True)
    found: list[float] = []
    while len(found) < count:
        first = consumer.poll(PATIENCE_S)
        if first is None:
            raise TimeoutError(f"{len(found)} of {count} records, and then none for {PATIENCE_S:.0f} s")
        # What else is there by now; to wait until there are many would measure the waiting.
        messages = [first, *consumer.consume(100, timeout=0)]
        now = time.monotonic_ns()
        found += [(now - _stamp(message)) / 1e9 for message in messages]
    consumer.close()
    return found


def _stamp(message: Message) -> int:
    if error := message.error():
        raise RuntimeError(f"the consumer met {error}")
    return int.from_bytes((message.value() or b"")[:STAMP_BYTES], "big")


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


TASKS: dict[str, Callable[..., Any]] = {
    task.__name__: task for task in (produce, consume, send_at_rate, receive_stamped)
}


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    print(json.dumps(TASKS[arguments.pop("task")](**arguments)))
