"""A client that costs next to nothing: requests made beforehand, one blocking connection, replies taken as bytes."""

import socket
from types import TracebackType
from typing import Any, Self

from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.wire import api
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.frame import decode_response, encode_request
from ottla.wire.schema import schema_of

PRODUCE_VERSION = 9
FETCH_VERSION = 11
TIMEOUT_S = 300


class Caller:
    """One connection; requests are bytes with their size in front, replies are bytes without."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb", buffering=1 << 18)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._socket.close()

    def send(self, request: bytes) -> None:
        """Send a request, whose reply is left for `receive`."""
        self._socket.sendall(request)

    def receive(self) -> bytes:
        """The next reply."""
        size = int.from_bytes(self._file.read(4), "big")
        reply: bytes = self._file.read(size)
        if not size or len(reply) < size:
            raise ConnectionError("the broker closed the connection")
        return reply

    def call(self, request: bytes) -> bytes:
        """Send a request and take its reply."""
        self.send(request)
        return self.receive()


def frame(request: object, version: int) -> bytes:
    """A request as bytes with their size in front."""
    return b"".join(encode_request(request, version, correlation_id=1, client_id="bench"))


def produce_frame(topic: str, record_count: int, value_bytes: int) -> bytes:
    """Ask for a batch of so many records of that size to be appended to partition 0 and acknowledged."""
    batch = build_batch([Record(number, 1_700_000_000_000, None, bytes(value_bytes)) for number in range(record_count)])
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    return frame(ProduceRequest(acks=-1, timeout_ms=TIMEOUT_S * 1000, topic_data=[data]), PRODUCE_VERSION)


def fetch_frame(topic: str, offset: int, max_bytes: int) -> bytes:
    """Ask for what partition 0 has at an offset: one batch, if max_bytes is less than two have."""
    wanted = FetchTopic(topic=topic, partitions=[FetchPartition(fetch_offset=offset, partition_max_bytes=max_bytes)])
    return frame(FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=max_bytes, topics=[wanted]), FETCH_VERSION)


def produced_offset(reply: bytes) -> int:
    """Where the batch went; RuntimeError if it was refused."""
    result = _decoded(ProduceRequest, PRODUCE_VERSION, reply).responses[0].partition_responses[0]
    if result.error_code:
        raise RuntimeError(f"the broker refused a batch with error {result.error_code}")
    offset: int = result.base_offset
    return offset


def fetched_bytes(reply: bytes) -> int:
    """How many bytes of records came; RuntimeError if there was an error."""
    result = _decoded(FetchRequest, FETCH_VERSION, reply).responses[0].partitions[0]
    if result.error_code:
        raise RuntimeError(f"the broker refused a fetch with error {result.error_code}")
    return len(result.records or b"")


def _decoded(request: type, version: int, reply: bytes) -> Any:
    key = schema_of(request).key
    assert key is not None
    return decode_response(api.response(key), version, reply)[1]
