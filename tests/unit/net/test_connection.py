"""The client's side of a connection: negotiation, correlation, pipelining, and what happens when it ends."""

import asyncio
import errno
import os
import struct
from typing import Any

import pytest

from ottla.net import (
    Connection,
    ConnectionLostError,
    MalformedReplyError,
    Reply,
    RequestTimedOutError,
    ServerConnection,
)
from ottla.net.negotiate import BEFORE_API_VERSIONS
from ottla.wire import api
from ottla.wire.api.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.api.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.api.metadata import MetadataRequest, MetadataResponse
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.errors import KafkaError, ProtocolError
from ottla.wire.frame import decode_request, encode_response, read_request_prefix
from ottla.wire.schema import Versions
from tests.waiting import eventually

from .loops import LoopFactory, each_loop, run
from .peers import listening, metadata, offering

pytestmark = each_loop

NEWEST = {0: 13, 3: 13, 18: 5}


def test_the_highest_version_that_both_have_is_used(loop_factory: LoopFactory) -> None:
    asked: list[int] = []

    def then(key: int, version: int, correlation_id: int) -> Reply:
        asked.append(version)
        return metadata(key, version, correlation_id)

    async def story() -> None:
        async with listening(offering({0: 13, 3: 7, 18: 5}, then)) as listener:
            connection = await Connection.open(*listener.address)
            assert connection.offer[3] == Versions(0, 7)
            response = await connection.request(MetadataRequest())
            assert isinstance(response, MetadataResponse)
            await connection.request(MetadataRequest(), version=1)
            assert asked == [7, 1]
            await connection.close()

    run(loop_factory, story())


@pytest.mark.parametrize("newest", [0, 2, 3], ids=lambda version: f"ApiVersions v{version}")
def test_an_older_broker_is_asked_again_in_a_version_it_knows(loop_factory: LoopFactory, newest: int) -> None:
    async def story() -> None:
        async with listening(offering({3: 1, 18: newest}, metadata)) as listener:
            connection = await Connection.open(*listener.address)
            assert connection.version_of(MetadataRequest) == 1
            assert connection.version_of(ApiVersionsRequest) == newest
            await connection.close()

    run(loop_factory, story())


def test_a_refusal_that_names_no_version_is_followed_by_version_0(loop_factory: LoopFactory) -> None:
    asked: list[int] = []

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        _, version, correlation_id = read_request_prefix(frame)
        asked.append(version)
        response = ApiVersionsResponse(error_code=35 if version else 0)
        if not version:
            response.api_keys = [ApiVersion(api_key=18)]
        return encode_response(response, 0, correlation_id=correlation_id)

    async def story() -> None:
        async with listening(handler) as listener:
            connection = await Connection.open(*listener.address)
            assert asked == [5, 0]
            await connection.close()

    run(loop_factory, story())


def test_a_broker_that_does_not_know_the_question_is_taken_for_an_old_one(loop_factory: LoopFactory) -> None:
    asked: list[tuple[int, int]] = []

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        key, version, correlation_id = read_request_prefix(frame)
        asked.append((key, version))
        if key == 18:
            raise ProtocolError("what is this?")
        return metadata(key, version, correlation_id)

    async def story() -> None:
        async with listening(handler) as listener:
            connection = await Connection.open(*listener.address)
            assert connection.offer is BEFORE_API_VERSIONS
            await connection.request(MetadataRequest())
            assert asked == [(18, 5), (18, 5), (18, 5), (3, 0)]
            await connection.close()

    run(loop_factory, story())


def test_a_broker_that_is_known_to_tell_its_versions_is_not_taken_for_an_old_one(loop_factory: LoopFactory) -> None:
    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        raise ProtocolError("on purpose")

    async def story() -> None:
        async with listening(handler) as listener:
            with pytest.raises(ConnectionLostError, match="closed the connection"):
                await Connection.open(*listener.address, may_be_old=False)

    run(loop_factory, story())


def test_a_connection_that_is_cut_twice_while_versions_are_asked_for_makes_no_old_broker(
    loop_factory: LoopFactory,
) -> None:
    answer = offering(NEWEST)
    cuts = iter([True, True])

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        if next(cuts, False):
            raise ProtocolError("on purpose")
        reply: Reply = answer(connection, frame)
        return reply

    async def story() -> None:
        async with listening(handler) as listener:
            connection = await Connection.open(*listener.address)
            assert connection.offer[3].last == NEWEST[3]
            await connection.close()

    run(loop_factory, story())


