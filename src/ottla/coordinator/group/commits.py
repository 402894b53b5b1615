"""OffsetCommit, OffsetFetch and OffsetDelete: what one group's offsets are asked for.

Offsets of a topic go with it: one that was created again under the same name starts without any.
"""

from ottla.cluster.image import TopicImage
from ottla.coordinator.group.context import Context, Group
from ottla.coordinator.group.offsets import NO_TIMESTAMP, Committed, Offsets, removed
from ottla.coordinator.outcome import Call, Outcome, Record
from ottla.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.wire.api.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ottla.wire.errors import ErrorCode, KafkaError

FIRST_VERSION_WITH_MEMBER_EPOCHS = 9
FIRST_VERSION_WITH_TOPIC_IDS = 10
NOTHING_COMMITTED = -1
LARGEST_TIMESTAMP_MS = 2**63 - 1


def commit(context: Context, group: Group | None, now_ms: int, call: Call) -> Outcome:
    """Answer an OffsetCommit. There need be no group: the first commit of a simple consumer makes one."""
    request: OffsetCommitRequest = call.body
    try:
        _check_commit(group, now_ms, call.version, request)
    except KafkaError as error:
        return Outcome(OffsetCommitResponse(topics=[_refused_commit(topic, error.code) for topic in request.topics]))
    expire_timestamp_ms = NO_TIMESTAMP
    if request.retention_time_ms != NO_TIMESTAMP:
        expire_timestamp_ms = min(now_ms + request.retention_time_ms, LARGEST_TIMESTAMP_MS)
    response = OffsetCommitResponse()
    records: list[Record] = []
    for topic in request.topics:
        image, unknown = _find_topic(context, topic.name, topic.topic_id, call.version)
        answered = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(answered)
        for partition in topic.partitions:
            error_code = ErrorCode.NONE
            if image is None or image.partition(partition.partition_index) is None:
                error_code = unknown
            elif len(partition.committed_metadata or "") > context.config.offset_metadata_max_bytes:
                error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                committed = _committed(partition, now_ms, expire_timestamp_ms, image.topic_id)
                records.append(committed.record(request.group_id, image.name, partition.partition_index))
            answered.partitions.append(
                OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error_code)
            )
    return Outcome(response, records)


def _check_commit(group: Group | None, now_ms: int, version: int, request: OffsetCommitRequest) -> None:
    epoch = request.generation_id_or_member_epoch
    if group is not None:
        group.check_commit(now_ms, version, request.member_id, request.group_instance_id, epoch)
    elif epoch >= 0:
        # Clients that know nothing of member epochs expect an error that makes them join again.
        new = version >= FIRST_VERSION_WITH_MEMBER_EPOCHS
        code = ErrorCode.GROUP_ID_NOT_FOUND if new else ErrorCode.ILLEGAL_GENERATION
        raise KafkaError(code, f"there is no group {request.group_id!r}")


def _refused_commit(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    partitions = [
        OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
        for partition in topic.partitions
    ]
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _committed(
    partition: OffsetCommitRequestPartition, now_ms: int, expire_timestamp_ms: int, topic_id: bytes
) -> Committed:
    timestamp_ms = partition.commit_timestamp
    return Committed(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now_ms if timestamp_ms == NO_TIMESTAMP else timestamp_ms,
        expire_timestamp_ms,
        topic_id,
    )


def fetch(context: Context, offsets: Offsets, group: Group | None, call: Call) -> Outcome:
    """Answer an OffsetFetch for one group. What a group, or anyone, never committed has the offset -1 and no error.

    Offsets that a transaction is about to commit are not kept yet, so that all there are, are stable.
    """
    request: OffsetFetchRequestGroup = call.body
    response = OffsetFetchResponseGroup(group_id=request.group_id)
    if group is not None:
        try:
            group.check_fetch(request.member_id, request.member_epoch)
        except KafkaError as error:
            response.error_code = error.code
            return Outcome(response)
    wanted = _everything(context, offsets, request.group_id) if request.topics is None else request.topics
    for topic in wanted:
        image, unknown = _find_topic(context, topic.name, topic.topic_id, call.version)
        answered = OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(answered)
        # Whoever asks by name may well be early: a consumer does so before the topic exists.
        error_code = unknown if image is None and unknown is ErrorCode.UNKNOWN_TOPIC_ID else ErrorCode.NONE
        for index in topic.partition_indexes:
            found = None if image is None else offsets.find(request.group_id, image.name, index)
            if found is not None and image is not None and not found.is_of(image.topic_id):
                found = None
            answered.partitions.append(_fetched(index, found, error_code))
    return Outcome(response)


def _everything(context: Context, offsets: Offsets, group_id: str) -> list[OffsetFetchRequestTopics]:
    wanted: list[OffsetFetchRequestTopics] = []
    for name in offsets.topics_of(group_id):
        image = context.image.topics.get(name)
        if image is None:
            continue
        indexes = [index for index, found in offsets.of_topic(group_id, name) if found.is_of(image.topic_id)]
        if indexes:
            wanted.append(OffsetFetchRequestTopics(name=name, topic_id=image.topic_id, partition_indexes=indexes))
    return wanted


def _fetched(index: int, found: Committed | None, error_code: ErrorCode) -> OffsetFetchResponsePartitions:
    if found is None:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=NOTHING_COMMITTED, error_code=error_code
        )
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
    )


def delete(context: Context, offsets: Offsets, group: Group, call: Call) -> Outcome:
    """Answer an OffsetDelete for a group that may have its offsets deleted; not those that a member reads."""
    request: OffsetDeleteRequest = call.body
    response = OffsetDeleteResponse()
    records: list[Record] = []
    for topic in request.topics:
        error_codes = _deletable(context, group, topic)
        response.topics.append(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=index, error_code=code)
                    for index, code in error_codes.items()
                ],
            )
        )
        records += [
            removed(request.group_id, topic.name, index)
            for index, code in error_codes.items()
            if code is ErrorCode.NONE and offsets.find(request.group_id, topic.name, index) is not None
        ]
    return Outcome(response, records)


def _deletable(context: Context, group: Group, topic: OffsetDeleteRequestTopic) -> dict[int, ErrorCode]:
    indexes = dict.fromkeys(partition.partition_index for partition in topic.partitions)
    if group.is_subscribed(topic.name):
        return dict.fromkeys(indexes, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    return {
        index: ErrorCode.NONE
        if context.image.partition(topic.name, index) is not None
        else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for index in indexes
    }


def _find_topic(context: Context, name: str, topic_id: bytes, version: int) -> tuple[TopicImage | None, ErrorCode]:
    """The topic by what the version calls it, and the error for one that is not there."""
    if version >= FIRST_VERSION_WITH_TOPIC_IDS:
        found = context.image.topic_by_id(topic_id)
        return found, ErrorCode.UNKNOWN_TOPIC_ID if found is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return context.image.topics.get(name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
