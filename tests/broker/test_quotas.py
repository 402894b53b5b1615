"""Quotas on a broker, with librdkafka as the client that wants more than it may."""

import asyncio
import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from statistics import median
from typing import Any

import confluent_kafka
import pytest

from ottla import Producer
from ottla.broker.quota import Quotas
from ottla.broker.request import Request
from ottla.client.admin import Admin, ClientQuotaEntity, QuotaDefault
from ottla.testing import TestBroker
from ottla.wire.api.metadata import MetadataRequest
from tests.interop.raw_client import RawClient

PURGED = (confluent_kafka.KafkaError._PURGE_QUEUE, confluent_kafka.KafkaError._PURGE_INFLIGHT)
BYTES_A_SECOND = 400_000.0
WINDOWS = 2
SECONDS = 8.0
ALONE = 100
ATTEMPTS = 3
"""A machine that has other things to do makes somebody use less now and then; a broker that limits wrongly, always."""


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    # Fewer windows than usual, so that what may be used at once at the start is soon over.
    with TestBroker({"quota.window.num": str(WINDOWS)}) as running:
        yield running


def _administer(broker: TestBroker, work: Callable[[Admin], Any]) -> Any:
    async def connected() -> Any:
        async with Admin(broker.bootstrap_servers, client_id="admin") as admin:
            return await work(admin)

    return asyncio.run(connected())


def _limit(broker: TestBroker, entity: ClientQuotaEntity, **limits: float | None) -> None:
    _administer(broker, lambda admin: admin.alter_client_quotas({entity: limits}))


def _check(measure: Callable[[], Sequence[tuple[float, float]]], limit: float = BYTES_A_SECOND) -> None:
    """Whether somebody who wants more uses what it may, within a tenth, and in no attempt more than that."""
    for _ in range(ATTEMPTS):
        rate = _rate(measure())
        assert rate <= limit * 1.1
        if rate >= limit * 0.9:
            return
    pytest.fail(f"{rate} a second of {limit}")


def _rate(marks: Sequence[tuple[float, float]]) -> float:
    """What is used in a second, from the second half on: the first is that of the start."""
    start = next(index for index, (at, _) in enumerate(marks) if at > marks[0][0] + SECONDS / 2)
    seconds = marks[-1][0] - marks[start][0]
    return sum(size for _, size in marks[start + 1 :]) / seconds


def test_a_producer_writes_as_much_as_it_may_and_others_are_not_slowed(broker: TestBroker) -> None:
    _limit(broker, ClientQuotaEntity(client_id="limited"), producer_byte_rate=BYTES_A_SECOND)
    address = {"bootstrap.servers": broker.bootstrap_servers}
    delivered: list[tuple[float, int]] = []
    throttled: list[float] = []
    waits: list[float] = []
    limited = confluent_kafka.Producer(
        {**address, "client.id": "limited", "throttle_cb": lambda event: throttled.append(event.throttle_time)}
    )
    free = confluent_kafka.Producer(
        {
            **address,
            "client.id": "free",
            "linger.ms": 0,
            "throttle_cb": lambda event: waits.append(event.throttle_time),
        }
    )
    alone: list[float] = []
    beside: list[float] = []

    def write_free(took: list[float]) -> None:
        sent = time.monotonic()
        free.produce("free", b"one")
        assert free.flush(30) == 0
        took.append(time.monotonic() - sent)

    def on_delivery(error: Any, message: Any) -> None:
        if error is None:
            delivered.append((time.monotonic(), len(message.value())))
        else:
            assert error.code() in PURGED

    def write() -> list[tuple[float, int]]:
        delivered.clear()
        begun = time.monotonic()
        while time.monotonic() < begun + SECONDS:
            while len(limited) < 40:
                limited.produce("limited", bytes(1000), on_delivery=on_delivery)
            limited.poll(0.02)
            write_free(beside)
        return delivered[:-1]

    for _ in range(ALONE):
        write_free(alone)
        time.sleep(0.02)
    # A record of 1000 bytes takes a little more than that in a batch.
    _check(write)
    limited.purge()
    limited.poll(0)
    assert waits == []
    print(
        f"one record takes {median(alone) * 1000:.2f} ms alone, {median(beside) * 1000:.2f} ms beside the limited one"
    )
    # The limited one waits for a tenth of a second and more at a time. Half of that is more than a busy machine adds.
    assert max(throttled) > 0.05
    assert median(beside) < 3 * median(alone) + 0.05


