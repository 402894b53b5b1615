"""Consumers without a group, and tables, behind a proxy that cuts and lies: all is read once and in order."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from struct import Struct
from typing import Any

import pytest

from ottla.client.consumer import Consumer
from ottla.client.errors import (
    BrokerUnreachableError,
    CorruptRecordError,
    KafkaError,
    OffsetOutOfRangeError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
    UnsupportedCompressionTypeError,
)
from ottla.testing import TestBroker
from ottla.wire.api.fetch import FetchResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData
from ottla.wire.api.list_offsets import ListOffsetsResponse
from ottla.wire.api.metadata import MetadataResponse
from ottla.wire.errors import ErrorCode
from tests.peers.fixtures import Broker
from tests.peers.ports import ReservedPort

from . import (
    Action,
    FaultProxy,
    black_hole,
    cut_reply,
    cut_request,
    drop_reply,
    duplicate_reply,
    edit_reply,
    every_cut,
    stray_reply,
)
from .history import Reads, Witness
from .rules import QUICK_FAULTS
from .stories import IMPATIENT, PARTITIONS, SMALL_FETCHES, check_reads, consume, explained, run, tabulate

TOPIC = "to-be-read"
VALUES = [b"value %d" % number for number in range(240)]
SIZE = Struct(">i")
SIZE_END = 12
"""Where the size of a batch ends, and what it is the size of begins."""

Tell = Callable[..., Reads]


@pytest.fixture(scope="session")
def topic(witness: Witness) -> str:
    witness.create(TOPIC, PARTITIONS)
    witness.write(TOPIC, VALUES, PARTITIONS)
    return TOPIC


@pytest.fixture
def tell(proxy: FaultProxy, topic: str) -> Tell:
    """Has a consumer read everything behind the proxy, and checks that it was everything, once and in order."""

    def tell(**options: Any) -> Reads:
        with explained(proxy):
            reads = run(consume(proxy.bootstrap_servers, topic, len(VALUES), **options))
            check_reads(reads, VALUES)
        return reads

    return tell


@pytest.fixture
def tabulated(proxy: FaultProxy, topic: str) -> Tell:
    """The same as a table."""

    def tell(**options: Any) -> Reads:
        with explained(proxy):
            reads = run(tabulate(proxy.bootstrap_servers, topic, **options))
            check_reads(reads, VALUES)
        return reads

    return tell


def stir(proxy: FaultProxy) -> None:
    """Cut twice in the middle, so that there are connections and questions besides the first ones."""
    proxy.on("Fetch", cut_reply(0.5), nth=2)
    proxy.on("Fetch", cut_reply(0.5), nth=4)


# Cuts.


@pytest.mark.parametrize("action", every_cut(), ids=str)
@pytest.mark.parametrize("api", ["Fetch", "Metadata", "ApiVersions"])
def test_a_cut_anywhere_loses_nothing_and_repeats_nothing(
    proxy: FaultProxy, tell: Tell, api: str, action: Action
) -> None:
    for nth in (1, 2, 3):
        proxy.calm()
        rule = proxy.on(api, action, nth=nth)
        if api != "Fetch":
            stir(proxy)
        tell()
        rule.wait()


@pytest.mark.parametrize("action", every_cut(), ids=str)
def test_the_beginning_is_looked_for_until_it_is_found(proxy: FaultProxy, tell: Tell, action: Action) -> None:
    rule = proxy.on("ListOffsets", action, times=2)
    tell()
    rule.wait()


@pytest.mark.parametrize("action", every_cut(), ids=str)
@pytest.mark.parametrize(
    ("api", "nth"), [("Fetch", 1), ("ListOffsets", 1), ("ListOffsets", 2), ("Metadata", 1), ("ApiVersions", 2)]
)
def test_a_table_is_whole_whatever_is_cut(
    proxy: FaultProxy, tabulated: Tell, api: str, nth: int, action: Action
) -> None:
    rule = proxy.on(api, action, nth=nth)
    tabulated()
    rule.wait()


@pytest.mark.parametrize(
    ("api", "nth"),
    [("ListOffsets", 1), *((api, nth) for api in ("Fetch", "Metadata", "ApiVersions") for nth in (1, 2, 3))],
)
@pytest.mark.parametrize("action", [duplicate_reply(), stray_reply()], ids=str)
def test_replies_that_nobody_waits_for_are_ignored(
    proxy: FaultProxy, tell: Tell, action: Action, api: str, nth: int
) -> None:
    rule = proxy.on(api, action, nth=nth)
    if api != "Fetch":
        stir(proxy)
    before = proxy.connections
    tell()
    rule.wait()
    if api == "Fetch":
        assert proxy.connections == before + 2, "it was no reason to give the connection up"


@pytest.mark.parametrize("api", ["Fetch", "Metadata", "ListOffsets"])
@pytest.mark.parametrize("action", [drop_reply(), black_hole()], ids=str)
def test_silence_ends_with_the_request_timeout(proxy: FaultProxy, tell: Tell, action: Action, api: str) -> None:
    rule = proxy.on(api, action, nth=1 if api == "ListOffsets" else 2)
    tell(request_timeout_ms=250, starts=20)
    rule.wait()


@pytest.mark.parametrize("api", ["Fetch", "Metadata", "ListOffsets"])
@pytest.mark.parametrize("action", [cut_request(1.0), cut_reply(0), cut_reply(0.5, reset=True)], ids=str)
def test_cuts_before_every_broker(broker: Broker, name: str, api: str, action: Action) -> None:
    witness = Witness(broker.bootstrap_servers)
    witness.create(name, PARTITIONS)
    witness.write(name, VALUES, PARTITIONS)
    with FaultProxy(broker.bootstrap_servers) as proxy:
        rule = proxy.on(api, action)
        check_reads(run(consume(proxy.bootstrap_servers, name, len(VALUES))), VALUES)
        rule.wait()
        proxy.calm()
        rule = proxy.on(api, action)
        check_reads(run(tabulate(proxy.bootstrap_servers, name)), VALUES)
        rule.wait()


@pytest.mark.parametrize("action", [cut_request(1.0), cut_reply(0.5), cut_reply(1.0, reset=True)], ids=str)
def test_iteration_goes_on_over_cuts(proxy: FaultProxy, topic: str, action: Action) -> None:
    async def story() -> Reads:
        reads = Reads()
        settings = {**IMPATIENT, **SMALL_FETCHES, "auto_offset_reset": "earliest"}
        async with Consumer(topic, bootstrap_servers=proxy.bootstrap_servers, **settings) as consumer:
            async for record in consumer:
                reads.take(record)
                if len(reads.values) == len(VALUES):
                    break
        return reads

    rule = proxy.on("Fetch", action, nth=2, times=3)
    check_reads(run(story()), VALUES)
    rule.wait(3)


# Errors.


def failed_fetch(code: int, change: Callable[[PartitionData], None] = lambda partition: None) -> Callable[[Any], None]:
    """An edit that gives all partitions of a Fetch reply an error instead of their records."""

    def edit(response: FetchResponse) -> None:
        for topic in response.responses:
            for partition in topic.partitions:
                partition.error_code, partition.records = code, b""
                partition.high_watermark = -1
                change(partition)

    return edit


RETRIABLE = [
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
]


@pytest.mark.parametrize("code", RETRIABLE, ids=lambda code: code.name)
def test_an_error_of_a_fetch_that_may_pass_is_tried_again(
    proxy: FaultProxy, tell: Tell, tabulated: Tell, code: ErrorCode
) -> None:
    for nth in (1, 3):
        proxy.calm()
        rule = proxy.on("Fetch", edit_reply(failed_fetch(code)), nth=nth, times=2)
        tell()
        rule.wait(2)
    proxy.calm()
    rule = proxy.on("Fetch", edit_reply(failed_fetch(code)))
    tabulated()
    rule.wait()


@pytest.mark.parametrize("code", RETRIABLE, ids=lambda code: code.name)
def test_an_error_of_an_offset_that_may_pass_is_tried_again(
    proxy: FaultProxy, tell: Tell, tabulated: Tell, code: ErrorCode
) -> None:
    def edit(response: ListOffsetsResponse) -> None:
        for partition in response.topics[0].partitions:
            partition.error_code = code

    for read in (tell, tabulated):
        proxy.calm()
        rule = proxy.on("ListOffsets", edit_reply(edit), times=2)
        read()
        rule.wait(2)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ],
    ids=lambda code: code.name,
)
@pytest.mark.parametrize("nth", [1, 2, 4])
def test_a_lost_session_is_begun_anew(proxy: FaultProxy, tell: Tell, code: ErrorCode, nth: int) -> None:
    def edit(response: FetchResponse) -> None:
        response.error_code, response.session_id, response.responses = code, 0, []

    rule = proxy.on("Fetch", edit_reply(edit), nth=nth, times=2)
    tell()
    rule.wait(2)


@pytest.mark.parametrize("is_dead", [False, True], ids=["who is there", "who is not there"])
def test_a_hint_at_a_new_leader_is_followed(proxy: FaultProxy, tell: Tell, is_dead: bool) -> None:
    # A consumer says which epoch it knows of, so it must be one that the broker has; what is known is to be older.
    leader = LeaderIdAndEpoch(leader_id=77, leader_epoch=0)

    def make_older(response: MetadataResponse) -> None:
        for described in response.topics:
            for partition in described.partitions:
                partition.leader_epoch = -1

    def hint(response: FetchResponse) -> None:
        failed_fetch(ErrorCode.NOT_LEADER_OR_FOLLOWER, lambda one: setattr(one, "current_leader", leader))(response)
        response.node_endpoints = [NodeEndpoint(node_id=77, host=proxy.host, port=port)]

    with closing(ReservedPort(proxy.host)) as nobody:
        port = nobody.number if is_dead else proxy.port
        proxy.on("Metadata", edit_reply(make_older), times=None)
        rule = proxy.on("Fetch", edit_reply(hint), nth=2)
        tell()
        rule.wait()


def read_on_after(
    proxy: FaultProxy, topic: str, kind: type[KafkaError], **options: Any
) -> tuple[Reads, list[KafkaError]]:
    """Read everything, with a user who goes on after an error."""

    async def story() -> tuple[Reads, list[KafkaError]]:
        reads, errors = Reads(), []
        settings = {**IMPATIENT, **SMALL_FETCHES, "auto_offset_reset": "earliest", **options}
        async with Consumer(topic, bootstrap_servers=proxy.bootstrap_servers, **settings) as consumer:
            while len(reads.values) < len(VALUES):
                try:
                    reads.take(await consumer.getone())
                except kind as error:
                    errors.append(error)
        return reads, errors

    with explained(proxy):
        return run(story())


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationFailedError),
        (ErrorCode.UNKNOWN_SERVER_ERROR, KafkaError),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, UnsupportedCompressionTypeError),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else "",
)
def test_an_error_for_good_reaches_the_user_who_can_read_on(
    proxy: FaultProxy, topic: str, code: ErrorCode, kind: type[KafkaError]
) -> None:
    rule = proxy.on("Fetch", edit_reply(failed_fetch(code)), nth=2)
    reads, errors = read_on_after(proxy, topic, kind)
    rule.wait()
    check_reads(reads, VALUES)
    assert 0 < len(errors) <= PARTITIONS
    for error in errors:
        assert type(error) is kind
        assert error.code is code
        assert str(error).startswith(f"{code.name}: {TOPIC}-"), str(error)


def test_a_position_out_of_range_is_an_error_if_there_is_nowhere_to_go(
    proxy: FaultProxy, topic: str, witness: Witness
) -> None:
    async def story() -> tuple[Reads, list[OffsetOutOfRangeError]]:
        reads, errors = Reads(), []
        settings = {**IMPATIENT, **SMALL_FETCHES, "auto_offset_reset": "none"}
        async with Consumer(bootstrap_servers=proxy.bootstrap_servers, **settings) as consumer:
            places = [(topic, partition) for partition in range(PARTITIONS)]
            consumer.assign(places)  # type: ignore[arg-type]
            for place in places:
                consumer.seek(place, 0)  # type: ignore[arg-type]
            while len(reads.values) < len(VALUES):
                try:
                    reads.take(await consumer.getone())
                except OffsetOutOfRangeError as error:
                    errors.append(error)
        return reads, errors

    rule = proxy.on("Fetch", edit_reply(failed_fetch(ErrorCode.OFFSET_OUT_OF_RANGE)))
    with explained(proxy):
        reads, errors = run(story())
    rule.wait()
    check_reads(reads, VALUES)
    assert 0 < len(errors) <= PARTITIONS
    assert all("seek to an offset between" in str(error) for error in errors)


def test_a_position_out_of_range_begins_anew_where_the_user_says(proxy: FaultProxy, topic: str) -> None:
    rule = proxy.on("Fetch", edit_reply(failed_fetch(ErrorCode.OFFSET_OUT_OF_RANGE)), nth=3)

    async def story() -> Reads:
        reads = Reads()
        settings = {**IMPATIENT, **SMALL_FETCHES, "auto_offset_reset": "earliest"}
        async with Consumer(topic, bootstrap_servers=proxy.bootstrap_servers, **settings) as consumer:
            while len({value for _, _, value in reads.values}) < len(VALUES):
                reads.take(await consumer.getone())
        return reads

    reads = run(story())
    rule.wait()
    check_reads(reads, VALUES, exactly_once=False)
    offsets = [offset for _, offset, _ in reads.values]
    assert offsets.count(0) > PARTITIONS, "a partition is read from its beginning once more"


def test_flipped_bits_are_found_and_the_user_can_read_on(proxy: FaultProxy, topic: str) -> None:
    def flip(response: FetchResponse) -> None:
        for one in response.responses[0].partitions:
            if one.records:
                records = bytearray(one.records)
                # The last letter of a value, behind which are no headers: all but the checksum stays right.
                records[SIZE_END + SIZE.unpack_from(records, SIZE_END - SIZE.size)[0] - 2] ^= 1
                one.records = bytes(records)

    rule = proxy.on("Fetch", edit_reply(flip))
    reads, errors = read_on_after(proxy, topic, CorruptRecordError)
    rule.wait()
    check_reads(reads, VALUES)
    assert errors
    assert all("look at the network and the broker's disk" in str(error) for error in errors)


def test_half_a_batch_at_the_end_is_fetched_again(proxy: FaultProxy, tell: Tell) -> None:
    def truncate(response: FetchResponse) -> None:
        for one in response.responses[0].partitions:
            one.records = bytes(one.records or b"")[:-5]

    rule = proxy.on("Fetch", edit_reply(truncate), times=3)
    tell()
    rule.wait(3)


# Time.


def test_a_table_that_nothing_comes_of_ends_in_time(proxy: FaultProxy, topic: str) -> None:
    rule = proxy.on("Fetch", drop_reply(), times=None)
    with pytest.raises((RequestTimedOutError, BrokerUnreachableError)):
        run(tabulate(proxy.bootstrap_servers, topic, request_timeout_ms=300), 10)
    rule.wait()


@pytest.mark.parametrize("refused", [False, True], ids=["silent", "gone"])
def test_a_consumer_stops_at_once_when_the_broker_is_gone(proxy: FaultProxy, topic: str, refused: bool) -> None:
    async def story() -> None:
        settings = {**IMPATIENT, "auto_offset_reset": "earliest"}
        consumer = Consumer(topic, bootstrap_servers=proxy.bootstrap_servers, **settings)
        await consumer.start()
        await consumer.getone()
        if refused:
            proxy.refuse()
            proxy.cut()
        else:
            proxy.freeze()
        # A request would be waited for twice as long.
        async with asyncio.timeout(5):
            await consumer.stop()

    run(story(), 30)


def test_a_broker_that_stops_and_starts_is_read_on() -> None:
    with TestBroker() as broker:
        witness = Witness(broker.bootstrap_servers)
        witness.create(TOPIC, PARTITIONS)
        values: list[bytes] = []
        reads = Reads()

        def restart() -> None:
            broker.stop()
            broker.start()

        async def story() -> None:
            settings = {**IMPATIENT, "auto_offset_reset": "earliest"}
            async with Consumer(TOPIC, bootstrap_servers=broker.bootstrap_servers, **settings) as consumer:
                for number in range(3):
                    more = [b"%d-%d" % (number, place) for place in range(50)]
                    values.extend(more)
                    await asyncio.to_thread(witness.write, TOPIC, more, PARTITIONS)
                    while len(reads.values) < len(values):
                        reads.take(await consumer.getone())
                    await asyncio.to_thread(restart)

        run(story())
        check_reads(reads, values)


# Chance.


@pytest.mark.parametrize("seed", range(16))
def test_random_faults_and_delays_lose_nothing_and_repeat_nothing(
    proxy: FaultProxy, tell: Tell, tabulated: Tell, seed: int
) -> None:
    proxy.delay(request_ms=(0, 4), reply_ms=(0, 4), seed=seed)
    proxy.random_faults(seed, 0.15, QUICK_FAULTS)
    tell()
    tabulated()
