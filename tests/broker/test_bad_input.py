"""Clients that send nonsense, dawdle, never read, or are simply many; and one that works beside them."""

import logging
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import pytest
from bench.process import BrokerProcess
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.testing import TestBroker
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.frame import encode_request
from tests.interop.raw_client import RawClient

from . import good_client, hostile_client
from .good_client import GoodClient
from .hostile_client import HostileClient

SECONDS = 3.0
SLOWEST_SECONDS = 5.0
"""What no round trip of a good client may take, on a machine that does other things too."""

IDLE_CONNECTIONS = 4_000
SPARE_FILES = 500
"""Open files that a process needs beside its connections."""

MEGABYTE = 1 << 20


@pytest.mark.parametrize("seed", [1, 2])
def test_hostile_frames_disturb_neither_a_client_nor_the_broker(
    broker: TestBroker, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    caplog.set_level(logging.ERROR)
    address = (broker.host, broker.port)
    with RawClient(address) as client:
        client.topic(hostile_client.TOPIC)
    attackers = [
        HostileClient(address, seed * 100 + number, SECONDS, least_answered=30, least_closed=6) for number in range(4)
    ]
    with GoodClient(address) as good:
        for attacker in attackers:
            attacker.start()
        written = _confluent_round_trip(broker, SECONDS)
        for attacker in attackers:
            attacker.join()
    assert written > 100
    assert len(good.round_trips) > 20
    assert good.slowest() < SLOWEST_SECONDS
    # All three, or the attack was none.
    for count in (sum(one.sent for one in attackers), sum(one.answered for one in attackers)):
        assert count > 100
    assert sum(attacker.closed for attacker in attackers) > 20
    # A bad request is answered with an error code or closes its connection; it is no failure of the broker.
    assert [record.getMessage() + str(record.exc_info) for record in caplog.records] == []


def _confluent_round_trip(broker: TestBroker, seconds: float) -> int:
    """Write for so long, then read everything back; how many records there were."""
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 1})
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end or count <= 100:
        producer.produce(
            "confluent", value=b"%d" % count, on_delivery=lambda error, _: failures.append(error) if error else None
        )
        count += 1
        producer.poll(0.005)
    assert producer.flush(20) == 0
    assert failures == []
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition("confluent", 0, 0)])
        found: list[bytes | None] = []
        deadline = time.monotonic() + 20
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(1000, 0.5):
                assert message.error() is None, message.error()
                found.append(message.value())
    finally:
        consumer.close()
    assert found == [b"%d" % number for number in range(count)]
    return count


def test_slow_senders_hold_nobody_up_and_are_served_in_the_end(broker: TestBroker) -> None:
    address = (broker.host, broker.port)
    topics = [MetadataRequestTopic(name=f"slow-{number}") for number in range(20)]
    request = _frame(MetadataRequest(topics=topics), 9)
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(address, timeout=30)) for _ in range(50)]
        with GoodClient(address) as good:
            for position in range(len(request)):
                for connection in slow:
                    connection.sendall(request[position : position + 1])
                time.sleep(SECONDS / len(request))
            for connection in slow:
                assert int.from_bytes(_receive(connection, 8)[4:8], "big") == 7
    assert len(good.round_trips) > 20
    assert good.slowest() < SLOWEST_SECONDS