def test_a_consumer_reads_as_much_as_it_may_and_others_are_not_slowed(broker: TestBroker) -> None:
    # Small batches: the last one of a fetch is cut off at its limit, and readers throw it away and fetch it again.
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.num.messages": 1})
    count = int(BYTES_A_SECOND * (SECONDS + WINDOWS + 3) / 4000)
    for _ in range(count):
        producer.produce("topic", bytes(4000))
    assert producer.flush(60) == 0
    limited = ClientQuotaEntity(user="ANONYMOUS", client_id="limited")
    _limit(broker, limited, consumer_byte_rate=BYTES_A_SECOND)
    told: list[float] = []

    def reader(client_id: str, **settings: Any) -> Any:
        common = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "fetch.message.max.bytes": 100_000}
        consumer = confluent_kafka.Consumer({**common, "client.id": client_id, **settings})
        consumer.assign([confluent_kafka.TopicPartition("topic", 0, 0)])
        return consumer

    def read() -> list[tuple[float, int]]:
        consumer = reader("limited")
        marks: list[tuple[float, int]] = []
        begun = time.monotonic()
        while time.monotonic() < begun + SECONDS:
            size = sum(len(message.value() or b"") for message in consumer.consume(100, 0.05))
            marks.append((time.monotonic(), size))
        consumer.close()
        return marks

    def read_all() -> float:
        # When the limited one has to wait.
        time.sleep(WINDOWS)
        consumer = reader("free", throttle_cb=lambda event: told.append(event.throttle_time))
        begun, left = time.monotonic(), count
        while left:
            left -= sum(message.error() is None for message in consumer.consume(left, 0.05))
            assert time.monotonic() < begun + 60
        took = time.monotonic() - begun
        consumer.close()
        return took

    with ThreadPoolExecutor(1) as pool:
        free = pool.submit(read_all)
        _check(read)
    print(f"all of it takes {free.result():.2f} s beside the limited one")
    # It would take longer than the whole test if it were limited too.
    assert free.result() < SECONDS / 2
    assert told == []


def test_a_client_that_takes_all_the_time_is_held_to_its_share(broker: TestBroker) -> None:
    anybody = ClientQuotaEntity(client_id=QuotaDefault.DEFAULT)
    _limit(broker, anybody, request_percentage=0.05)
    throttled: list[int] = []

    host, port = broker.bootstrap_servers.split(":")
    told_s = 0.0
    begun = deadline = time.monotonic() + 60
    # One that does not wait by itself, as Ottla's client would.
    with RawClient((host, int(port))) as client:
        while told_s < 0.5:
            sent = time.monotonic()
            assert sent < deadline
            throttled.append(client.call(MetadataRequest(topics=None), 12).throttle_time_ms)
            if throttled[-1]:
                begun = min(begun, sent)
                # It is rounded up.
                told_s += (throttled[-1] - 1) / 1000
        client.call(MetadataRequest(topics=None), 12)
        # Whatever a client makes of it, it is not listened to for so long.
        assert time.monotonic() - begun >= told_s
    assert max(throttled) <= 1001, "one window, since then there is time again"


