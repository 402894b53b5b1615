"""Records written by confluent-kafka, so that what is read was not written by the same library."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from ottla.wire.api.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.interop.raw_client import LATEST, RawClient, check
from tests.peers.fixtures import Broker
from tests.waiting import until

TIMEOUT_S = 20
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


def write(
    broker: Broker,
    topic: str,
    values: Iterable[bytes | None],
    partition: int = 0,
    *,
    apart_ms: int = 0,
    **options: Any,
) -> None:
    """Write values to a partition; options of the producer have underscores for dots.

    With `apart_ms`, the timestamp is that of the first record, and the others come so much later, each in a batch.
    """
    if apart_ms:
        options["batch_num_messages"] = 1
    of_record = {key: options.pop(key) for key in ("key", "headers", "timestamp") if key in options}
    producer = _producer(broker, **options)
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)

    for value in values:
        producer.produce(topic, value, partition=partition, on_delivery=delivered, **of_record)
        if apart_ms:
            of_record["timestamp"] += apart_ms
    assert producer.flush(TIMEOUT_S) == 0, "not all was delivered in time"
    assert failures == []


def write_transaction(broker: Broker, topic: str, values: Iterable[bytes], *, commit: bool, name: str) -> None:
    """Write values to partition 0 in one transaction, and commit or abort it."""
    producer = _producer(broker, transactional_id=name)
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(TIMEOUT_S) == 0, "not all was delivered in time"
    if commit:
        producer.commit_transaction(TIMEOUT_S)
    else:
        producer.abort_transaction(TIMEOUT_S)
    _wait_for_marker(broker, topic)


def _wait_for_marker(broker: Broker, topic: str) -> None:
    """Return when nothing is undecided: the marker at the end comes a moment after the answer to the producer."""
    with RawClient((broker.host, broker.port)) as client:

        def end(isolation_level: int) -> int:
            wanted = [ListOffsetsPartition(partition_index=0, timestamp=LATEST)]
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation_level,
                topics=[ListOffsetsTopic(name=topic, partitions=wanted)],
            )
            answer = client.call(request, 2).topics[0].partitions[0]
            check(answer.error_code)
            return int(answer.offset)

        until(lambda: end(READ_COMMITTED) == end(READ_UNCOMMITTED), f"the end of a transaction in {topic}")


def _producer(broker: Broker, **options: Any) -> Producer:
    # Without idempotence batches change places when the first of them has to be sent again.
    settings = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5, "enable.idempotence": True}
    return Producer(settings | {key.replace("_", "."): value for key, value in options.items()})
