"""A member of a storm: reads, says what it got, commits, says what was acknowledged; one JSON object per line.

    python -m tests.interop.group_storm_member CLIENT --address HOST:PORT --group GROUP --topic TOPIC

SIGTERM has it leave the group. A record's value is its offset in decimal digits, which the member holds it to.
"""

import argparse
import asyncio
import json
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

SESSION_MS = 2000
HEARTBEAT_MS = 300
POLL_S = 0.2
MOST_RECORDS = 200
WORK_S = 0.05
"""What a member takes for what it got: a time in which it can be killed or paused before it has committed."""

stopping = False


def say(kind: str, **fields: object) -> None:
    """Write an event; whoever kills this process later finds it written."""
    print(json.dumps({"kind": kind, "at_ns": time.monotonic_ns(), **fields}), flush=True)


def stop(*_: object) -> None:
    global stopping
    stopping = True


def digest(records: Iterable[tuple[Any, Any, bytes | None]]) -> dict[int, int]:
    """Say what has come, as spans of offsets, and return what there is to commit."""
    spans: list[list[int]] = []
    ends: dict[int, int] = {}
    for partition, offset, value in records:
        if value != b"%d" % offset:
            say("wrong", partition=partition, offset=offset, value=repr(value))
        if spans and spans[-1][0] == partition and spans[-1][2] + 1 == offset:
            spans[-1][2] = offset
        else:
            spans.append([partition, offset, offset])
        ends[partition] = offset + 1
    if spans:
        say("got", spans=spans)
    return ends


def confluent(settings: Mapping[str, Any], address: str, group: str, topic: str) -> None:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )
    # A commit that a rebalance has got in the way of is tried again, while the partition is this member's.
    pending: dict[int, int] = {}

    def tell(kind: str, _: Any, partitions: list[Any]) -> None:
        for one in partitions:
            pending.pop(one.partition, None)
        say(kind, partitions=[one.partition for one in partitions])

    consumer.subscribe(
        [topic],
        on_assign=partial(tell, "assigned"),
        on_revoke=partial(tell, "revoked"),
        on_lost=partial(tell, "lost"),
    )
    while not stopping:
        messages = consumer.consume(MOST_RECORDS, POLL_S)
        for message in messages:
            if message.error() is not None:
                say("error", error=str(message.error()))
        pending.update(digest((one.partition(), one.offset(), one.value()) for one in messages if one.error() is None))
        if not pending:
            continue
        time.sleep(WORK_S)
        say("committing", offsets=pending)
        offsets = [TopicPartition(topic, partition, end) for partition, end in pending.items()]
        try:
            answers = consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            say("refused", error=str(error))
            continue
        acknowledged = {one.partition: one.offset for one in answers if one.error is None}
        say("committed", offsets=acknowledged)
        for one in answers:
            if one.error is not None:
                say("refused", error=str(one.error))
        for partition in acknowledged:
            pending.pop(partition, None)
    consumer.close()


def kafka_python(address: str, group: str, topic: str) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
    from kafka.errors import KafkaError

    fresh: list[Any] = []

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            fresh[:] = assigned
            say("assigned", partitions=[one.partition for one in fresh])

        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            fresh.clear()
            say("revoked", partitions=[one.partition for one in revoked])

    consumer = KafkaConsumer(
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=HEARTBEAT_MS,
        session_timeout_ms=SESSION_MS,
        max_poll_records=MOST_RECORDS,
    )
    consumer.subscribe([topic], listener=Listener())
    while not stopping:
        # Its poll makes no headway in a rebalance that takes longer than the poll may.
        found = consumer.poll(timeout_ms=5000)
        if fresh:
            # It asks for no committed offset where it gets back a partition that it has had before, also if it was
            # expelled meanwhile and others have gone on: it would deliver and commit from its own old position.
            for one in fresh:
                committed = consumer.committed(one)
                if committed is None:
                    consumer.seek_to_beginning(one)
                else:
                    consumer.seek(one, committed)
            fresh.clear()
            continue
        ends = digest((one.partition, one.offset, one.value) for records in found.values() for one in records)
        if not ends:
            continue
        time.sleep(WORK_S)
        say("committing", offsets=ends)
        try:
            consumer.commit({TopicPartition(topic, one): OffsetAndMetadata(end, "", -1) for one, end in ends.items()})
        except KafkaError as error:
            say("refused", error=repr(error))
            continue
        say("committed", offsets=ends)
    consumer.close()


async def aiokafka(address: str, group: str, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
    from aiokafka.errors import KafkaError

    # It rejoins by itself while records are being dealt with: what was read in one generation must not be committed
    # in the next one.
    whole = asyncio.Lock()

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            say("assigned", partitions=[one.partition for one in assigned])

        async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            async with whole:
                say("revoked", partitions=[one.partition for one in revoked])

    consumer = AIOKafkaConsumer(
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=HEARTBEAT_MS,
        session_timeout_ms=SESSION_MS,
        max_poll_records=MOST_RECORDS,
    )
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    while not stopping:
        async with whole:
            found = await consumer.getmany(timeout_ms=int(POLL_S * 1000))
            ends = digest((one.partition, one.offset, one.value) for records in found.values() for one in records)
            if ends:
                await asyncio.sleep(WORK_S)
                say("committing", offsets=ends)
                try:
                    await consumer.commit({TopicPartition(topic, one): end for one, end in ends.items()})
                except KafkaError as error:
                    say("refused", error=repr(error))
                else:
                    say("committed", offsets=ends)
        await asyncio.sleep(0)
    await consumer.stop()


CLASSIC = {"group.protocol": "classic", "heartbeat.interval.ms": HEARTBEAT_MS, "session.timeout.ms": SESSION_MS}
CLIENTS: Mapping[str, Callable[[str, str, str], None]] = {
    "confluent-eager": partial(confluent, {**CLASSIC, "partition.assignment.strategy": "range"}),
    "confluent-cooperative": partial(confluent, {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"}),
    "confluent-consumer": partial(confluent, {"group.protocol": "consumer"}),
    "kafka-python": kafka_python,
    "aiokafka": lambda address, group, topic: asyncio.run(aiokafka(address, group, topic)),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.group_storm_member")
    parser.add_argument("client", choices=sorted(CLIENTS))
    for name in ("address", "group", "topic"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    CLIENTS[options.client](options.address, options.group, options.topic)
    say("left")


if __name__ == "__main__":
    main()