def test_a_peer_that_is_no_broker_is_not_taken_for_an_old_one(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        async with listening(lambda connection, frame: [b"HTTP/1.1 400 Bad Request\r\n"]) as listener:
            with pytest.raises(ConnectionLostError, match="sent a frame of"):
                await Connection.open(*listener.address, max_response_bytes=1 << 26)

    run(loop_factory, story())


def test_an_api_that_the_broker_does_not_offer_is_named(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        async with listening(offering(NEWEST)) as listener:
            connection = await Connection.open(*listener.address)
            with pytest.raises(KafkaError, match=r"UNSUPPORTED_VERSION: .* does not offer Fetch"):
                await connection.request(FetchRequest())
            await connection.close()

    run(loop_factory, story())


def test_requests_are_pipelined_and_each_gets_its_own_reply(loop_factory: LoopFactory) -> None:
    arrived: list[int] = []
    gate = asyncio.Event()

    def then(key: int, version: int, correlation_id: int) -> Reply:
        arrived.append(correlation_id)

        async def later() -> Any:
            await gate.wait()
            return metadata(key, version, correlation_id)

        return later()

    async def story() -> None:
        async with listening(offering(NEWEST, then)) as listener:
            connection = await Connection.open(*listener.address)
            requests = [asyncio.ensure_future(connection.request(MetadataRequest())) for _ in range(5)]
            await eventually(lambda: listener.bytes_buffered > 0, "later ones wait at the broker")
            assert connection.pending_count == 5
            gate.set()
            controllers = [response.controller_id for response in await asyncio.gather(*requests)]
            assert controllers == arrived
            assert len(set(controllers)) == 5
            await connection.close()

    run(loop_factory, story())


def test_replies_nobody_asked_for_are_logged_and_ignored(
    loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture
) -> None:
    def then(key: int, version: int, correlation_id: int) -> Reply:
        stray = encode_response(MetadataResponse(), version, correlation_id=correlation_id + 1000)
        right: Any = metadata(key, version, correlation_id)
        return [*stray, *right, *right]

    async def story() -> None:
        async with listening(offering(NEWEST, then)) as listener:
            connection = await Connection.open(*listener.address)
            for _ in range(2):
                await connection.request(MetadataRequest())
            assert not connection.closed
            await connection.close()

    run(loop_factory, story())
    ignored = [entry.getMessage() for entry in caplog.records if "not pending" in entry.getMessage()]
    assert len(ignored) >= 3


def test_a_reply_that_makes_no_sense_fails_its_request_alone(loop_factory: LoopFactory) -> None:
    count = 0

    def then(key: int, version: int, correlation_id: int) -> Reply:
        nonlocal count
        count += 1
        return [struct.pack(">iiB", 5, correlation_id, 0)] if count == 1 else metadata(key, version, correlation_id)

    async def story() -> None:
        async with listening(offering(NEWEST, then)) as listener:
            connection = await Connection.open(*listener.address)
            with pytest.raises(MalformedReplyError):
                await connection.request(MetadataRequest())
            await connection.request(MetadataRequest())
            await connection.close()

    run(loop_factory, story())


def test_a_reply_that_nobody_can_read_for_an_unknown_reason_leaves_nobody_waiting(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_arguments: object) -> None:
        raise TypeError("a mistake in the client")

    async def story() -> None:
        async with listening(offering(NEWEST, metadata)) as listener:
            connection = await Connection.open(*listener.address)
            with monkeypatch.context() as patched:
                patched.setattr("ottla.net.connection.decode_response", fail)
                with pytest.raises(KafkaError, match="by this client's mistake: TypeError") as caught:
                    await connection.request(MetadataRequest())
                assert not caught.value.retriable
            await connection.request(MetadataRequest())
            await connection.close()

    run(loop_factory, story())
    assert [entry.exc_info is not None for entry in caplog.records] == [True], "it is told with where it happened"


def test_a_reply_of_many_megabytes_arrives_whole(loop_factory: LoopFactory) -> None:
    records = bytes(range(256)) * 80_000
    partition = PartitionData(records=records)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="a", partitions=[partition])])

    def then(key: int, version: int, correlation_id: int) -> Reply:
        return encode_response(response, version, correlation_id=correlation_id)

    async def story() -> None:
        async with listening(offering({**NEWEST, 1: 11}, then)) as listener:
            connection = await Connection.open(*listener.address)
            for _ in range(2):
                found = await connection.request(FetchRequest())
                assert found.responses[0].partitions[0].records == records
            await connection.close()

    run(loop_factory, story())


def test_no_answer_in_time_fails_the_request_and_gives_the_connection_up(loop_factory: LoopFactory) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        async with listening(offering(NEWEST, lambda *prefix: never())) as listener:
            connection = await Connection.open(*listener.address)
            patient = asyncio.ensure_future(connection.request(MetadataRequest()))
            await asyncio.sleep(0)
            with pytest.raises(RequestTimedOutError, match="did not answer Metadata v13 in 50 ms"):
                await connection.request(MetadataRequest(), timeout_ms=50)
            with pytest.raises(ConnectionLostError):
                await patient
            assert connection.closed
            with pytest.raises(ConnectionLostError):
                await connection.request(MetadataRequest())

    run(loop_factory, story())


