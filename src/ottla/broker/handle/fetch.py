"""Fetch (1): read records, waiting for them if asked to.

Records are stored as batches of magic 2. Versions before 4 get them converted: v0 and v1 to magic 0, v2 and v3 to
magic 1. zstd is for v10 and later. From v3 on the first partition with data gives at least one whole batch, however
small the limits; before that a message may be cut off at the limit, which tells an old client to ask for more. v7 has
sessions, v13 topic ids.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.broker.conversion import FIRST_VERSION_AS_STORED, records_for
from ottla.broker.failures import error_code
from ottla.broker.park import wait_for_growth
from ottla.broker.request import Answer, Request
from ottla.broker.sessions import Session, TopicKey, Wanted
from ottla.cluster.acl import CLUSTER_NAME, ACLOperation, ResourceType
from ottla.log.walk import WouldWaitError
from ottla.ports import FileSlice
from ottla.replica.partition import READ_COMMITTED, Partition, Read
from ottla.wire.api.fetch import FetchableTopicResponse, FetchPartition, FetchRequest, FetchResponse, PartitionData
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

MOST_BYTES_REWRITTEN: Final = 1024 * 1024
"""What one reply to an old client holds in memory, if its first batch is not larger: it may never be read."""


class _Found(NamedTuple):
    """What one partition gives: its part of the reply, and what was read for it, if all was well."""

    topic: TopicKey
    asked: FetchPartition
    data: PartitionData
    partition: Partition | None
    read: Read | None


class _Round(NamedTuple):
    """One pass over all partitions that were asked for."""

    found: list[_Found]
    partitions: list[Partition]
    size: int
    failed: bool


def handle(broker: "Broker", request: Request) -> Answer:
    """Answer at once if there is enough to answer with; else wait once, and look again."""
    body: FetchRequest = request.body
    if broker.quotas.active and (most := broker.quotas.most_fetched(request)) is not None:
        body.max_bytes = min(body.max_bytes, most)
    try:
        session = broker.sessions.open(body, request.version >= 13, request.caller.principal)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    wanted = session.wanted()
    try:
        first = _look(broker, request, wanted, wait=False)
    except WouldWaitError:
        return _answer_from_disk(broker, request, session, wanted)
    return _answer_or_wait(broker, request, session, wanted, first)


def _answer_or_wait(
    broker: "Broker", request: Request, session: Session, wanted: list[Wanted], first: _Round
) -> Answer:
    body: FetchRequest = request.body
    if first.size >= body.min_bytes or first.failed or body.max_wait_ms <= 0 or not wanted:
        if request.version < FIRST_VERSION_AS_STORED and first.size:
            return _answer_converted(broker, request, session, wanted, first)
        return _answer(request, session, first)
    return _answer_later(broker, request, session, wanted, first)


async def _answer_later(
    broker: "Broker", request: Request, session: Session, wanted: list[Wanted], first: _Round
) -> FetchResponse:
    body: FetchRequest = request.body
    await wait_for_growth(first.partitions, body.min_bytes - first.size, body.max_wait_ms, request.caller)
    return await _look_again(broker, request, session, wanted)


async def _look_again(broker: "Broker", request: Request, session: Session, wanted: list[Wanted]) -> FetchResponse:
    try:
        second = _look(broker, request, wanted, wait=False)
    except WouldWaitError:
        second = await _look_on_disk(broker, request, wanted)
    if request.version < FIRST_VERSION_AS_STORED:
        await _convert(broker, request, second)
    return _answer(request, session, second)


async def _answer_converted(
    broker: "Broker", request: Request, session: Session, wanted: list[Wanted], first: _Round
) -> FetchResponse:
    """The way of old clients: their records are read into memory, looked at and perhaps rewritten, off the loop."""
    body: FetchRequest = request.body
    marks = [partition.high_watermark for partition in first.partitions]
    if await _convert(broker, request, first) or first.failed or body.max_wait_ms <= 0 or body.min_bytes <= 0:
        return _answer(request, session, first)
    # What was found has nothing for this client. It waits as if nothing had been found, or it would ask in circles;
    # unless there was more to find in the meantime.
    if marks == [partition.high_watermark for partition in first.partitions]:
        return await _answer_later(broker, request, session, wanted, first._replace(size=0))
    return await _look_again(broker, request, session, wanted)


async def _answer_from_disk(
    broker: "Broker", request: Request, session: Session, wanted: list[Wanted]
) -> FetchResponse:
    first = await _look_on_disk(broker, request, wanted)
    return await _now(_answer_or_wait(broker, request, session, wanted, first))


async def _look_on_disk(broker: "Broker", request: Request, wanted: list[Wanted]) -> _Round:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, lambda: _look(broker, request, wanted, wait=True))


async def _now(answer: Any) -> FetchResponse:
    response: FetchResponse = await answer if asyncio.iscoroutine(answer) else answer
    return response


def _look(broker: "Broker", request: Request, wanted: list[Wanted], *, wait: bool) -> _Round:
    body: FetchRequest = request.body
    version = request.version
    left = min(body.max_bytes, broker.config.fetch_max_bytes) if version >= 3 else broker.config.fetch_max_bytes
    if version < FIRST_VERSION_AS_STORED:
        left = min(left, MOST_BYTES_REWRITTEN)
    found: list[_Found] = []
    partitions: list[Partition] = []
    size = 0
    failed = False
    for topic, asked in wanted:
        data = PartitionData(partition_index=asked.partition, high_watermark=-1, aborted_transactions=None, records=b"")
        partition = read = None
        try:
            if broker.authorizer is not None:
                _check_access(broker, request, topic)
            if asked.partition_max_bytes < 0:
                raise KafkaError(ErrorCode.INVALID_FETCH_SIZE, f"max bytes are {asked.partition_max_bytes}")
            partition = broker.leader(topic, asked.partition)
            partition.check_epoch(asked.current_leader_epoch)
            broker.check_replica(body.replica_id)
            read = partition.read(
                asked.fetch_offset,
                min(asked.partition_max_bytes, max(0, left)),
                isolation=body.isolation_level,
                replica_id=body.replica_id,
                minimum_one=size == 0,
                wait=wait,
            )
            _describe(data, read, body)
            partitions.append(partition)
            size += read.size
            left -= read.size
        except (KafkaError, OSError) as error:
            data.error_code = error_code(error, topic, asked.partition)
            failed = True
        found.append(_Found(topic, asked, data, partition, read))
    return _Round(found, partitions, size, failed)


def _check_access(broker: "Broker", request: Request, topic: TopicKey) -> None:
    """Consumers may read some topics; brokers, which copy all of them, may act on the cluster or read none."""
    assert broker.authorizer is not None
    name = topic if isinstance(topic, str) else broker.topics.existing_by_id(topic).name
    if request.body.replica_id < 0:
        broker.authorizer.check(request.caller, ACLOperation.READ, ResourceType.TOPIC, name)
    elif not broker.authorizer.allows(request.caller, ACLOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise broker.authorizer.refusal(request.caller, ACLOperation.READ, ResourceType.TOPIC, name)


def _describe(data: PartitionData, read: Read, body: FetchRequest) -> None:
    data.high_watermark = read.high_watermark
    data.last_stable_offset = read.last_stable_offset
    data.log_start_offset = read.start_offset
    if body.isolation_level == READ_COMMITTED:
        # Aborted transactions among the records; there are none while transactions are not served.
        data.aborted_transactions = []


async def _convert(broker: "Broker", request: Request, found: _Round) -> bool:
    """Put what was read into the form that an old client understands; whether there is anything to tell it."""
    loop = asyncio.get_running_loop()
    body: FetchRequest = request.body
    size = 0
    failed = False
    for one in found.found:
        if one.partition is None or one.read is None or one.read.records is None:
            continue

        def read_on(offset: int, one: _Found = one, minimum_one: bool = size == 0) -> FileSlice | None:
            assert one.partition is not None
            return one.partition.read(
                offset,
                min(one.asked.partition_max_bytes, MOST_BYTES_REWRITTEN),
                isolation=body.isolation_level,
                replica_id=body.replica_id,
                minimum_one=minimum_one,
                wait=True,
            ).records

        limit = broker.config.fetch_max_bytes
        arguments = (request.version, one.read.records, one.asked.fetch_offset, limit, read_on)
        try:
            one.data.records = await loop.run_in_executor(None, records_for, *arguments)
            size += len(one.data.records)
        except (KafkaError, OSError) as error:
            one.data.error_code = error_code(error, one.topic, one.asked.partition)
            one.data.records = b""
            failed = True
    return failed or size > 0


def _answer(request: Request, session: Session, found: _Round) -> FetchResponse:
    topics: dict[TopicKey, FetchableTopicResponse] = {}
    for one in found.found:
        if request.version >= FIRST_VERSION_AS_STORED and one.read is not None and one.read.records is not None:
            one.data.records = one.read.records  # type: ignore[assignment]
        size = 0 if one.data.records is None else len(one.data.records)
        if one.partition is not None:
            one.partition.bytes_out += size
        if not session.keep(one.topic, one.data, size > 0):
            continue
        topic = topics.get(one.topic)
        if topic is None:
            topic = topics[one.topic] = FetchableTopicResponse()
            if isinstance(one.topic, bytes):
                topic.topic_id = one.topic
            else:
                topic.topic = one.topic
        topic.partitions.append(one.data)
    return FetchResponse(session_id=session.session_id, responses=list(topics.values()))
