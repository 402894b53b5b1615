"""Produce (0): append records to partitions.

v0 to v2 bring message sets, which become batches of magic 2; v3 and later bring exactly one such batch per partition.
zstd is for v7 and later, v13 has topic ids. With acks=0 there is no reply, so an error closes the connection: that is
the only way to tell.
"""

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.acl.check import check_allowed, topic_failure
from ottla.broker.internal_topics import check_not_internal
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.record.batch import CODEC_MASK
from ottla.record.compression import Codec
from ottla.replica.partition import Partition
from ottla.replica.validate import Checked, check_records
from ottla.wire.api.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.errors import ErrorCode, KafkaError, ProtocolError
from ottla.wire.schema import Bytes

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

HEAVY_BYTES: Final = 64 * 1024
"""Old records, and those that gzip has compressed, are checked off the event loop from this size on."""

HEAVY_COMPRESSED_BYTES: Final = 4 * HEAVY_BYTES
"""Those that another codec has compressed, all of a request together. Fewer take about as long as a thread's help."""


class _Part(NamedTuple):
    """One partition of a request on its way into the log."""

    partition: Partition
    records: Bytes | None
    result: PartitionProduceResponse


def handle(broker: "Broker", request: Request) -> Answer:
    """Check and append; wait for the disk where the topics want that."""
    body: ProduceRequest = request.body
    response = ProduceResponse()
    parts: list[_Part] = []
    for topic in body.topic_data:
        answered = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(answered)
        key = topic.topic_id if request.version >= 13 else topic.name
        refusal = None if broker.authorizer is None else _refusal(broker, request, key)
        for data in topic.partition_data:
            result = PartitionProduceResponse(index=data.index, base_offset=-1)
            answered.partition_responses.append(result)
            if refusal is not None:
                _fail(result, refusal)
            else:
                _find(broker, body, key, data, result, parts)
    if _are_heavy(parts):
        return _append_later(broker, request, response, parts)
    checked = _check_all(parts, request.version, broker.clock.now_ms())
    return _append(body, response, checked)


def _refusal(broker: "Broker", request: Request, topic: str | bytes) -> KafkaError | None:
    """Why the client may not write to a topic; None if it may. Whoever has only an id is not told the name."""
    transactional_id = request.body.transactional_id
    try:
        if transactional_id is not None:
            check_allowed(broker, request, ACLOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        if isinstance(topic, str):
            check_allowed(broker, request, ACLOperation.WRITE, ResourceType.TOPIC, topic)
        elif code := topic_failure(broker, request, ACLOperation.WRITE, broker.topics.existing_by_id(topic).name):
            return KafkaError(code, "you may not write to the topic of this id")
    except KafkaError as error:
        return error
    return None


def _find(
    broker: "Broker",
    body: ProduceRequest,
    topic: str | bytes,
    data: PartitionProduceData,
    result: PartitionProduceResponse,
    parts: list[_Part],
) -> None:
    acks = body.acks
    try:
        if acks != -1 and acks != 1 and acks != 0:
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks = {acks} is none of -1, 0 and 1")
        partition = broker.leader(topic, data.index)
        check_not_internal(partition.topic)
        if acks == -1:
            partition.check_in_sync()
        parts.append(_Part(partition, data.records, result))
    except KafkaError as error:
        _fail(result, error)


def _fail(result: PartitionProduceResponse, error: KafkaError) -> None:
    result.error_code = error.code
    result.error_message = error.message


def _are_heavy(parts: list[_Part]) -> bool:
    compressed = 0
    for _, records, _ in parts:
        if records is None or len(records) < HEAVY_BYTES:
            continue
        magic, codec = records[16], records[22] & CODEC_MASK
        if magic < 2 or codec == Codec.GZIP:
            return True
        if codec != Codec.NONE:
            compressed += len(records)
    return compressed >= HEAVY_COMPRESSED_BYTES


def _check_all(parts: list[_Part], version: int, now_ms: int) -> list[tuple[_Part, Checked]]:
    checked = []
    for part in parts:
        try:
            checked.append((part, check_records(part.records, part.partition.config, version, now_ms)))
        except KafkaError as error:
            _fail(part.result, error)
    return checked


async def _append_later(
    broker: "Broker", request: Request, response: ProduceResponse, parts: list[_Part]
) -> ProduceResponse | None:
    loop = asyncio.get_running_loop()
    checked = await loop.run_in_executor(None, _check_all, parts, request.version, broker.clock.now_ms())
    answer = _append(request.body, response, checked)
    return answer if isinstance(answer, ProduceResponse) or answer is None else await answer


def _append(body: ProduceRequest, response: ProduceResponse, checked: list[tuple[_Part, Checked]]) -> Answer:
    to_sync: list[_Part] = []
    for part, batch in checked:
        try:
            appended = part.partition.append(batch)
        except KafkaError as error:
            _fail(part.result, error)
            continue
        partition, _, result = part
        result.base_offset = appended.base_offset
        result.log_append_time_ms = appended.log_append_time
        result.log_start_offset = partition.log.start_offset
        if partition.must_sync:
            to_sync.append(part)
    if body.acks == 0:
        _close_on_failure(response)
        return None
    return _sync(body, response, to_sync) if to_sync else response


def _close_on_failure(response: ProduceResponse) -> None:
    for topic in response.responses:
        for result in topic.partition_responses:
            if result.error_code:
                code = ErrorCode(result.error_code).name
                place = f"{topic.name}-{result.index}"
                raise ProtocolError(f"a produce with acks=0 failed for {place}: {code}: {result.error_message}")


async def _sync(body: ProduceRequest, response: ProduceResponse, parts: list[_Part]) -> ProduceResponse:
    async def one(part: _Part) -> None:
        try:
            async with asyncio.timeout(max(0, body.timeout_ms) / 1000):
                await part.partition.synced()
        except TimeoutError:
            part.result.error_code = ErrorCode.REQUEST_TIMED_OUT
            part.result.error_message = f"the disk did not answer within {body.timeout_ms} ms"
        except KafkaError as error:
            _fail(part.result, error)

    await asyncio.gather(*map(one, parts))
    return response
