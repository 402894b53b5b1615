"""Conversations as the oldest clients have them: over a plain socket, in version 0, without any handshake."""

import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.record.kernels import Record
from ottla.record.legacy import build_message_set, read_messages
from ottla.testing import TestBroker
from ottla.wire.api.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.compile import decode
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import encode_request
from tests.interop.raw_client import RawClient


@pytest.fixture
def connection(broker: TestBroker) -> Iterator[socket.socket]:
    with socket.create_connection((broker.host, broker.port), timeout=10) as opened:
        yield opened


def receive(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", read_exactly(connection, 4))
    return read_exactly(connection, size)


def read_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        assert more, "the broker closed the connection"
        data += more
    return data


def closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_the_guides_metadata_example_may_be_the_first_bytes_on_a_connection(
    connection: socket.socket, client: RawClient
) -> None:
    client.topic("there")
    connection.sendall(bytes.fromhex("00000012 0003 0000 00000001 0004 74657374 ffffffff"))
    reply = receive(connection)
    assert reply[:4] == bytes.fromhex("00000001")
    response = decode(MetadataResponse, 0, reply[4:])
    assert [topic.name for topic in response.topics] == ["there"], "null asks for all topics"
    assert response.brokers[0].port == connection.getpeername()[1]


def test_a_client_of_08_writes_and_reads_without_a_handshake(client: RawClient) -> None:
    # Metadata v0 creates the topic; the guide says so of auto.create.topics.enable.
    response = client.call(MetadataRequest(topics=[MetadataRequestTopic(name="old")]), 0)
    assert response.topics[0].error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)
    messages = [Record(index, -1, b"k%d" % index, b"v%d" % index) for index in range(3)]
    assert client.produce("old", build_message_set(messages, 0), version=0) == 0
    assert client.produce("old", build_message_set(messages, 0), version=0) == 3
    found = read_messages(client.fetch("old", 0, version=0), 1 << 20)
    assert [(record.offset, record.key, record.value) for record in found] == [
        (offset, b"k%d" % (offset % 3), b"v%d" % (offset % 3)) for offset in range(6)
    ]


def test_requests_of_one_connection_are_answered_in_order(connection: socket.socket) -> None:
    for number in range(50):
        # A long poll of an empty fetch in between would overtake itself if order were not kept.
        connection.sendall(b"".join(encode_request(ApiVersionsRequest(), 0, correlation_id=number, client_id=None)))
    assert [struct.unpack(">i", receive(connection)[:4])[0] for _ in range(50)] == list(range(50))


def test_acks_0_has_no_reply(connection: socket.socket, client: RawClient) -> None:
    client.topic("quiet")
    data = [PartitionProduceData(index=0, records=build_message_set([Record(0, -1, None, b"v")], 0))]
    request = ProduceRequest(acks=0, timeout_ms=100, topic_data=[TopicProduceData(name="quiet", partition_data=data)])
    connection.sendall(b"".join(encode_request(request, 0, correlation_id=1, client_id=None)))
    connection.sendall(b"".join(encode_request(ApiVersionsRequest(), 0, correlation_id=2, client_id=None)))
    assert receive(connection)[:4] == struct.pack(">i", 2), "the first reply is that of the second request"
    assert client.offset("quiet", -1) == 1


def test_acks_0_that_fails_closes_the_connection(connection: socket.socket) -> None:
    data = [PartitionProduceData(index=0, records=build_message_set([Record(0, -1, None, b"v")], 0))]
    request = ProduceRequest(acks=0, timeout_ms=100, topic_data=[TopicProduceData(name="nowhere", partition_data=data)])
    connection.sendall(b"".join(encode_request(request, 0, correlation_id=1, client_id=None)))
    assert closed(connection)


def test_an_unsupported_version_of_api_versions_is_answered_in_v0(connection: socket.socket) -> None:
    connection.sendall(struct.pack(">ihhih", 10, 18, 99, 7, -1))
    reply = receive(connection)
    response = decode(ApiVersionsResponse, 0, reply[4:])
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(item.api_key, item.min_version, item.max_version) for item in response.api_keys] == [(18, 0, 5)]


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">hhih", 3, 99, 1, -1),
        struct.pack(">hhih", 4, 0, 1, -1),
        struct.pack(">hhih", 999, 0, 1, -1),
        struct.pack(">hh", 3, 0),
        struct.pack(">hhih", 3, 0, 1, -1) + b"\x7f\xff\xff\xff",
        struct.pack(">hhih", 3, -1, 1, -1),
    ],
    ids=["version", "key of brokers", "unknown key", "short header", "two billion topics", "negative version"],
)
def test_what_cannot_be_answered_closes_the_connection(connection: socket.socket, frame: bytes) -> None:
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    assert closed(connection)


@pytest.mark.parametrize("size", [100 * 1024 * 1024 + 1, -1, 2**31 - 1])
def test_a_frame_out_of_bounds_closes_the_connection_before_its_bytes_come(
    connection: socket.socket, size: int
) -> None:
    connection.sendall(struct.pack(">i", size))
    assert closed(connection)


def test_stray_bytes_after_a_request_are_ignored(client: RawClient, connection: socket.socket) -> None:
    frame = b"".join(encode_request(MetadataRequest(topics=None), 9, correlation_id=5, client_id="c"))[4:] + b"\0\0\0"
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    assert receive(connection)[:4] == struct.pack(">i", 5)


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a b", "1"), ("-a", "1"), ("ok", ""), ("ok", "1.0-")])
def test_a_client_software_name_of_bad_form_is_refused(client: RawClient, name: str, version: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert client.call(request, 3).error_code == ErrorCode.INVALID_REQUEST


def test_a_client_that_expects_another_cluster_or_node_is_sent_back(client: RawClient) -> None:
    named: dict[str, Any] = {"client_software_name": "me", "client_software_version": "1"}
    assert client.call(ApiVersionsRequest(**named, cluster_id="other"), 5).error_code == ErrorCode.REBOOTSTRAP_REQUIRED
    assert client.call(ApiVersionsRequest(**named, node_id=77), 5).error_code == ErrorCode.REBOOTSTRAP_REQUIRED
    assert client.call(ApiVersionsRequest(**named, node_id=1), 5).error_code == ErrorCode.NONE


def test_every_api_and_version_that_is_advertised_is_answered(client: RawClient) -> None:
    from ottla.wire import api

    for key, versions in client.versions().items():
        for version in versions:
            if key != 0:
                assert client.call(api.request(key)(), version) is not None, (key, version)