def test_all_that_is_pending_fails_when_the_broker_closes(loop_factory: LoopFactory) -> None:
    def then(key: int, version: int, correlation_id: int) -> Reply:
        raise ProtocolError("on purpose")

    async def story() -> None:
        async with listening(offering(NEWEST, then)) as listener:
            connection = await Connection.open(*listener.address)
            results = await asyncio.gather(
                *[connection.request(MetadataRequest()) for _ in range(3)], return_exceptions=True
            )
            assert [type(result) for result in results] == [ConnectionLostError] * 3
            assert all(isinstance(result, KafkaError) and result.retriable for result in results)
            assert connection.pending_count == 0

    run(loop_factory, story())


def test_closing_fails_what_is_pending(loop_factory: LoopFactory) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        async with listening(offering(NEWEST, lambda *prefix: never())) as listener:
            connection = await Connection.open(*listener.address)
            pending = asyncio.ensure_future(connection.request(MetadataRequest()))
            await asyncio.sleep(0.01)
            await connection.close()
            with pytest.raises(ConnectionLostError, match="closed on this side"):
                await pending
            await connection.close()

    run(loop_factory, story())


def test_a_request_that_was_given_up_leaves_the_connection_usable(loop_factory: LoopFactory) -> None:
    async def later(key: int, version: int, correlation_id: int) -> Any:
        await asyncio.sleep(0.05)
        return metadata(key, version, correlation_id)

    async def story() -> None:
        async with listening(offering(NEWEST, later)) as listener:
            connection = await Connection.open(*listener.address)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(connection.request(MetadataRequest()), 0.01)
            await connection.request(MetadataRequest())
            assert connection.pending_count == 0
            await connection.close()

    run(loop_factory, story())


def test_a_request_without_a_reply_is_only_told(loop_factory: LoopFactory) -> None:
    told: list[Any] = []

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        key, version, _ = read_request_prefix(frame)
        if key == 0:
            told.append(decode_request(api.request(0), version, frame)[1])
            return None
        reply: Reply = offering(NEWEST, metadata)(connection, frame)
        return reply

    async def story() -> None:
        async with listening(handler) as listener:
            connection = await Connection.open(*listener.address)
            await connection.tell(ProduceRequest(acks=0))
            await connection.request(MetadataRequest())
            assert told == [ProduceRequest(acks=0)]
            await connection.close()

    run(loop_factory, story())


def test_a_broker_that_does_not_read_is_given_up_though_no_reply_is_waited_for(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        handler = offering(NEWEST)
        done = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            writer.writelines(handler(None, await reader.readexactly(size)))
            await done.wait()
            writer.transport.abort()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1024)
        connection = await Connection.open(*server.sockets[0].getsockname(), timeout_ms=300)
        topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(records=bytes(2**26))])
        request = ProduceRequest(acks=0, topic_data=[topic])
        await connection.tell(request, version=9)
        with pytest.raises(ConnectionLostError, match="did not read what it was sent in 300 ms"):
            await connection.tell(request, version=9)
        assert connection.closed
        done.set()
        server.close()
        await server.wait_closed()

    run(loop_factory, story())


def test_nobody_there_is_said_with_the_address(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        async with listening(offering(NEWEST)) as listener:
            host, port = listener.address
        refused = os.strerror(errno.ECONNREFUSED)
        with pytest.raises(ConnectionLostError, match=f"cannot connect to {host}:{port}: {refused}$"):
            await Connection.open(host, port)

    run(loop_factory, story())


@pytest.mark.parametrize("host", ["broker..example", "b" * 80])
def test_a_name_that_no_host_can_have_is_said_with_the_address(loop_factory: LoopFactory, host: str) -> None:
    async def story() -> None:
        with pytest.raises(ConnectionLostError, match=f"cannot connect to {host}:9092"):
            await Connection.open(host, 9092)

    run(loop_factory, story())


def test_a_broker_that_accepts_and_says_nothing_is_given_up(loop_factory: LoopFactory) -> None:
    def never(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        waiter: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        connection.interrupt = waiter.cancel
        return waiter

    async def story() -> None:
        async with listening(never) as listener:
            with pytest.raises(KafkaError, match="50 ms"):
                await Connection.open(*listener.address, timeout_ms=50)
            await eventually(lambda: listener.connection_count == 0, "the connection is closed")

    run(loop_factory, story())


def test_a_bad_size_after_a_good_reply_fails_what_is_pending_at_once(loop_factory: LoopFactory) -> None:
    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        return [(4).to_bytes(4, "big") + bytes(4) + (-5).to_bytes(4, "big", signed=True)]

    async def story() -> None:
        async with listening(handler) as listener:
            with pytest.raises(KafkaError, match="a frame of -5 bytes"):
                await Connection.open(*listener.address, timeout_ms=60_000)

    run(loop_factory, story())
