"""The producer behind a proxy that cuts and lies: what it acknowledges is stored once and in order. It never hangs."""

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ottla.client.errors import (
    BrokerUnreachableError,
    DeliveryTimedOutError,
    KafkaError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
)
from ottla.client.producer import Producer
from ottla.testing import TestBroker
from ottla.wire.api.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_request, encode_request, encode_response
from tests.crash.run import Process
from tests.peers.fixtures import Broker
from tests.peers.ports import ReservedPort

from . import (
    Action,
    Exchange,
    FaultProxy,
    Passage,
    black_hole,
    cut_reply,
    cut_request,
    drop_reply,
    duplicate_reply,
    edit_reply,
    every_cut,
    stray_reply,
)
from .history import Sends, Witness
from .rules import QUICK_FAULTS
from .stories import (
    IMPATIENT,
    PARTITIONS,
    SMALL_BATCHES,
    check_log,
    explained,
    produce,
    run,
    send_numbers,
    send_one_by_one,
)

COUNT = 200
TOPIC = "numbers"
TAGS = count(1)

ANSWERED = [str(cut_reply(1.0)), str(cut_reply(1.0, reset=True))]
"""Cuts after which there is nothing to ask again."""

Tell = Callable[..., Sends]


@pytest.fixture(scope="session")
def topic(witness: Witness) -> str:
    witness.create(TOPIC, PARTITIONS)
    return TOPIC


@pytest.fixture
def tell(proxy: FaultProxy, witness: Witness, topic: str) -> Tell:
    """Has a producer live its life behind the proxy, and checks what came of it."""

    def tell(rules: dict[str, bool] | None = None, **options: Any) -> Sends:
        sends = Sends(f"tale {next(TAGS)}")
        starts = witness.ends(topic, PARTITIONS)
        with explained(proxy):
            run(produce(proxy.bootstrap_servers, topic, sends, COUNT, **options))
            wait_for_links(proxy)
            check_log(witness, topic, sends, starts, **(rules or {}))
        return sends

    return tell


def wait_for_links(proxy: FaultProxy) -> None:
    """Wait until nothing is on its way any more that could still be written."""
    deadline = time.monotonic() + 30
    while proxy.open_connections:
        assert time.monotonic() < deadline, proxy.report()
        time.sleep(0.001)


def stir(proxy: FaultProxy) -> None:
    """Cut twice in the middle, so that there are connections and questions besides the first ones."""
    proxy.on("Produce", cut_reply(), nth=2)
    proxy.on("Produce", cut_reply(), nth=5)


# Cuts.


@pytest.mark.parametrize("action", every_cut(), ids=str)
@pytest.mark.parametrize("api", ["Produce", "Metadata", "ApiVersions"])
def test_a_cut_anywhere_loses_nothing_and_repeats_nothing(
    proxy: FaultProxy, tell: Tell, api: str, action: Action
) -> None:
    for nth in (1, 2, 3):
        proxy.calm()
        rule = proxy.on(api, action, nth=nth)
        if api != "Produce":
            stir(proxy)
        sends = tell()
        assert not sends.failed, proxy.report()
        rule.wait()


@pytest.mark.parametrize("action", every_cut(), ids=str)
def test_a_cut_anywhere_does_no_harm_to_records_that_are_waited_for_one_by_one(
    proxy: FaultProxy, tell: Tell, action: Action
) -> None:
    # The second and third of each partition take the short way; there are three partitions.
    for nth in (2, 5, 8):
        proxy.calm()
        rule = proxy.on("Produce", action, nth=nth)
        assert not tell(send=send_one_by_one).failed, proxy.report()
        rule.wait()


@pytest.mark.parametrize("action", [one for one in every_cut() if str(one) not in ANSWERED], ids=str)
def test_an_identity_is_asked_for_until_it_comes(proxy: FaultProxy, tell: Tell, action: Action) -> None:
    rule = proxy.on("InitProducerId", action, times=2)
    assert not tell().failed, proxy.report()
    rule.wait(2)


def test_a_broker_that_has_told_its_versions_is_never_taken_for_an_old_one(proxy: FaultProxy, tell: Tell) -> None:
    """To one before 0.11 batches would go without the numbers that keep them from being stored twice."""
    proxy.on("Produce", cut_reply(), nth=2, times=3)
    rule = proxy.on("ApiVersions", cut_reply(), nth=2, times=8)
    assert not tell().failed, proxy.report()
    rule.wait(8)


