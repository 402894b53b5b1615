"""What was sent, acknowledged, handed out and committed, and what brokers have of it; read past the proxy."""

import struct
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from ottla.broker.coordinator import shard_index
from ottla.record import Batch, BatchBuilder, batches, records
from ottla.wire.api.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.api.delete_topics import DeleteTopicsRequest
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.api.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.interop.raw_client import LATEST, BrokerError, RawClient, check

OFFSETS_TOPIC = "__consumer_offsets"
RECORDS_PER_BATCH = 10
READY_S = 20.0

CREATE_VERSION, DELETE_VERSION, PRODUCE_VERSION, FETCH_VERSION, LIST_VERSION = 4, 4, 9, 11, 2
"""Versions that Ottla, Kafka 4 and Kafka 3.9 all have."""


class Stored(NamedTuple):
    """A record in a log."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Witness:
    """Looks at a broker's logs over a connection of its own, and makes topics."""

    def __init__(self, bootstrap_servers: str) -> None:
        host, _, port = bootstrap_servers.rpartition(":")
        self._address = (host, int(port))

    def create(self, topic: str, partitions: int) -> None:
        """Make a topic."""
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        with RawClient(self._address) as client:
            reply = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=20_000), CREATE_VERSION)
        check(reply.topics[0].error_code)
        # Kafka's brokers hear of it a moment later.
        deadline = time.monotonic() + READY_S
        while True:
            try:
                self.ends(topic, partitions)
                return
            except BrokerError:
                assert time.monotonic() < deadline, f"topic {topic} was not ready in {READY_S} s"

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        with RawClient(self._address) as client:
            reply = client.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=20_000), DELETE_VERSION)
        check(reply.responses[0].error_code)

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic."""
        with RawClient(self._address) as client:
            found: bytes = client.topic(topic).topic_id
        return found

    def write(self, topic: str, values: Iterable[bytes], partitions: int) -> None:
        """Append values, to all partitions in turn, a few in a batch."""
        waiting = list(values)
        with RawClient(self._address) as client:
            for partition in range(partitions):
                own = waiting[partition::partitions]
                for start in range(0, len(own), RECORDS_PER_BATCH):
                    builder = BatchBuilder()
                    for value in own[start : start + RECORDS_PER_BATCH]:
                        builder.append(0, None, value, ())
                    data = [PartitionProduceData(index=partition, records=builder.build())]
                    topics = [TopicProduceData(name=topic, partition_data=data)]
                    request = ProduceRequest(acks=-1, timeout_ms=20_000, topic_data=topics)
                    check(client.call(request, PRODUCE_VERSION).responses[0].partition_responses[0].error_code)

    def ends(self, topic: str, partitions: int) -> list[int]:
        """Where each partition ends."""
        wanted = [ListOffsetsPartition(partition_index=one, timestamp=LATEST) for one in range(partitions)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
        with RawClient(self._address) as client:
            answers = client.call(request, LIST_VERSION).topics[0].partitions
        for answer in answers:
            check(answer.error_code)
        return [answer.offset for answer in sorted(answers, key=lambda one: one.partition_index)]

    def read(self, topic: str, starts: list[int]) -> list[Stored]:
        """All records from these offsets on, partition by partition."""
        ends = self.ends(topic, len(starts))
        with RawClient(self._address) as client:
            return [
                record
                for partition, (start, end) in enumerate(zip(starts, ends, strict=True))
                for record in _read_partition(client, topic, partition, start, end)
            ]

    def commits(self, group: str) -> dict[tuple[str, int], list[int]]:
        """All offsets that a group ever committed, by topic and partition, in the order in which they were written."""
        with RawClient(self._address) as client:
            partitions = len(client.topic(OFFSETS_TOPIC).partitions)
        partition = shard_index(group, partitions)
        found: dict[tuple[str, int], list[int]] = {}
        end = self.ends(OFFSETS_TOPIC, partitions)[partition]
        with RawClient(self._address) as client:
            for record in _read_partition(client, OFFSETS_TOPIC, partition, 0, end):
                place = _committed_place(record.key or b"", group)
                if place is not None and record.value is not None:
                    found.setdefault(place, []).append(struct.unpack_from(">q", record.value, 2)[0])
        return found


def _read_partition(client: RawClient, topic: str, partition: int, offset: int, end: int) -> Iterable[Stored]:
    while offset < end:
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 24)
        request = FetchRequest(
            max_wait_ms=500, min_bytes=1, max_bytes=1 << 24, topics=[FetchTopic(topic=topic, partitions=[wanted])]
        )
        data = client.call(request, FETCH_VERSION).responses[0].partitions[0]
        check(data.error_code)
        before = offset
        for batch in batches(memoryview(data.records or b"")):
            assert isinstance(batch, Batch), f"{batch} is no batch"
            batch.validate()
            for record in records(batch):
                if record.offset >= offset:
                    yield Stored(partition, record.offset, _bytes(record.key), _bytes(record.value))
            offset = batch.next_offset
        assert offset > before, f"nothing comes of {topic}-{partition} at {offset}, which ends at {end}"


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes(data)


def _committed_place(key: bytes, group: str) -> tuple[str, int] | None:
    """The topic and partition that a record of the offsets topic is about, if it is a position of the group."""
    version, size = struct.unpack_from(">hh", key)
    if version not in (0, 1) or key[4 : 4 + size].decode() != group:
        return None
    (length,) = struct.unpack_from(">h", key, 4 + size)
    start = 6 + size
    return key[start : start + length].decode(), struct.unpack_from(">i", key, start + length)[0]


@dataclass
class Sends:
    """What a producer was given, and what it said of it. Values are unique, and numbered in the order of sending."""

    tag: str
    acknowledged: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Partition and offset by number."""
    failed: dict[int, Exception] = field(default_factory=dict)
    count: int = 0

    def next_value(self) -> tuple[int, bytes]:
        """A number, and the value that carries it."""
        self.count += 1
        return self.count, f"{self.tag}:{self.count}".encode()

    def number_of(self, value: bytes | None) -> int | None:
        """The number in a value; None if it is of another tale."""
        tag, _, number = (value or b"").decode().rpartition(":")
        return int(number) if tag == self.tag else None

    def breaks(self, log: list[Stored], *, exactly_once: bool = True, ordered: bool = True) -> list[str]:
        """What is wrong with a log, given what was acknowledged; nothing if all is well."""
        stored = [(record, number) for record in log if (number := self.number_of(record.value)) is not None]
        found: list[str] = []
        places: dict[int, set[tuple[int, int]]] = {}
        for record, number in stored:
            places.setdefault(number, set()).add((record.partition, record.offset))
        lost = [number for number in self.acknowledged if number not in places]
        if lost:
            found.append(f"{len(lost)} acknowledged records are lost: {_some(lost)}")
        misplaced = [
            number
            for number, place in self.acknowledged.items()
            if number in places and place[1] >= 0 and place not in places[number]
        ]
        if misplaced:
            found.append(f"{len(misplaced)} records are not where their acknowledgement says: {_some(misplaced)}")
        unaccounted = self.count - len(self.acknowledged) - len(self.failed)
        if unaccounted:
            found.append(f"{unaccounted} of {self.count} records have no outcome")
        denied = [number for number, error in self.failed.items() if "were not written" in str(error)]
        if written := [number for number in denied if number in places]:
            found.append(f"{len(written)} records are stored though it was said that they are not: {_some(written)}")
        if exactly_once:
            twice = [number for number, count in Counter(number for _, number in stored).items() if count > 1]
            if twice:
                found.append(f"{len(twice)} records are stored more than once: {_some(twice)}")
        if ordered:
            by_partition: dict[int, list[int]] = {}
            for record, number in stored:
                by_partition.setdefault(record.partition, []).append(number)
            for partition, numbers in by_partition.items():
                turned = [pair for pair in pairwise(_first_of_each(numbers)) if pair[0] >= pair[1]]
                if turned:
                    found.append(f"partition {partition} is out of order: {_some(turned)}")
        return found


