"""A Kafka client of a hundred lines: blocking, one connection, and the record bytes just as they are on the wire."""

import socket
from types import TracebackType
from typing import Any, Self

from ottla.record import Batch, batches
from ottla.wire import api
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.api.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request
from ottla.wire.schema import schema_of
from tests.interop.frames import FrameReader

TIMEOUT_S = 30
LARGEST_FRAME = 1 << 26
EARLIEST, LATEST = -2, -1


class BrokerError(Exception):
    """The broker answered with an error."""


class RawClient:
    """Speaks to one broker, in the versions that the caller names. All topics have their data in partition 0."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=TIMEOUT_S)
        self._reader = FrameReader(LARGEST_FRAME)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def call(self, request: object, version: int) -> Any:
        """Send a request and wait for its response."""
        self._correlation_id += 1
        buffers = encode_request(request, version, correlation_id=self._correlation_id, client_id="raw")
        self._socket.sendall(b"".join(buffers))
        frames: list[bytes] = []
        while not frames:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError(f"the broker closed the connection after {type(request).__name__} v{version}")
            frames = self._reader.feed(data)
        key = schema_of(type(request)).key
        assert key is not None
        header, response = decode_response(api.response(key), version, frames[0])
        assert header.correlation_id == self._correlation_id
        return response

    def versions(self) -> dict[int, range]:
        """The versions of each API that the broker has, by API key."""
        response = self.call(ApiVersionsRequest(), 0)
        check(response.error_code)
        return {item.api_key: range(item.min_version, item.max_version + 1) for item in response.api_keys}

    def topic(self, name: str) -> MetadataResponseTopic:
        """What the broker tells of a topic, which it creates if need be."""
        response = self.call(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12)
        topic: MetadataResponseTopic = response.topics[0]
        check(topic.error_code)
        return topic

    def produce(self, topic: str, records: bytes, version: int = 9) -> int:
        """Append records, and return the offset that they got."""
        data = [PartitionProduceData(index=0, records=records)]
        request = ProduceRequest(
            acks=-1, timeout_ms=TIMEOUT_S * 1000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
        )
        result = self.call(request, version).responses[0].partition_responses[0]
        check(result.error_code)
        offset: int = result.base_offset
        return offset

    def fetch(self, topic: str, offset: int, version: int = 11) -> memoryview:
        """The record bytes that the broker answers with, perhaps none."""
        partition = FetchPartition(fetch_offset=offset, partition_max_bytes=LARGEST_FRAME // 2)
        wanted = FetchTopic(topic=topic, partitions=[partition])
        if version >= 13:
            wanted.topic_id = self.topic(topic).topic_id
        request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=LARGEST_FRAME // 2, topics=[wanted])
        result = self.call(request, version).responses[0].partitions[0]
        check(result.error_code)
        return memoryview(result.records or b"")

    def read_log(self, topic: str) -> bytes:
        """All batches of a topic, fetched in as many requests as it takes."""
        run: list[memoryview] = []
        offset, end = self.offset(topic, EARLIEST), self.offset(topic, LATEST)
        while offset < end:
            run.append(self.fetch(topic, offset))
            for batch in batches(run[-1]):
                assert isinstance(batch, Batch), f"{batch} is no batch"
                offset = batch.next_offset
        return b"".join(run)

    def offset(self, topic: str, timestamp: int) -> int:
        """The offset that belongs to a time, or to EARLIEST or LATEST."""
        wanted = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
        result = self.call(request, 1).topics[0].partitions[0]
        check(result.error_code)
        offset: int = result.offset
        return offset


def check(error_code: int) -> None:
    """Raise BrokerError unless all is well."""
    if error_code:
        raise BrokerError(ErrorCode(error_code).name)