@pytest.mark.parametrize(
    ("api", "nth"),
    [("InitProducerId", 1), *((api, nth) for api in ("Produce", "Metadata", "ApiVersions") for nth in (1, 2, 3))],
)
@pytest.mark.parametrize("action", [duplicate_reply(), stray_reply()], ids=str)
def test_replies_that_nobody_waits_for_are_ignored(
    proxy: FaultProxy, tell: Tell, action: Action, api: str, nth: int
) -> None:
    rule = proxy.on(api, action, nth=nth)
    if api != "Produce":
        stir(proxy)
    before = proxy.connections
    assert not tell().failed, proxy.report()
    rule.wait()
    if api == "Produce":
        assert proxy.connections == before + 1, "it was no reason to give the connection up"


@pytest.mark.parametrize("api", ["Produce", "Metadata", "ApiVersions", "InitProducerId"])
@pytest.mark.parametrize("action", [drop_reply(), black_hole()], ids=str)
def test_silence_ends_with_the_request_timeout(proxy: FaultProxy, tell: Tell, action: Action, api: str) -> None:
    nth = {"Produce": 3, "Metadata": 2}.get(api, 1)
    rule = proxy.on(api, action, nth=nth)
    if api == "ApiVersions":
        # The first connection that a client makes tells whether the address is right.
        with pytest.raises(BrokerUnreachableError, match=r"no connection to .* within 150 ms"):
            tell(request_timeout_ms=150)
    else:
        assert not tell(request_timeout_ms=250, starts=20).failed, proxy.report()
    rule.wait()


@pytest.mark.parametrize("api", ["Produce", "Metadata"])
@pytest.mark.parametrize("action", [cut_request(1.0), cut_reply(0), cut_reply(0.5, reset=True)], ids=str)
def test_cuts_before_every_broker(broker: Broker, name: str, api: str, action: Action) -> None:
    witness = Witness(broker.bootstrap_servers)
    witness.create(name, PARTITIONS)
    with FaultProxy(broker.bootstrap_servers) as proxy:
        for nth in (1, 3):
            proxy.calm()
            rule = proxy.on(api, action, nth=nth)
            stir(proxy)
            sends, starts = Sends(f"tale {nth}"), witness.ends(name, PARTITIONS)
            run(produce(proxy.bootstrap_servers, name, sends, COUNT))
            rule.wait()
            wait_for_links(proxy)
            assert not sends.failed
            check_log(witness, name, sends, starts)


@pytest.mark.parametrize("action", [cut_request(0), cut_request(1.0), cut_reply(0), cut_reply(0.5)], ids=str)
@pytest.mark.parametrize("options", [{"acks": 1}, {"enable_idempotence": False}], ids=str)
def test_without_numbers_nothing_acknowledged_is_lost_though_it_may_come_twice(
    proxy: FaultProxy, tell: Tell, options: dict[str, Any], action: Action
) -> None:
    rule = proxy.on("Produce", action, nth=2, times=3)
    assert not tell({"exactly_once": False}, **options).failed, proxy.report()
    rule.wait(3)


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER], ids=lambda code: code.name
)
def test_without_numbers_a_batch_does_not_overtake_one_that_was_refused(
    proxy: FaultProxy, tell: Tell, code: ErrorCode
) -> None:
    for nth in (1, 2, 3):
        proxy.calm()
        rule = proxy.on("Produce", refuse(code), nth=nth)
        assert not tell(acks=1).failed, proxy.report()
        rule.wait()


def test_without_acknowledgements_a_cut_loses_what_was_on_its_way_and_no_more(
    proxy: FaultProxy, witness: Witness, topic: str
) -> None:
    sends = Sends("without acknowledgements")
    starts = witness.ends(topic, PARTITIONS)

    async def story() -> None:
        async with Producer(bootstrap_servers=proxy.bootstrap_servers, acks=0, **IMPATIENT) as producer:
            await send_numbers(producer, topic, sends, 50)
            await asyncio.to_thread(wait_for_records)
            rule = proxy.on("Produce", cut_request(0.5))
            await send_numbers(producer, topic, Sends("lost"), 1)
            await asyncio.to_thread(rule.wait)
            while proxy.open_connections:
                await asyncio.sleep(0.001)
            await send_numbers(producer, topic, sends, 50)

    def wait_for_records() -> None:
        """The broker reads what it was sent, but nobody says when."""
        deadline = time.monotonic() + 30
        while broken := sends.breaks(witness.read(topic, starts)):
            assert time.monotonic() < deadline, broken

    run(story())
    wait_for_records()
    assert len(sends.acknowledged) == 100


# Errors.


