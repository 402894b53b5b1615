"""The fault proxy does what it is told, where it is told, and nothing else."""

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from ottla.testing import TestBroker
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.describe_cluster import DescribeClusterRequest
from ottla.wire.api.fetch import FetchResponse
from ottla.wire.api.fetch import NodeEndpoint as FetchEndpoint
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.api.produce import NodeEndpoint, ProduceRequest, ProduceResponse
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request, encode_response
from tests.interop.raw_client import RawClient
from tests.waiting import until

from . import (
    Action,
    Exchange,
    FaultProxy,
    Passage,
    black_hole,
    cut_reply,
    cut_request,
    delay,
    drop_reply,
    duplicate_reply,
    edit_reply,
    every_cut,
    stray_reply,
)
from .link import ActionFailedError

TIMEOUT_S = 20.0


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as started:
        yield started


@pytest.fixture
def proxy(broker: TestBroker) -> Iterator[FaultProxy]:
    with FaultProxy(broker.bootstrap_servers) as started:
        yield started


@pytest.fixture
def connect(proxy: FaultProxy) -> Iterator[Callable[[], socket.socket]]:
    made: list[socket.socket] = []

    def make() -> socket.socket:
        made.append(socket.create_connection((proxy.host, proxy.port), timeout=TIMEOUT_S))
        return made[-1]

    yield make
    for one in made:
        one.close()


def question(correlation_id: int = 1) -> bytes:
    return b"".join(encode_request(ApiVersionsRequest(), 0, correlation_id=correlation_id, client_id="raw"))


