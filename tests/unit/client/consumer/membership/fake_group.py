"""A coordinator with one group of one member, which answers as it is told to."""

from collections import defaultdict
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.consumer.membership import Group, GroupOptions
from ottla.client.consumer.subscription import Subscription
from ottla.client.coordinators import Coordinators
from ottla.client.options import ClientOptions
from ottla.client.types import TopicPartition
from ottla.net import Reply, ServerConnection
from ottla.wire import api
from ottla.wire.api import (
    consumer_group_heartbeat,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import read_request_prefix
from ottla.wire.schema import schema_of
from tests.unit.client.fake_broker import NODE_ID, FakeBroker
from tests.unit.client.fake_broker import _later as later

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN, HEARTBEAT, LEAVE, SYNC = 8, 9, 10, 11, 12, 13, 14
MODERN = 68
GROUP_KEYS = (OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN, HEARTBEAT, LEAVE, SYNC, MODERN)


class FakeGroup(FakeBroker):
    """A broker that is its group's coordinator. `failures` and `seen` are by API key."""

    def __init__(self, newest: dict[int, int] | None = None, partitions: int = 2) -> None:
        super().__init__(newest, auto_create=False)
        for key in GROUP_KEYS:
            if (newest or {}).get(key, 0) >= 0:
                self.versions[key] = min((newest or {}).get(key, 99), schema_of(api.request(key)).versions.last)
        self.seen: dict[int, list[Any]] = defaultdict(list)
        self.delays_ms: dict[int, int] = {}
        """How long answers are on their way."""
        self.generation = 0
        self.offsets: dict[TopicPartition, tuple[int, str]] = {}
        self.target: list[int] | None = None
        """With the modern protocol, the partitions to give; None for those that the topic has."""
        self.epoch = 1
        self.create("orders", partitions)

    def _handle(self, connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        key, _, _ = read_request_prefix(frame)
        answer: Any = super()._handle(connection, frame)
        return later(answer, self.delays_ms[key]) if key in self.delays_ms else answer

    def _find_coordinator(self, request: Any, version: int, failure: int) -> Any:
        host, port = self.address
        one = find_coordinator.Coordinator(key=request.key, node_id=NODE_ID, host=host, port=port, error_code=failure)
        return find_coordinator.FindCoordinatorResponse(
            coordinators=[one], node_id=NODE_ID, host=host, port=port, error_code=failure
        )

    def _join_group(self, request: Any, version: int, failure: int) -> Any:
        self.seen[JOIN].append(request)
        if failure:
            return join_group.JoinGroupResponse(error_code=failure)
        if version >= 4 and not request.member_id and request.group_instance_id is None:
            return join_group.JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="member-1")
        self.generation += 1
        member = join_group.JoinGroupResponseMember(
            member_id=request.member_id or "member-1", metadata=request.protocols[0].metadata
        )
        return join_group.JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=request.protocols[0].name,
            leader=member.member_id,
            member_id=member.member_id,
            members=[member],
        )

    def _sync_group(self, request: Any, version: int, failure: int) -> Any:
        self.seen[SYNC].append(request)
        if failure:
            return sync_group.SyncGroupResponse(error_code=failure)
        return sync_group.SyncGroupResponse(
            protocol_type="consumer", protocol_name="range", assignment=request.assignments[0].assignment
        )

    def _heartbeat(self, request: Any, version: int, failure: int) -> Any:
        self.seen[HEARTBEAT].append(request)
        return heartbeat.HeartbeatResponse(error_code=failure)

    def _leave_group(self, request: Any, version: int, failure: int) -> Any:
        self.seen[LEAVE].append(request)
        return leave_group.LeaveGroupResponse(error_code=failure)

    def _offset_commit(self, request: Any, version: int, failure: int) -> Any:
        self.seen[OFFSET_COMMIT].append(request)
        response = offset_commit.OffsetCommitResponse()
        for topic in request.topics:
            answer = offset_commit.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
            response.topics.append(answer)
            for one in topic.partitions:
                if not failure:
                    place = TopicPartition("orders", one.partition_index)
                    self.offsets[place] = (one.committed_offset, one.committed_metadata)
                answer.partitions.append(
                    offset_commit.OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=failure)
                )
        return response

    def _offset_fetch(self, request: Any, version: int, failure: int) -> Any:
        self.seen[OFFSET_FETCH].append(request)
        many = version >= 8
        topics: list[Any] = []
        for topic in (request.groups[0] if many else request).topics:
            answer: Any
            kind: Any
            if many:
                answer = offset_fetch.OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id)
                kind = offset_fetch.OffsetFetchResponsePartitions
            else:
                answer = offset_fetch.OffsetFetchResponseTopic(name=topic.name)
                kind = offset_fetch.OffsetFetchResponsePartition
            for index in topic.partition_indexes:
                offset, note = self.offsets.get(TopicPartition("orders", index), (-1, ""))
                code = failure if version < 2 else 0
                answer.partitions.append(
                    kind(partition_index=index, committed_offset=offset, metadata=note, error_code=code)
                )
            topics.append(answer)
        if not many:
            return offset_fetch.OffsetFetchResponse(topics=topics, error_code=failure)
        group = offset_fetch.OffsetFetchResponseGroup(group_id="billing", topics=topics, error_code=failure)
        return offset_fetch.OffsetFetchResponse(groups=[group])

    def _consumer_group_heartbeat(self, request: Any, version: int, failure: int) -> Any:
        self.seen[MODERN].append(request)
        if failure:
            return consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(error_code=failure)
        response = consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(
            member_id=request.member_id or "given-by-broker",
            member_epoch=self.epoch if request.member_epoch >= 0 else request.member_epoch,
            heartbeat_interval_ms=50,
        )
        indexes = list(range(len(self.topics["orders"].logs))) if self.target is None else self.target
        topic = consumer_group_heartbeat.TopicPartitions(topic_id=self.topics["orders"].topic_id, partitions=indexes)
        response.assignment = consumer_group_heartbeat.Assignment(topic_partitions=[topic] if indexes else [])
        return response