def failed_replies(code: int, change: Callable[[Any], None] = lambda partition: None) -> Callable[[Any], None]:
    """An edit that gives all partitions of a Produce reply an error."""

    def edit(response: ProduceResponse) -> None:
        for topic in response.responses:
            for partition in topic.partition_responses:
                partition.error_code, partition.base_offset = code, -1
                change(partition)

    return edit


def refuse(code: int) -> Action:
    """Answer a Produce with an error without having it written: the broker gets one that has no records."""
    asked: dict[Exchange, ProduceRequest] = {}

    def on_request(exchange: Exchange, frame: bytes) -> Passage:
        header, request = decode_request(ProduceRequest, exchange.version, frame[4:])
        asked[exchange] = request
        empty = ProduceRequest(acks=request.acks, timeout_ms=request.timeout_ms, topic_data=[])
        client_id = header.client_id
        parts = encode_request(empty, exchange.version, correlation_id=exchange.correlation_id, client_id=client_id)
        return Passage(b"".join(parts))

    def on_reply(exchange: Exchange, frame: bytes) -> Passage:
        response = ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        PartitionProduceResponse(index=one.index, error_code=code, base_offset=-1)
                        for one in topic.partition_data
                    ],
                )
                for topic in asked.pop(exchange).topic_data
            ]
        )
        return Passage(b"".join(encode_response(response, exchange.version, correlation_id=exchange.correlation_id)))

    return Action("refuse", on_request, on_reply, ErrorCode(code).name)


RETRIABLE = [
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
]


@pytest.mark.parametrize("code", RETRIABLE, ids=lambda code: code.name)
@pytest.mark.parametrize("written", [True, False], ids=["written nevertheless", "not written"])
def test_an_error_that_may_pass_is_tried_again(proxy: FaultProxy, tell: Tell, code: ErrorCode, written: bool) -> None:
    action = edit_reply(failed_replies(code)) if written else refuse(code)
    for nth in (1, 3):
        proxy.calm()
        rule = proxy.on("Produce", action, nth=nth, times=2)
        assert not tell().failed, proxy.report()
        rule.wait(2)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
    ],
    ids=lambda code: code.name,
)
@pytest.mark.parametrize("nth", [1, 2, 4])
def test_refused_numbers_or_sizes_are_replaced_by_others(
    proxy: FaultProxy, tell: Tell, code: ErrorCode, nth: int
) -> None:
    rule = proxy.on("Produce", refuse(code), nth=nth)
    assert not tell().failed, proxy.report()
    rule.wait()


def test_a_batch_that_was_written_before_counts_as_written(proxy: FaultProxy, tell: Tell) -> None:
    edit = failed_replies(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    rule = proxy.on("Produce", edit_reply(edit), nth=2, times=2)
    assert not tell().failed, proxy.report()
    rule.wait(2)


@pytest.mark.parametrize("is_dead", [False, True], ids=["who is there", "who is not there"])
def test_a_hint_at_a_new_leader_is_followed(proxy: FaultProxy, tell: Tell, is_dead: bool) -> None:
    leader = LeaderIdAndEpoch(leader_id=77, leader_epoch=7)

    def hint(response: ProduceResponse) -> None:
        failed_replies(ErrorCode.NOT_LEADER_OR_FOLLOWER, lambda one: setattr(one, "current_leader", leader))(response)
        response.node_endpoints = [NodeEndpoint(node_id=77, host=proxy.host, port=port)]

    with closing(ReservedPort(proxy.host)) as nobody:
        port = nobody.number if is_dead else proxy.port
        rule = proxy.on("Produce", edit_reply(hint), nth=2)
        questions = proxy.requests["Metadata"]
        assert not tell().failed, proxy.report()
        rule.wait()
        assert (proxy.requests["Metadata"] > questions + 2) is is_dead, "a hint saves the question"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationFailedError),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, KafkaError),
        (ErrorCode.INVALID_RECORD, KafkaError),
        (ErrorCode.INVALID_TIMESTAMP, KafkaError),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, KafkaError),
        (ErrorCode.INVALID_REQUIRED_ACKS, KafkaError),
        (ErrorCode.POLICY_VIOLATION, KafkaError),
        (ErrorCode.UNKNOWN_SERVER_ERROR, KafkaError),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else "",
)
@pytest.mark.parametrize("nth", [1, 3])
def test_an_error_for_good_fails_its_records_and_no_others(
    proxy: FaultProxy, tell: Tell, code: ErrorCode, kind: type[KafkaError], nth: int
) -> None:
    rule = proxy.on("Produce", refuse(code), nth=nth)
    sends = tell()
    rule.wait()
    assert 0 < len(sends.failed) < COUNT / 2
    for error in sends.failed.values():
        assert isinstance(error, kind)
        assert error.code is code
        assert str(error).startswith(f"{code.name}: {TOPIC}-"), str(error)


