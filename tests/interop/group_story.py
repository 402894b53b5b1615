"""What every client's group must be able to do, told once: the clients differ only in how they are called.

A member reads everything and commits. Another joins, and they share the partitions. The first leaves, and the other has
them all, going on exactly where the first one has committed. So does a third one after the broker was started anew.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from confluent_kafka import Producer

from ottla.testing import TestBroker

TOPIC = "orders"
PARTITIONS = 4
GROUP = "billing"
PATIENCE_S = 30.0

SETTINGS = {
    "num.partitions": str(PARTITIONS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
}
"""Settings of the broker that let members hear of each other soon."""


class GroupMember(Protocol):
    """A consumer of `TOPIC` in `GROUP`, from the beginning on where nothing is committed."""

    def poll(self) -> list[bytes]:
        """Values that have arrived; waits a little for them."""
        ...

    def partitions(self) -> set[int]:
        """The partitions that it reads now."""
        ...

    def commit(self) -> None:
        """Commit all that was polled."""
        ...

    def close(self) -> None:
        """Leave the group."""
        ...


def write(broker: TestBroker, name: str, count: int, topic: str = TOPIC) -> set[bytes]:
    """Write so many records, evenly over the partitions; their values."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    values = [b"%s-%d" % (name.encode(), number) for number in range(count)]
    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0
    return set(values)


def read(member: GroupMember, wanted: set[bytes]) -> None:
    """Read until all of these have come, and insist that nothing else has, and nothing twice."""
    found: Counter[bytes] = Counter()
    deadline = time.monotonic() + PATIENCE_S
    while found.keys() < wanted and time.monotonic() < deadline:
        found.update(member.poll())
    assert found == Counter(wanted)


def wait_until(condition: Callable[[], bool], *members: GroupMember) -> None:
    """Have the members poll, and find nothing, until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, [member.partitions() for member in members]
        for member in members:
            assert member.poll() == []


def tell(broker: TestBroker, join: Callable[[], GroupMember]) -> None:
    """The story."""
    everything = set(range(PARTITIONS))
    written = write(broker, "first", 200)
    first = join()
    read(first, written)
    assert first.partitions() == everything
    first.commit()

    second = join()
    wait_until(lambda: len(first.partitions()) == len(second.partitions()) == PARTITIONS // 2, first, second)
    assert first.partitions() | second.partitions() == everything

    first.close()
    wait_until(lambda: second.partitions() == everything, second)
    read(second, write(broker, "second", 100))
    second.commit()
    second.close()

    broker.stop()
    broker.start()
    third = join()
    wait_until(lambda: third.partitions() == everything, third)
    read(third, write(broker, "third", 40))
    third.close()
