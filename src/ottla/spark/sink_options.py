"""What the sink can be told, checked: the official connector's options, with the Java producer's behind `kafka.`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from pyspark.sql.datasource import CaseInsensitiveDict

from ottla.client.producer.options import ProducerOptions
from ottla.spark.java_options import PREFIX, client_options, kafka_options, number, truth
from ottla.spark.options import CLIENT_ID, check_names

_NUMBERS = {
    "linger.ms": "linger_ms",
    "batch.size": "batch_size",
    "max.request.size": "max_request_size",
    "buffer.memory": "buffer_memory",
    "max.block.ms": "max_block_ms",
    "delivery.timeout.ms": "delivery_timeout_ms",
    "max.in.flight.requests.per.connection": "max_in_flight_requests_per_connection",
}

_WITHOUT_EFFECT = (
    "interceptor.classes",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "retries",
    "transaction.timeout.ms",
)
"""Right, but with nothing to act on: a record is sent again until `delivery.timeout.ms` has passed."""

_REFUSED = {
    "key.serializer": "keys are bytes or text already",
    "value.serializer": "values are bytes or text already",
    "partitioner.class": "rows go where the Java client's default partitioner sends them, or where the column "
    "'partition' says",
    "transactional.id": "the sink does not write transactions yet",
}


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options of `df.write.format("ottla")` and `df.writeStream.format("ottla")`.

    >>> options = SinkOptions.parse({"kafka.bootstrap.servers": "broker:9092", "topic": "orders", "kafka.acks": "1"})
    >>> options.topic, options.producer.acks
    ('orders', '1')
    >>> SinkOptions.parse({"kafka.bootstrap.servers": "broker:9092", "kafka.batch.size": "many"})
    Traceback (most recent call last):
    ValueError: option kafka.batch.size is 'many'; it must be a whole number of at least 0
    """

    producer: ProducerOptions
    topic: str | None = None
    """Where all rows go, whatever a column `topic` says."""
    include_timestamp: bool = False
    """Whether a column `timestamp` gives the records their times. The official connector leaves such a column out, and
    so does this sink unless it is asked."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Options as Spark hands them over, in whichever case."""
        check_names(options)
        given: Mapping[str, str] = CaseInsensitiveDict(dict(options))
        producer = _producer_options(kafka_options(given))
        return cls(producer, given.get("topic"), truth(given, "includeTimestamp", False))


def _producer_options(kafka: Mapping[str, str]) -> ProducerOptions:
    for name, reason in _REFUSED.items():
        if name in kafka:
            raise ValueError(f"option {PREFIX}{name} is not supported: {reason}; leave it out")
    levels = {f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd")}
    also_known = {"acks", "enable.idempotence", "compression.type", *levels, *_NUMBERS, *_WITHOUT_EFFECT}
    client = client_options(kafka, also_known=also_known, client_id=CLIENT_ID)
    found: dict[str, Any] = {one.name: getattr(client, one.name) for one in fields(client)}
    found |= {ours: number(kafka, java, PREFIX) for java, ours in _NUMBERS.items() if java in kafka}
    if "acks" in kafka:
        acks = kafka["acks"].strip().lower()
        found["acks"] = "all" if acks == "-1" else acks
    if "enable.idempotence" in kafka:
        found["enable_idempotence"] = truth(kafka, "enable.idempotence", True, PREFIX)
    if "compression.type" in kafka:
        codec = found["compression_type"] = kafka["compression.type"].strip().lower()
        level = kafka.get(f"compression.{codec}.level")
        if level is not None:
            found["compression_level"] = _level(codec, level)
    try:
        return ProducerOptions(**found)
    except ValueError as error:
        raise ValueError(f"options kafka.*: {error}") from None


def _level(codec: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"option kafka.compression.{codec}.level is {text!r}; it must be a whole number") from None
