"""A Produce request for one batch of one partition, all but the batch made beforehand.

Its reply is known beforehand too, but for a few numbers, if all goes well: so it need not be decoded to see that.
"""

from struct import Struct
from typing import NamedTuple

from ottla.client.types import TopicPartition
from ottla.record._kernel_types import Buffer
from ottla.wire.api.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.compile import encode
from ottla.wire.frame import encode_request
from ottla.wire.schema import schema_of
from ottla.wire.varint import encode_uvarint

FIRST_VERSION = 10
"""The first whose reply ends as `_AFTER_NUMBERS` says, and whose request ends in three counts of tagged fields."""

_KEY = schema_of(ProduceRequest).key
_START = Struct(">ihhi")
"""Size, key, version, correlation id."""
_SIZE_SIZE = 4
_TAG_COUNTS = 3
_NUMBERS = Struct(">qqq")
"""Base offset, append time, start offset."""
_AFTER_NUMBERS = Struct(">BBBBiB")
"""No errors of records, no message, no tagged fields twice; the throttle time; no tagged fields."""
_CORRELATION_ID_SIZE = 4


class Written(NamedTuple):
    """What a broker says of a batch that it has written."""

    base_offset: int
    append_time: int


class SingleProduce:
    """The requests for one partition, and the replies that say that all is well.

    >>> orders = TopicPartition("orders", 2)
    >>> single = SingleProduce(orders, bytes(16), version=12, acks=-1, timeout_ms=30_000, client_id="me")
    >>> len(single.frame(b"a batch", correlation_id=7))
    48
    """

    def __init__(
        self,
        partition: TopicPartition,
        topic_id: bytes,
        *,
        version: int,
        acks: int,
        timeout_ms: int,
        client_id: str | None,
    ) -> None:
        assert version >= FIRST_VERSION, f"version {version} has another form"
        self._partition = partition
        self.topic_id = topic_id
        self.version = version
        self._acks = acks
        self._timeout_ms = timeout_ms
        whole = b"".join(encode_request(self._request(b""), version, correlation_id=0, client_id=client_id))
        self._before, self._after = whole[_START.size : -_TAG_COUNTS - 1], whole[-_TAG_COUNTS:]
        self._size = len(whole) - _SIZE_SIZE - 1
        usual = b"\0" + encode(self._response(), version)
        self._usual_end = usual[-_AFTER_NUMBERS.size :]
        self._usual_start = usual[: -_NUMBERS.size - _AFTER_NUMBERS.size]
        self._usual_size = _CORRELATION_ID_SIZE + len(usual)
        self._numbers_at = self._usual_size - _NUMBERS.size - _AFTER_NUMBERS.size

    def frame(self, batch: Buffer, correlation_id: int) -> bytes:
        """The request with this batch."""
        length = encode_uvarint(len(batch) + 1)
        size = self._size + len(length) + len(batch)
        start = _START.pack(size, _KEY, self.version, correlation_id)
        return b"".join((start, self._before, length, batch, self._after))

    def glance(self, frame: bytes | bytearray) -> Written | None:
        """What a reply says, if it is the usual one: the batch is written, and nothing delays us."""
        if (
            len(frame) != self._usual_size
            or not frame.endswith(self._usual_end)
            or not frame.startswith(self._usual_start, _CORRELATION_ID_SIZE)
        ):
            return None
        base_offset, append_time, _ = _NUMBERS.unpack_from(frame, self._numbers_at)
        return Written(base_offset, append_time)

    def _request(self, batch: bytes) -> ProduceRequest:
        topic, index = self._partition
        data = TopicProduceData(
            name=topic, topic_id=self.topic_id, partition_data=[PartitionProduceData(index=index, records=batch)]
        )
        return ProduceRequest(acks=self._acks, timeout_ms=self._timeout_ms, topic_data=[data])

    def _response(self) -> ProduceResponse:
        topic, index = self._partition
        answer = TopicProduceResponse(
            name=topic, topic_id=self.topic_id, partition_responses=[PartitionProduceResponse(index=index)]
        )
        return ProduceResponse(responses=[answer])
