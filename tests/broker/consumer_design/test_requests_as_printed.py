"""Those of 002's requests that are still as it prints them, byte for byte."""

import socket
import struct

from ottla.testing import TestBroker
from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.crowd import Company
from tests.broker.consumer_design.line import Address, Line

CONSUMER_METADATA, HEARTBEAT, OFFSET_COMMIT = 10, 12, 8


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def exchange(address: Address, key: int, version: int, body: bytes) -> bytes:
    """What a request of these bytes is answered with, without size and correlation id."""
    frame = struct.pack(">hhi", key, version, 7) + text("as-printed") + body
    with socket.create_connection(address, timeout=10) as connection, connection.makefile("rb") as stream:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        size, correlation_id = struct.unpack(">ii", stream.read(8))
        assert correlation_id == 7
        return stream.read(size - 4)


def test_consumer_metadata(broker: TestBroker, company: Company) -> None:
    answer = exchange(company.address, CONSUMER_METADATA, 0, text("g"))
    assert answer == struct.pack(">hi", 0, 1) + text(broker.host) + struct.pack(">i", broker.port)


def test_heartbeat(company: Company) -> None:
    (member,) = company.settled("classic", 1)

    def code(generation: int, member_id: str) -> ErrorCode:
        body = text("g") + struct.pack(">i", generation) + text(member_id)
        return ErrorCode(*struct.unpack(">h", exchange(company.address, HEARTBEAT, 0, body)))

    assert code(member.generation, member.member_id) is ErrorCode.NONE
    assert code(member.generation + 1, member.member_id) is ErrorCode.ILLEGAL_GENERATION
    assert code(member.generation, "nobody") is ErrorCode.UNKNOWN_MEMBER_ID


def test_offset_commit_version_1(company: Company, line: Line) -> None:
    (member,) = company.settled("classic", 1)
    partition = struct.pack(">iqq", 2, 42, -1) + text("noted")
    topics = struct.pack(">i", 1) + text("t") + struct.pack(">i", 1) + partition
    body = text("g") + struct.pack(">i", member.generation) + text(member.member_id) + topics
    answer = exchange(company.address, OFFSET_COMMIT, 1, body)
    assert answer == struct.pack(">i", 1) + text("t") + struct.pack(">iih", 1, 2, ErrorCode.NONE)
    assert line.committed("g", partition=2) == (42, "noted")