class Member:
    """A consumer's group and what it did, without a consumer around it."""

    def __init__(self, servers: str, *, request_timeout_ms: int = 5_000, **options: Any) -> None:
        client_options = ClientOptions(
            bootstrap_servers=servers,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=10,
            metadata_max_age_ms=options.pop("metadata_max_age_ms", 300_000),
        )
        self.cluster = Cluster(client_options)
        self.subscription = Subscription()
        self.errors: list[BaseException] = []
        self.events: list[tuple[str, list[int]]] = []
        options = {"group_id": "billing", "heartbeat_interval_ms": 20, "session_timeout_ms": 3_000, **options}
        self.group = Group(
            self.cluster,
            Coordinators(self.cluster),
            self.subscription,
            GroupOptions(**options),
            report=self.errors.append,
            listener=self,
        )

    def on_partitions_assigned(self, partitions: set[TopicPartition]) -> None:
        self.events.append(("assigned", sorted(one.partition for one in partitions)))

    def on_partitions_revoked(self, partitions: set[TopicPartition]) -> None:
        self.events.append(("revoked", sorted(one.partition for one in partitions)))

    def on_partitions_lost(self, partitions: set[TopicPartition]) -> None:
        self.events.append(("lost", sorted(one.partition for one in partitions)))

    @property
    def partitions(self) -> list[int]:
        return sorted(one.partition for one in self.subscription.assigned)

    async def __aenter__(self) -> "Member":
        self.group.start()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self.group.close()
        await self.cluster.close()

    def read_up_to(self, offset: int) -> None:
        """As if the user had read and finished everything before an offset."""
        for state in self.subscription.assigned.values():
            state.seek(offset)