def test_librdkafka_has_the_share_of_time_that_it_may(broker: TestBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    share = 0.005
    _limit(broker, ClientQuotaEntity(client_id="limited"), request_percentage=share * 100)
    used: list[tuple[float, float]] = []
    measured = Quotas.used

    def note(quotas: Quotas, request: Request, size: int, response: Any, busy_s: float) -> float:
        if request.client_id == "limited":
            used.append((time.monotonic(), busy_s))
        return measured(quotas, request, size, response, busy_s)

    monkeypatch.setattr(Quotas, "used", note)
    limited = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "client.id": "limited", "linger.ms": 0}
    )

    def write() -> list[tuple[float, float]]:
        used.clear()
        begun = time.monotonic()
        while time.monotonic() < begun + SECONDS:
            while len(limited) < 40:
                limited.produce("limited", b"one")
            limited.poll(0.01)
        # What was used is made up for by the pause after it: whatever a busy machine makes of one request, by the next.
        return [(at, busy_s) for (_, busy_s), (at, _) in pairwise(used)]

    _check(write, share)
    limited.purge()


@pytest.mark.parametrize("linger_ms", [0, 5], ids=["single records", "batches"])
def test_ottlas_producer_waits_as_long_as_it_is_asked_to(
    broker: TestBroker, linger_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Longer than it would wait for an answer: asked earlier, the broker would not read, and time would be up."""
    _limit(broker, ClientQuotaEntity(client_id="limited"), producer_byte_rate=50_000.0)

    async def story() -> float:
        async with Producer(
            bootstrap_servers=broker.bootstrap_servers,
            client_id="limited",
            request_timeout_ms=1500,
            linger_ms=linger_ms,
        ) as producer:
            await producer.send_and_wait("orders", b"x")
            await producer.send_and_wait("orders", b"x" * 200_000)
            began = time.monotonic()
            await producer.send_and_wait("orders", b"y")
            return time.monotonic() - began

    with caplog.at_level(logging.INFO, "ottla"):
        took_s = asyncio.run(story())
    assert took_s > 2.5
    assert "did not answer" not in caplog.text


def test_a_quota_that_is_removed_holds_nobody_back(broker: TestBroker) -> None:
    everybody = ClientQuotaEntity(user=QuotaDefault.DEFAULT)
    _limit(broker, everybody, producer_byte_rate=10.0)
    _limit(broker, everybody, producer_byte_rate=None)
    throttled: list[float] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
    )
    producer.produce("topic", bytes(100_000))
    assert producer.flush(30) == 0
    producer.poll(0)
    assert throttled == []


def test_quotas_survive_a_restart(broker: TestBroker) -> None:
    alice = ClientQuotaEntity(user="alice", client_id="app")
    _limit(broker, alice, consumer_byte_rate=1234.5)
    broker.stop()
    broker.start()
    assert _administer(broker, lambda admin: admin.describe_client_quotas()) == {alice: {"consumer_byte_rate": 1234.5}}


def test_a_broker_stops_without_waiting_for_those_who_are_held_back(broker: TestBroker) -> None:
    _limit(broker, ClientQuotaEntity(client_id="limited"), producer_byte_rate=1.0)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "limited"})
    producer.produce("topic", bytes(10_000))
    assert producer.flush(30) == 0
    stopped = threading.Thread(target=broker.stop)
    begun = time.monotonic()
    stopped.start()
    stopped.join(30)
    assert time.monotonic() - begun < 10


def test_an_address_connects_no_more_often_than_it_may(broker: TestBroker) -> None:
    _limit(broker, ClientQuotaEntity(ip="127.0.0.1"), connection_creation_rate=2.0)
    host, port = broker.bootstrap_servers.split(":")
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection((host, int(port)), timeout=30)) for _ in range(20)]
        waited: list[socket.socket] = []
        deadline = time.monotonic() + 30
        while len(waited) < 10 and time.monotonic() < deadline:
            # A connection can be read from once the broker has closed it.
            waited = select.select(opened, [], [], 0.1)[0]
        assert 10 <= len(waited) < 20