def test_many_who_stop_halfway_through_large_requests_take_no_more_than_the_room_for_all(tmp_path: Path) -> None:
    limit, largest, senders = 16 * MEGABYTE, 8 * MEGABYTE, 40
    settings = (f"queued.max.request.bytes={limit}", f"socket.request.max.bytes={largest}")
    with BrokerProcess(tmp_path, *settings) as broker, ExitStack() as stack:
        stalled = [stack.enter_context(socket.create_connection(broker.address, timeout=30)) for _ in range(senders)]
        with GoodClient(broker.address, 0.005) as good:
            before = most = broker.resident_bytes
            half = largest.to_bytes(4, "big") + bytes(largest // 2)
            sent = 0
            for connection in stalled:
                connection.setblocking(False)
                # What the broker does not read, the system holds, as far as it likes to.
                sent += connection.send(half)
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                most = max(most, broker.resident_bytes)
                time.sleep(0.01)
        with RawClient(broker.address) as client:
            large = build_batch([Record(0, 1_700_000_000_000, None, bytes(900_000))])
            assert client.produce(good_client.TOPIC, large) == len(good.round_trips)
    grown = most - before
    print(f"\n{senders} clients with {sent / MEGABYTE:.0f} MB of unfinished requests take {grown / MEGABYTE:.0f} MB")
    assert sent > 3 * (limit + largest)
    assert grown < limit + largest + senders * 256 * 1024 + 10 * MEGABYTE
    assert good.slowest() < SLOWEST_SECONDS


@pytest.mark.parametrize(
    ("version", "most_bytes"),
    [(12, MEGABYTE), (9, 4 * MEGABYTE), (3, 4 * MEGABYTE), (1, 4 * MEGABYTE)],
)
def test_those_who_never_read_their_replies_cost_little_memory(tmp_path: Path, version: int, most_bytes: int) -> None:
    connections = 20
    with BrokerProcess(tmp_path) as broker:
        batch = build_batch([Record(number, 1_700_000_000_000, None, bytes(1000)) for number in range(900)])
        with RawClient(broker.address) as client:
            client.topic("large")
            for _ in range(20):
                client.produce("large", batch)
        partition = FetchPartition(partition_max_bytes=16 * MEGABYTE)
        wanted = [FetchTopic(topic="large", partitions=[partition])]
        request = _frame(FetchRequest(max_wait_ms=0, max_bytes=16 * MEGABYTE, topics=wanted), version)
        with ExitStack() as stack, GoodClient(broker.address, 0.005) as good:
            before = largest = broker.resident_bytes
            for _ in range(connections):
                connection = stack.enter_context(socket.create_connection(broker.address, timeout=30))
                # They ask for 16 GB in all.
                connection.sendall(request * 50)
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                largest = max(largest, broker.resident_bytes)
                time.sleep(0.01)
    grown = largest - before
    print(f"\nFetch v{version}: {grown / connections / MEGABYTE:.2f} MB for each who does not read")
    assert grown < most_bytes * connections
    assert good.slowest() < SLOWEST_SECONDS


def test_thousands_of_idle_connections_cost_little_and_slow_nobody_down(tmp_path: Path) -> None:
    request = _frame(ApiVersionsRequest(), 0)
    with (
        _open_files(IDLE_CONNECTIONS + SPARE_FILES) as allowed,
        BrokerProcess(tmp_path) as broker,
        ExitStack() as stack,
    ):
        count = min(IDLE_CONNECTIONS, allowed - SPARE_FILES)
        with GoodClient(broker.address, 0.001) as alone:
            time.sleep(0.5)
        before = broker.resident_bytes
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection(broker.address, timeout=30))
            connection.sendall(request)
            _receive(connection, 8)
        each = (broker.resident_bytes - before) / count
        with GoodClient(broker.address, 0.001) as crowded:
            time.sleep(1.0)
        print(
            f"\n{count} idle connections: {each / 1024:.1f} KB each; a round trip takes "
            f"{median(crowded.round_trips) * 1000:.2f} ms, {median(alone.round_trips) * 1000:.2f} ms without them"
        )
        if count < IDLE_CONNECTIONS:
            print(f"no more than {allowed} files may be open here: {IDLE_CONNECTIONS} were not tried")
    assert each < 20 * 1024
    # So much may be because others on the machine have begun to work meanwhile.
    assert median(crowded.round_trips) < max(10 * median(alone.round_trips), 0.02)
    assert crowded.slowest() < SLOWEST_SECONDS


@contextmanager
def _open_files(wanted: int) -> Iterator[int]:
    """Allow this process and its children to open so many files, or as many as can be; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    try:
        yield max(soft, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _frame(message: object, version: int) -> bytes:
    return b"".join(encode_request(message, version, correlation_id=7, client_id="bad"))


def _receive(connection: socket.socket, least: int) -> bytes:
    """At least so many bytes of a reply."""
    data = b""
    while len(data) < least:
        piece = connection.recv(1 << 16)
        assert piece, "the broker closed the connection"
        data += piece
    return data