def test_a_record_that_is_too_large_by_itself_fails_by_itself(proxy: FaultProxy, tell: Tell) -> None:
    rule = proxy.on("Produce", refuse(ErrorCode.MESSAGE_TOO_LARGE), nth=2)
    # A batch for each record, so that there is nothing to split.
    sends = tell(batch_size=1)
    rule.wait()
    assert 0 < len(sends.failed) <= PARTITIONS
    assert {type(error) for error in sends.failed.values()} == {MessageSizeTooLargeError}


# Time.


def test_what_is_not_delivered_in_time_fails_and_later_records_go(
    proxy: FaultProxy, witness: Witness, topic: str
) -> None:
    sends, starts = Sends("late"), witness.ends(topic, PARTITIONS)

    async def story() -> None:
        options = {**IMPATIENT, **SMALL_BATCHES, "delivery_timeout_ms": 300}
        async with Producer(bootstrap_servers=proxy.bootstrap_servers, **options) as producer:
            await send_numbers(producer, topic, sends, 50)
            assert len(sends.acknowledged) == 50
            proxy.freeze()
            await send_numbers(producer, topic, sends, 50)
            proxy.thaw()
            assert len(sends.failed) == 50
            await send_numbers(producer, topic, sends, 50)

    run(story())
    wait_for_links(proxy)
    check_log(witness, topic, sends, starts)
    assert len(sends.acknowledged) == 100
    for error in sends.failed.values():
        assert isinstance(error, DeliveryTimedOutError)
        assert re.search("within delivery_timeout_ms = 300, and (may have been|were not) written", str(error))


@pytest.mark.parametrize("refused", [False, True], ids=["silent", "gone"])
def test_a_producer_stops_in_bounded_time_when_the_broker_is_gone(proxy: FaultProxy, topic: str, refused: bool) -> None:
    async def story() -> None:
        options = {**IMPATIENT, **SMALL_BATCHES, "delivery_timeout_ms": 300}
        producer = await Producer(bootstrap_servers=proxy.bootstrap_servers, **options).start()
        await producer.send_and_wait(topic, b"before")
        if refused:
            proxy.refuse()
            proxy.cut()
        else:
            proxy.freeze()
        for _ in range(50):
            await producer.send(topic, b"never")
        with pytest.raises(DeliveryTimedOutError):
            await producer.stop()

    run(story(), 10)


def test_a_broker_that_stops_and_starts_is_waited_for() -> None:
    with TestBroker() as broker:
        witness = Witness(broker.bootstrap_servers)
        witness.create(TOPIC, PARTITIONS)

        def restart() -> None:
            broker.stop()
            broker.start()

        check_restarts(broker.bootstrap_servers, witness, restart)


@pytest.mark.slow
def test_a_broker_that_is_killed_and_started_is_waited_for(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.start()
    try:
        address = f"{process.address[0]}:{process.address[1]}"
        witness = Witness(address)
        witness.create(TOPIC, PARTITIONS)

        def restart() -> None:
            process.kill()
            process.start()

        check_restarts(address, witness, restart)
    finally:
        process.kill()


def check_restarts(bootstrap_servers: str, witness: Witness, restart: Callable[[], None], times: int = 3) -> None:
    sends = Sends("restarts")

    async def story() -> None:
        options = {**IMPATIENT, **SMALL_BATCHES}
        async with Producer(bootstrap_servers=bootstrap_servers, **options) as producer:
            for _ in range(times):
                restarting = asyncio.create_task(asyncio.to_thread(restart))
                while not restarting.done():
                    await send_numbers(producer, TOPIC, sends, 50)
                await restarting
                await send_numbers(producer, TOPIC, sends, 50)

    run(story(), 60)
    assert not sends.failed
    check_log(witness, TOPIC, sends, [0] * PARTITIONS)


# Chance.


@pytest.mark.parametrize("seed", range(20))
def test_random_faults_and_delays_lose_nothing_and_repeat_nothing(proxy: FaultProxy, tell: Tell, seed: int) -> None:
    proxy.delay(request_ms=(0, 4), reply_ms=(0, 4), seed=seed)
    # Which fault befalls which request depends on the numbers of connections, which other tests have their share in.
    proxy.random_faults(seed, 0.15, QUICK_FAULTS)
    assert not tell().failed, proxy.report()
    assert proxy.faults.total() > 0