def _first_of_each(numbers: list[int]) -> list[int]:
    """Where duplicates are allowed, it is the first copies that must be in order."""
    return list(dict.fromkeys(numbers))


@dataclass
class Reads:
    """What consumers handed out, and how far their user was done with it."""

    values: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Partition, offset and value in the order of handing out."""
    finished: dict[tuple[str, int], int] = field(default_factory=dict)
    """The offset after the last record that any user has come back from."""
    early: list[str] = field(default_factory=list)
    """Commits of what nobody had finished."""

    def take(self, record: Any) -> None:
        """A record was handed out."""
        self.values.append((record.partition, record.offset, record.value))

    def finish(self, record: Any) -> None:
        """The user is about to come back from a record."""
        place = (record.topic, record.partition)
        self.finished[place] = max(self.finished.get(place, 0), record.offset + 1)

    def see_commit(self, request: Any, names: dict[bytes, str]) -> None:
        """A commit is on its way to the broker: it must not be of more than was finished."""
        for topic in request.topics:
            name = topic.name or names.get(topic.topic_id, "?")
            for one in topic.partitions:
                done = self.finished.get((name, one.partition_index), 0)
                if one.committed_offset > done:
                    self.early.append(
                        f"{name}-{one.partition_index}: offset {one.committed_offset} was committed when the user was "
                        f"done up to {done}"
                    )

    def breaks(self, expected: Iterable[bytes], *, exactly_once: bool = True) -> list[str]:
        """What is wrong with what was read; nothing if all is well."""
        found: list[str] = []
        wanted, got = set(expected), Counter(value for _, _, value in self.values)
        missing = sorted(wanted - got.keys())
        if missing:
            found.append(f"{len(missing)} of {len(wanted)} records were not read: {_some(missing)}")
        foreign = sorted(got.keys() - wanted)
        if foreign:
            found.append(f"{len(foreign)} records were read that nobody wrote: {_some(foreign)}")
        if exactly_once:
            twice = [value for value, count in got.items() if count > 1]
            if twice:
                found.append(f"{len(twice)} records were read more than once: {_some(twice)}")
            last: dict[int, int] = {}
            for partition, offset, _ in self.values:
                if offset <= last.get(partition, -1):
                    found.append(f"partition {partition}: offset {offset} came after {last[partition]}")
                last[partition] = offset
        if self.early:
            found.append(f"{len(self.early)} commits were early: {_some(self.early)}")
        return found


def commits_that_go_back(commits: dict[tuple[str, int], list[int]]) -> list[str]:
    """Positions that a group committed after later ones."""
    return [
        f"{topic}-{partition}: {later} was committed after {earlier}"
        for (topic, partition), offsets in commits.items()
        for earlier, later in pairwise(offsets)
        if later < earlier
    ]


def _some(items: Iterable[object]) -> str:
    listed = list(items)
    more = "" if len(listed) <= 8 else f" and {len(listed) - 8} more"
    return ", ".join(map(str, listed[:8])) + more