def receive(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        assert more, f"closed after {len(data)} of {size} bytes"
        data += more
    return data


def receive_frame(client: socket.socket) -> bytes:
    size = receive(client, 4)
    return size + receive(client, struct.unpack(">i", size)[0])


def receive_all(client: socket.socket) -> tuple[bytes, bool]:
    """What comes until the connection ends, and whether it ends with a reset."""
    data = b""
    try:
        while more := client.recv(1 << 16):
            data += more
    except ConnectionResetError:
        return data, True
    return data, False


def is_reset(port: int) -> bool:
    """Whether a connection is taken and reset, with nothing sent."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as client:
            return receive_all(client) == (b"", True)
    except ConnectionResetError:
        return True


def answer(broker: TestBroker, correlation_id: int = 1) -> bytes:
    """The reply that the broker gives without a proxy."""
    with socket.create_connection((broker.host, broker.port), timeout=TIMEOUT_S) as client:
        client.sendall(question(correlation_id))
        return receive_frame(client)


def test_without_faults_bytes_pass_as_they_are(
    broker: TestBroker, proxy: FaultProxy, connect: Callable[[], socket.socket]
) -> None:
    client = connect()
    client.sendall(question(1) + question(2)[:7])
    assert receive_frame(client) == answer(broker, 1)
    client.sendall(question(2)[7:])
    assert receive_frame(client) == answer(broker, 2)
    assert (proxy.requests, proxy.faults, proxy.connections) == ({"ApiVersions": 2}, {}, 1)


def test_a_client_that_closes_leaves_nothing_open(proxy: FaultProxy, connect: Callable[[], socket.socket]) -> None:
    client = connect()
    client.sendall(question())
    receive_frame(client)
    assert proxy.open_connections == 1
    client.close()
    until(lambda: proxy.open_connections == 0, "the link is gone")


def test_a_broker_that_is_gone_shows_as_a_reset() -> None:
    with TestBroker() as own, FaultProxy(own.bootstrap_servers) as proxy:
        with socket.create_connection((proxy.host, proxy.port), timeout=TIMEOUT_S) as client:
            client.sendall(question())
            receive_frame(client)
            own.stop()
            assert receive_all(client)[0] == b""
        assert is_reset(proxy.port)


@pytest.mark.parametrize("version", [0, 1, 9, 12])
def test_metadata_names_the_proxy(broker: TestBroker, proxy: FaultProxy, version: int) -> None:
    with RawClient((proxy.host, proxy.port)) as client:
        response = client.call(MetadataRequest(topics=[MetadataRequestTopic(name="led-back")]), version)
    assert [(one.host, one.port) for one in response.brokers] == [(proxy.host, proxy.port)]
    assert proxy.port != broker.port


@pytest.mark.parametrize("version", [0, 3, 4, 5])
def test_coordinators_are_behind_the_proxy(proxy: FaultProxy, version: int) -> None:
    with RawClient((proxy.host, proxy.port)) as client:
        found = client.call(FindCoordinatorRequest(key="group", coordinator_keys=["group"]), version)
    coordinator = found.coordinators[0] if version >= 4 else found
    assert (coordinator.host, coordinator.port) == (proxy.host, proxy.port)


def test_the_brokers_of_a_described_cluster_are_behind_the_proxy(proxy: FaultProxy) -> None:
    with RawClient((proxy.host, proxy.port)) as client:
        response = client.call(DescribeClusterRequest(), 0)
    assert [(one.host, one.port) for one in response.brokers] == [(proxy.host, proxy.port)]


@pytest.mark.parametrize(
    ("key", "version", "response"),
    [
        (0, 10, ProduceResponse(node_endpoints=[NodeEndpoint(node_id=7, host="127.0.0.1", port=1)])),
        (1, 16, FetchResponse(node_endpoints=[FetchEndpoint(node_id=7, host="127.0.0.1", port=1)])),
    ],
)
def test_a_broker_that_a_reply_hints_at_gets_an_address_of_its_own(
    proxy: FaultProxy, key: int, version: int, response: Any
) -> None:
    exchange = Exchange(connection=1, sequence=1, key=key, version=version, correlation_id=5)
    frame = b"".join(encode_response(response, version, correlation_id=5))
    rewritten = proxy._call(proxy.lead_back, exchange, frame)
    header, decoded = decode_response(type(response), version, rewritten[4:])
    (endpoint,) = decoded.node_endpoints
    assert header.correlation_id == 5
    assert (endpoint.node_id, endpoint.host) == (7, proxy.host)
    assert endpoint.port not in (1, proxy.port)
    # Nobody is behind it.
    assert is_reset(endpoint.port)


@pytest.mark.parametrize("action", every_cut(), ids=str)
def test_a_cut_is_where_and_as_it_was_asked_for(
    broker: TestBroker, proxy: FaultProxy, connect: Callable[[], socket.socket], action: Action
) -> None:
    rule = proxy.on("ApiVersions", action, nth=2)
    client = connect()
    client.sendall(question(1))
    receive_frame(client)
    client.sendall(question(2))
    data, reset = receive_all(client)
    cut = action.on_reply
    assert data == (b"" if cut is None else cut(Exchange(1, 2, 18, 0, 2), answer(broker, 2)).data)
    assert reset == ("RST" in action.detail)
    rule.wait()
    assert proxy.faults == {action.name: 1}
    # It was to happen once.
    again = connect()
    again.sendall(question(3))
    assert receive_frame(again) == answer(broker, 3)


@pytest.mark.parametrize(
    ("action", "arrives"),
    [
        (cut_request(0), 0),
        (cut_request(-1), 0),
        (cut_request(1.0), 1),
        (cut_reply(0), 1),
        (cut_reply(0, reset=True), 1),
    ],
    ids=str,
)
def test_a_request_reaches_the_broker_or_not_as_the_cut_says(
    broker: TestBroker, proxy: FaultProxy, action: Action, arrives: int
) -> None:
    topic = "reached-" + "".join(letter if letter.isalnum() else "-" for letter in str(action))
    rule = proxy.on("Metadata", action)
    with RawClient((proxy.host, proxy.port)) as client, pytest.raises(OSError):
        client.topic(topic)
    rule.wait()
    with RawClient((broker.host, broker.port)) as direct:

        def known() -> int:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
            return int(direct.call(request, 12).topics[0].error_code == ErrorCode.NONE)

        if arrives:
            until(lambda: known() == 1, "the request arrived")
        assert known() == arrives


def test_a_dropped_reply_leaves_the_connection_usable(
    broker: TestBroker, proxy: FaultProxy, connect: Callable[[], socket.socket]
) -> None:
    rule = proxy.on(18, drop_reply())
    client = connect()
    client.sendall(question(1) + question(2))
    assert receive_frame(client) == answer(broker, 2)
    rule.wait()


def test_a_reply_comes_twice(broker: TestBroker, proxy: FaultProxy, connect: Callable[[], socket.socket]) -> None:
    proxy.on("ApiVersions", duplicate_reply())
    client = connect()
    client.sendall(question(1) + question(2))
    assert [receive_frame(client) for _ in range(3)] == [answer(broker, 1), answer(broker, 1), answer(broker, 2)]


def test_a_stray_reply_comes_before_the_real_one(
    broker: TestBroker, proxy: FaultProxy, connect: Callable[[], socket.socket]
) -> None:
    proxy.on("ApiVersions", stray_reply())
    client = connect()
    client.sendall(question(1))
    stray = receive_frame(client)
    assert struct.unpack_from(">i", stray, 4)[0] != 1
    assert receive_frame(client) == answer(broker, 1)


def test_a_black_hole_stays_open_and_says_nothing(
    proxy: FaultProxy, broker: TestBroker, connect: Callable[[], socket.socket]
) -> None:
    rule = proxy.on("ApiVersions", black_hole())
    client, other = connect(), connect()
    client.sendall(question(1))
    rule.wait()
    client.sendall(question(2))
    other.sendall(question(3))
    assert receive_frame(other) == answer(broker, 3)
    client.settimeout(0.1)
    with pytest.raises(TimeoutError):
        client.recv(1)
    client.close()
    other.close()
    until(lambda: proxy.open_connections == 0, "both links are gone")


def test_a_reply_can_be_edited(proxy: FaultProxy) -> None:
    def edit(response: Any) -> None:
        response.topics[0].error_code = ErrorCode.LEADER_NOT_AVAILABLE

    proxy.on("Metadata", edit_reply(edit))
    request = MetadataRequest(topics=[MetadataRequestTopic(name="edited")])
    with RawClient((proxy.host, proxy.port)) as client:
        assert client.call(request, 9).topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert client.call(request, 9).topics[0].error_code == ErrorCode.NONE


def test_what_a_tests_own_function_does_wrong_is_raised_in_the_end(broker: TestBroker) -> None:
    def fail(exchange: Exchange, frame: bytes) -> Passage:
        raise LookupError(exchange.api)

    proxy = FaultProxy(broker.bootstrap_servers).start()
    proxy.on(None, Action("fail", on_request=fail))
    with socket.create_connection((proxy.host, proxy.port), timeout=TIMEOUT_S) as client:
        client.sendall(question())
        assert receive_all(client) == (b"", True)
    with pytest.raises(ExceptionGroup) as caught:
        proxy.close()
    assert caught.group_contains(ActionFailedError, match=r"ApiVersions v0, request 1 of connection 1: LookupError")


def test_rules_count_requests_of_their_api_over_all_connections(
    proxy: FaultProxy, connect: Callable[[], socket.socket]
) -> None:
    rule = proxy.on("ApiVersions", cut_reply(), nth=2, times=2)
    never = proxy.on("Fetch", cut_request(), times=None)
    assert [is_answered(connect()) for _ in range(4)] == [True, False, False, True]
    assert (rule.seen, rule.done, never.done) == (4, 2, 0)


def test_every_request_from_the_nth_on_can_be_meant(proxy: FaultProxy, connect: Callable[[], socket.socket]) -> None:
    proxy.on(None, cut_reply(), nth=3, times=None)
    assert [is_answered(connect()) for _ in range(5)] == [True, True, False, False, False]
    proxy.calm()
    assert is_answered(connect())


def is_answered(client: socket.socket) -> bool:
    client.sendall(question())
    return client.recv(1) != b""


def test_a_fault_that_its_request_does_not_live_to_see_befalls_another(
    proxy: FaultProxy, connect: Callable[[], socket.socket]
) -> None:
    proxy.on("ApiVersions", cut_reply(), nth=2)
    second = proxy.on("ApiVersions", cut_reply(after=6), nth=3)
    client = connect()
    client.sendall(b"".join(map(question, range(1, 6))))
    assert len(receive_all(client)[0]) > 6
    until(lambda: proxy.open_connections == 0, "the link is gone")
    assert (second.seen, second.done) == (5, 0)
    again = connect()
    again.sendall(question())
    assert len(receive_all(again)[0]) == 6
    assert second.done == 1


def test_an_unknown_api_is_refused(proxy: FaultProxy) -> None:
    with pytest.raises(ValueError, match="there is no API 'produce'"):
        proxy.on("produce", cut_reply())


def test_connections_are_delayed_each_for_itself_and_frames_overlap(
    proxy: FaultProxy, connect: Callable[[], socket.socket]
) -> None:
    proxy.delay(request_ms=(100, 200), reply_ms=2500, connection=1)
    slow = connect()
    start = time.monotonic()
    slow.sendall(b"".join(map(question, range(20))))
    quick = connect()
    quick.sendall(question())
    receive_frame(quick)
    assert time.monotonic() - start < 2.6
    for _ in range(20):
        receive_frame(slow)
    # One after another they would take more than fifty seconds.
    assert 2.6 <= time.monotonic() - start < 25


def test_chance_is_the_same_for_the_same_seed(proxy: FaultProxy) -> None:
    exchanges = [Exchange(connection, 1, 18, 0, 1) for connection in range(50)]

    def drawn(seed: int) -> list[tuple[float, float]]:
        proxy.calm()
        proxy.delay(request_ms=(0, 100), reply_ms=(0, 100), seed=seed)
        return [proxy.delays_ms(exchange) for exchange in exchanges]

    first = drawn(1)
    assert first == drawn(1)
    assert first != drawn(2)
    assert len(set(first)) == len(exchanges)
    proxy.random_faults(seed=1, rate=0.5)
    chosen = [proxy.choose(exchange) for exchange in exchanges]
    assert list(map(describe, chosen)) == [describe(proxy.choose(exchange)) for exchange in exchanges]
    assert 10 < sum(fault is not None for fault in chosen) < 40


def describe(fault: Any) -> str:
    return "nothing" if fault is None else str(fault.action)


def test_a_single_request_can_be_delayed(proxy: FaultProxy, connect: Callable[[], socket.socket]) -> None:
    rule = proxy.on("ApiVersions", delay(request_ms=100, reply_ms=100))
    client = connect()
    start = time.monotonic()
    client.sendall(question())
    receive_frame(client)
    assert time.monotonic() - start >= 0.2
    rule.wait()
    assert rule.done == 1


def test_bytes_are_throttled(proxy: FaultProxy, connect: Callable[[], socket.socket], broker: TestBroker) -> None:
    size = len(answer(broker))
    proxy.throttle(size * 4)
    client = connect()
    start = time.monotonic()
    client.sendall(question())
    receive_frame(client)
    assert time.monotonic() - start >= 0.2
    proxy.throttle(None)


def test_connections_are_refused_and_taken_again_at_the_same_address(
    broker: TestBroker, proxy: FaultProxy, connect: Callable[[], socket.socket]
) -> None:
    old = connect()
    old.sendall(question(1))
    receive_frame(old)
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        connect()
    old.sendall(question(2))
    assert receive_frame(old) == answer(broker, 2)
    proxy.accept()
    new = connect()
    new.sendall(question(3))
    assert receive_frame(new) == answer(broker, 3)


def test_a_frozen_proxy_accepts_and_never_answers_until_it_is_thawed(
    broker: TestBroker, proxy: FaultProxy, connect: Callable[[], socket.socket]
) -> None:
    old = connect()
    proxy.freeze()
    new = connect()
    for client in (old, new):
        client.sendall(question(1))
        client.settimeout(0.05)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(TIMEOUT_S)
    proxy.thaw()
    assert receive_frame(old) == receive_frame(new) == answer(broker, 1)


def test_a_frozen_proxy_does_not_pile_up_what_it_is_sent(
    proxy: FaultProxy, connect: Callable[[], socket.socket]
) -> None:
    proxy.freeze()
    client = connect()
    client.settimeout(0.5)
    # Far more than the sockets take.
    with pytest.raises(TimeoutError):
        client.sendall(question() * (64_000_000 // len(question())))
    assert proxy.requests["ApiVersions"] < 10_000


@pytest.mark.parametrize("reset", [False, True])
def test_all_connections_can_be_cut(proxy: FaultProxy, connect: Callable[[], socket.socket], reset: bool) -> None:
    clients = [connect() for _ in range(3)]
    for client in clients:
        client.sendall(question())
        receive_frame(client)
    # A client that closes when it is told to saves the proxy a wait.
    closing = [threading.Thread(target=lambda one=client: ends.append(receive_all(one))) for client in clients]
    ends: list[tuple[bytes, bool]] = []
    for thread in closing:
        thread.start()
    assert proxy.cut(reset=reset) == 3
    for thread in closing:
        thread.join()
    assert ends == [(b"", reset)] * 3
    assert proxy.open_connections == 0


def test_bytes_that_are_no_frames_end_the_connection(proxy: FaultProxy, connect: Callable[[], socket.socket]) -> None:
    client = connect()
    client.sendall(b"\xff" * 100)
    assert receive_all(client) == (b"", True)
    assert "carries no frames" in proxy.report()


def test_requests_without_a_reply_do_not_confuse_the_proxy(proxy: FaultProxy) -> None:
    with RawClient((proxy.host, proxy.port)) as client:
        client.topic("no-reply")
        request = ProduceRequest(acks=0, timeout_ms=1000, topic_data=[])
        encoded = b"".join(encode_request(request, 9, correlation_id=100, client_id="raw"))
        client._socket.sendall(encoded)
        assert client.call(MetadataRequest(topics=None), 9).brokers[0].port == proxy.port


def test_a_test_that_fails_is_told_what_the_proxy_did(broker: TestBroker) -> None:
    def story() -> None:
        with FaultProxy(broker.bootstrap_servers) as proxy:
            proxy.on("ApiVersions", cut_reply(after=6))
            with RawClient((proxy.host, proxy.port)) as client:
                client.versions()

    with pytest.raises(ConnectionError) as caught:
        story()
    assert any("cut_reply after 6 bytes, FIN: ApiVersions v0" in note for note in caught.value.__notes__)


def test_no_socket_is_left_whatever_happened(broker: TestBroker) -> None:
    def story() -> None:
        with FaultProxy(broker.bootstrap_servers) as proxy:
            for action in (*every_cut(), black_hole(), drop_reply()):
                proxy.on(None, action)
                with socket.create_connection((proxy.host, proxy.port), timeout=0.1) as client, suppress(TimeoutError):
                    client.sendall(question())
                    receive_all(client)
            # One is cut by the proxy's end.
            left = socket.create_connection((proxy.host, proxy.port), timeout=TIMEOUT_S)
            proxy.refuse()
        with left:
            assert receive_all(left)[0] == b""

    def open_files() -> int:
        return len(os.listdir("/dev/fd"))

    before = open_files()
    story()
    # The broker takes a moment to notice.
    until(lambda: open_files() <= before, "all sockets are closed")
