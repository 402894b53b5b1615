"""kafka-python."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar

from ottla.record import Codec, Record

from .abilities import LIMIT, PATIENCE_S, Ability, Administrator, Client

with warnings.catch_warnings():
    # It reads its definitions, at import, with functions that Python 3.11 and 3.12 call deprecated.
    warnings.filterwarnings("ignore", message="(read|open)_text is deprecated", category=DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic


class KafkaPython(Client):
    """kafka-python's producer and consumer."""

    name = "kafka-python"
    lacks: ClassVar[dict[Ability, str]] = {
        Ability.NEITHER: "it asks for at least one",
        Ability.NULL_HEADERS: "it asks for bytes",
    }

    def write(self, topic: str, records: Sequence[Record], codec: Codec = Codec.NONE) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.servers,
            compression_type=None if codec is Codec.NONE else codec.name.lower(),
            max_request_size=LIMIT,
            linger_ms=50,
        )
        with closing(producer):
            sent = [
                producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    partition=0,
                    timestamp_ms=record.timestamp,
                    headers=list(record.headers),
                )
                for record in records
            ]
            for future in sent:
                future.get(PATIENCE_S)

    def read(self, topic: str, offset: int, count: int) -> list[Record]:
        with self._consumer(topic) as (consumer, partition):
            consumer.seek(partition, offset)
            return _take(consumer, count)

    def read_since(self, topic: str, timestamp: int, count: int) -> list[Record]:
        with self._consumer(topic) as (consumer, partition):
            consumer.seek(partition, consumer.offsets_for_times({partition: timestamp})[partition].offset)
            return _take(consumer, count)

    def read_new(self, topic: str, when_at_end: Callable[[], None], count: int) -> list[Record]:
        with self._consumer(topic) as (consumer, partition):
            consumer.seek_to_end(partition)
            consumer.position(partition)
            when_at_end()
            return _take(consumer, count)

    @contextmanager
    def _consumer(self, topic: str) -> Iterator[tuple[Any, TopicPartition]]:
        partition = TopicPartition(topic, 0)
        consumer = KafkaConsumer(
            bootstrap_servers=self.servers,
            enable_auto_commit=False,
            max_partition_fetch_bytes=LIMIT,
            consumer_timeout_ms=PATIENCE_S * 1000,
        )
        with closing(consumer):
            consumer.assign([partition])
            yield consumer, partition


def _take(consumer: Any, count: int) -> list[Record]:
    found = [next(consumer) for _ in range(count)]
    return [Record(one.offset, one.timestamp, one.key, one.value, tuple(one.headers)) for one in found]


class KafkaPythonAdministrator(Administrator):
    """kafka-python's administration client."""

    name = KafkaPython.name

    def create(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        self._call(lambda admin: admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs)]))

    def partitions(self, topic: str) -> int:
        (described,) = self._call(lambda admin: admin.describe_topics([topic]))
        return len(described["partitions"])

    def topics(self) -> set[str]:
        return set(self._call(lambda admin: admin.list_topics()))

    def config(self, topic: str, name: str) -> str:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        found = self._call(lambda admin: admin.describe_configs([resource], config_filter="all"))
        return str(found["topic"][topic][name]["value"])

    def set_config(self, topic: str, name: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
        self._call(lambda admin: admin.alter_configs([resource]))

    def grow(self, topic: str, partitions: int) -> None:
        self._call(lambda admin: admin.create_partitions({topic: NewPartitions(partitions)}))

    def delete_records(self, topic: str, before: int) -> None:
        self._call(lambda admin: admin.delete_records({TopicPartition(topic, 0): before}))

    def delete(self, topic: str) -> None:
        self._call(lambda admin: admin.delete_topics([topic]))

    def _call(self, call: Callable[[Any], Any]) -> Any:
        with closing(KafkaAdminClient(bootstrap_servers=self.servers)) as admin:
            return call(admin)
