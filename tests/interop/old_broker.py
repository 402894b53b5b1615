"""A broker of Kafka's 0.9 or 0.10 days, just enough of one for a client to hand over and to be handed message sets."""

import socketserver
import sys
import threading
from collections import defaultdict
from types import TracebackType
from typing import Any, Self

from ottla.wire import api
from ottla.wire.api.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.api.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.api.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.api.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.api.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_request, encode_response, read_request_prefix
from tests.interop.frames import FrameReader

# Produce, Fetch, Metadata, FindCoordinator and ApiVersions as Kafka 0.10.0 had them.
VERSIONS = {0: 2, 1: 2, 3: 1, 10: 0, 18: 0}
FIRST_OFFSET = 0


class OldBroker:
    """Keeps what is produced to each topic, and serves each topic what the test puts there."""

    def __init__(self) -> None:
        self.produced: dict[str, list[bytes]] = defaultdict(list)
        self.served: dict[str, bytes] = {}
        self.asked: set[tuple[int, int]] = set()
        """The API keys and versions that clients have used."""
        self._failures: list[BaseException] = []
        self._closing = threading.Event()
        broker = self

        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                reader = FrameReader(1 << 26)
                while data := self.request.recv(1 << 16):
                    for frame in reader.feed(data):
                        self.request.sendall(broker._answer(frame))

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                error = sys.exception()
                # A client may leave in the middle of an answer.
                if error is not None and not isinstance(error, ConnectionError):
                    broker._failures.append(error)

        self._server = Server(("127.0.0.1", 0), Connection)
        self.address: tuple[str, int] = ("127.0.0.1", self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        assert self._failures == []

    def _answer(self, frame: bytes) -> bytes:
        key, version, correlation_id = read_request_prefix(frame)
        self.asked.add((key, version))
        if key == 18 and version > VERSIONS[key]:
            # In this one case the client cannot know better, and is told in the oldest version.
            refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
            return b"".join(encode_response(refusal, 0, correlation_id=correlation_id))
        assert version <= VERSIONS[key], f"{api.api_name(key)} v{version} is newer than this broker"
        _, request = decode_request(api.request(key), version, frame)
        return b"".join(encode_response(self._handle(request), version, correlation_id=correlation_id))

    def _handle(self, request: Any) -> object:
        match request:
            case ApiVersionsRequest():
                ranges = [ApiVersion(api_key=key, max_version=last) for key, last in VERSIONS.items()]
                return ApiVersionsResponse(api_keys=ranges)
            case MetadataRequest():
                return self._metadata([topic.name for topic in request.topics or []])
            case FindCoordinatorRequest():
                # There are no groups here, but librdkafka asks, and takes it for a sign of a broker that knows lz4.
                return FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
            case ProduceRequest():
                return ProduceResponse(responses=[self._append(topic) for topic in request.topic_data])
            case FetchRequest():
                return FetchResponse(responses=[self._read(topic, request.max_wait_ms) for topic in request.topics])
        raise AssertionError(f"{request} was not expected")

    def _metadata(self, names: list[str | None]) -> MetadataResponse:
        host, port = self.address
        topics = [
            MetadataResponseTopic(
                name=name, partitions=[MetadataResponsePartition(leader_id=1, replica_nodes=[1], isr_nodes=[1])]
            )
            for name in names
        ]
        return MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host=host, port=port)], topics=topics)

    def _append(self, topic: Any) -> TopicProduceResponse:
        (partition,) = topic.partition_data
        self.produced[topic.name].append(bytes(partition.records))
        return TopicProduceResponse(name=topic.name, partition_responses=[PartitionProduceResponse()])

    def _read(self, topic: Any, max_wait_ms: int) -> FetchableTopicResponse:
        (partition,) = topic.partitions
        records = self.served.get(topic.topic, b"")
        if partition.fetch_offset > FIRST_OFFSET:
            self._closing.wait(max_wait_ms / 1000)
            records = b""
        data = PartitionData(high_watermark=1 << 40, records=records)
        return FetchableTopicResponse(topic=topic.topic, partitions=[data])
