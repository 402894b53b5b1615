"""librdkafka, as confluent-kafka and as kcat."""

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, ClassVar

import confluent_kafka.admin
from confluent_kafka import OFFSET_END, Consumer, KafkaError, Producer, TopicPartition

from ottla.record import Codec, Record

from .abilities import LIMIT, PATIENCE_S, Ability, Administrator, Client

library: Any = confluent_kafka.admin
"""Its type hints lack most of what it has."""


class Confluent(Client):
    """confluent-kafka."""

    name = "confluent-kafka"

    def write(self, topic: str, records: Sequence[Record], codec: Codec = Codec.NONE) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "compression.type": codec.name.lower(),
                "message.max.bytes": LIMIT,
                "linger.ms": 50,
            }
        )
        failures: list[Any] = []
        for record in records:
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                partition=0,
                timestamp=record.timestamp,
                on_delivery=lambda error, _: failures.append(error),
            )
        assert producer.flush(PATIENCE_S) == 0
        assert failures == [None] * len(records)

    def read(self, topic: str, offset: int, count: int) -> list[Record]:
        return self._read(TopicPartition(topic, 0, offset), count)

    def read_since(self, topic: str, timestamp: int, count: int) -> list[Record]:
        consumer = self._consumer()
        (start,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp)], timeout=PATIENCE_S)
        consumer.close()
        return self._read(start, count)

    def read_new(self, topic: str, when_at_end: Callable[[], None], count: int) -> list[Record]:
        return self._read(TopicPartition(topic, 0, OFFSET_END), count, when_at_end)

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "none",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.message.max.bytes": LIMIT,
            }
        )

    def _read(self, start: TopicPartition, count: int, when_at_end: Callable[[], None] | None = None) -> list[Record]:
        consumer = self._consumer()
        consumer.assign([start])
        found: list[Record] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(found) < count and time.monotonic() < deadline:
            message: Any = consumer.poll(0.5)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found.append(
                    Record(
                        message.offset(),
                        message.timestamp()[1],
                        message.key(),
                        message.value(),
                        tuple(message.headers() or ()),
                    )
                )
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                if when_at_end is not None:
                    when_at_end()
                    when_at_end = None
        consumer.close()
        return found


class ConfluentAdministrator(Administrator):
    """confluent-kafka's administration client."""

    name = Confluent.name

    def __init__(self, servers: str) -> None:
        super().__init__(servers)
        self._admin = library.AdminClient({"bootstrap.servers": servers})

    def create(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        _done(self._admin.create_topics([library.NewTopic(topic, partitions, 1, config=configs)]))

    def partitions(self, topic: str) -> int:
        return len(self._admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions)

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=PATIENCE_S).topics)

    def config(self, topic: str, name: str) -> str:
        entry = _done(self._admin.describe_configs([library.ConfigResource(library.ResourceType.TOPIC, topic)]))[name]
        return str(entry.value)

    def set_config(self, topic: str, name: str, value: str) -> None:
        change = library.ConfigEntry(name, value, incremental_operation=library.AlterConfigOpType.SET)
        resource = library.ConfigResource(library.ResourceType.TOPIC, topic, incremental_configs=[change])
        _done(self._admin.incremental_alter_configs([resource]))

    def grow(self, topic: str, partitions: int) -> None:
        _done(self._admin.create_partitions([library.NewPartitions(topic, partitions)]))

    def delete_records(self, topic: str, before: int) -> None:
        _done(self._admin.delete_records([TopicPartition(topic, 0, before)]))

    def delete(self, topic: str) -> None:
        _done(self._admin.delete_topics([topic]))


def _done(futures: dict[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result(PATIENCE_S)


class Kcat(Client):
    """kcat, which is told what to write on its standard input."""

    name = "kcat"
    lacks: ClassVar[dict[Ability, str]] = {
        Ability.TIMESTAMPS: "it has no option for them",
        Ability.ADMINISTRATION: "it lists topics, and no more",
    }

    def write(self, topic: str, records: Sequence[Record], codec: Codec = Codec.NONE) -> None:
        # Headers, and whether nothing means null, hold for all that one kcat writes.
        for (headers, nulls), some in groupby(records, lambda one: (one.headers, one.key is None or one.value is None)):
            lines = b"".join(b"%b\t%b\n" % (record.key or b"", record.value or b"") for record in some)
            options = ["-K\t", "-z", codec.name.lower(), "-X", f"message.max.bytes={LIMIT}", "-X", "linger.ms=50"]
            for name, value in headers:
                options += ["-H", name if value is None else f"{name}={value.decode()}"]
            command = self._command("-P", topic, *options, *(["-Z"] if nulls else []))
            subprocess.run(command, input=lines, check=True, timeout=PATIENCE_S)

    def read(self, topic: str, offset: int, count: int) -> list[Record]:
        return self._read(topic, str(offset), count)

    def read_since(self, topic: str, timestamp: int, count: int) -> list[Record]:
        return self._read(topic, f"s@{timestamp}", count)

    def read_new(self, topic: str, when_at_end: Callable[[], None], count: int) -> list[Record]:
        command = self._reader(topic, "end", count)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                assert process.stderr is not None
                said = process.stderr.readline()
                assert b"Reached end of topic" in said, said
                when_at_end()
                output, _ = process.communicate(timeout=PATIENCE_S)
            finally:
                process.kill()
        return _parse(output)

    def _read(self, topic: str, start: str, count: int) -> list[Record]:
        done = subprocess.run(self._reader(topic, start, count), capture_output=True, check=True, timeout=PATIENCE_S)
        return _parse(done.stdout)

    def _reader(self, topic: str, start: str, count: int) -> list[str]:
        limit = ("-X", f"fetch.message.max.bytes={LIMIT}")
        return self._command("-C", topic, "-J", "-u", "-o", start, "-c", str(count), *limit)

    def _command(self, mode: str, topic: str, *options: str) -> list[str]:
        return ["kcat", mode, "-b", self.servers, "-t", topic, "-p", "0", *options]


def _parse(output: bytes) -> list[Record]:
    return [_record(json.loads(line)) for line in output.splitlines()]


def _record(line: dict[str, Any]) -> Record:
    headers: Iterable[Any] = iter(line.get("headers", ()))
    return Record(
        line["offset"],
        line["ts"],
        _bytes(line["key"]),
        _bytes(line["payload"]),
        tuple((name, _bytes(value)) for name, value in zip(headers, headers, strict=True)),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
