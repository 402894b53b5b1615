"""Group requests over a plain socket, in whichever version a test asks for."""

from typing import Any

from ottla.wire import api
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.api.heartbeat import HeartbeatRequest
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.api.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request
from ottla.wire.schema import schema_of
from tests.interop.raw_client import RawClient

LAST = {
    schema_of(request).key: schema_of(request).versions.last
    for request in (
        JoinGroupRequest,
        SyncGroupRequest,
        HeartbeatRequest,
        LeaveGroupRequest,
        OffsetCommitRequest,
        OffsetFetchRequest,
        FindCoordinatorRequest,
    )
}


class GroupClient(RawClient):
    """A connection of one member, which can also send a request and read its reply later."""

    def begin(self, request: object, version: int) -> None:
        """Send a request."""
        self._correlation_id += 1
        self._sent = type(request), version
        buffers = encode_request(request, version, correlation_id=self._correlation_id, client_id="raw")
        self._socket.sendall(b"".join(buffers))

    def finish(self) -> Any:
        """The response to the request that was sent last."""
        frames: list[bytes] = []
        while not frames:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the broker closed the connection")
            frames = self._reader.feed(data)
        key = schema_of(self._sent[0]).key
        assert key is not None
        header, response = decode_response(api.response(key), self._sent[1], frames[0])
        assert header.correlation_id == self._correlation_id
        return response

    def latest(self, request: object, version: int) -> Any:
        """The response in this version, or in the newest that there is if that is older."""
        return self.call(request, min(version, LAST[schema_of(type(request)).key]))

    def join_as_new(self, group_id: str, version: int = 9, **fields: Any) -> Any:
        """Join as a new member does: from v4 on twice, since it is told its id first."""
        response = self.call(join(group_id, **fields), version)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            response = self.call(join(group_id, **{**fields, "member_id": response.member_id}), version)
        return response

    def become_only_member(self, group_id: str, assignment: bytes = b"mine", **fields: Any) -> tuple[str, int]:
        """Join a group as its only member, and have it stable: member id and generation."""
        joined = self.join_as_new(group_id, **fields)
        assert joined.error_code == 0, ErrorCode(joined.error_code)
        synced = self.call(sync(group_id, joined, {joined.member_id: assignment}), 5)
        assert (synced.error_code, synced.assignment) == (0, assignment)
        return joined.member_id, joined.generation_id

    def heartbeat(self, group_id: str, member_id: str, generation: int, version: int = 4, **fields: Any) -> ErrorCode:
        """What a heartbeat is answered with."""
        request = HeartbeatRequest(group_id=group_id, member_id=member_id, generation_id=generation, **fields)
        return ErrorCode(self.call(request, version).error_code)

    def commit(self, group_id: str, topic: str = "t", offset: int = 0, version: int = 8, **fields: Any) -> ErrorCode:
        """What a commit for partition 0 is answered with."""
        response = self.call(commit(group_id, topic, offset, **fields), version)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def committed(
        self, group_id: str, topic: str = "t", version: int = 7, partition: int = 0
    ) -> tuple[int, str | None]:
        """What is committed for a partition: offset and metadata."""
        if version >= 8:
            asked = OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
            group = OffsetFetchRequestGroup(group_id=group_id, topics=[asked])
            (answered,) = self.call(OffsetFetchRequest(groups=[group]), version).groups
        else:
            old = OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])
            answered = self.call(OffsetFetchRequest(group_id=group_id, topics=[old]), version)
        assert answered.error_code == 0, ErrorCode(answered.error_code)
        found = answered.topics[0].partitions[0]
        assert found.error_code == 0, ErrorCode(found.error_code)
        return found.committed_offset, found.metadata

    def consumer_heartbeat(self, group_id: str, version: int = 1, **fields: Any) -> Any:
        """A heartbeat of the consumer protocol."""
        return self.call(ConsumerGroupHeartbeatRequest(group_id=group_id, **fields), version)


def of(member_id: str, generation: int, **fields: Any) -> dict[str, Any]:
    """Who commits: for `GroupClient.commit`."""
    return {"member_id": member_id, "generation_id_or_member_epoch": generation, **fields}


def join(group_id: str, **fields: Any) -> JoinGroupRequest:
    """A request to join; `protocols` are names with their metadata."""
    protocols = fields.pop("protocols", {"range": b"metadata"})
    return JoinGroupRequest(
        **{
            "group_id": group_id,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols.items()],
            **fields,
        }
    )


def sync(group_id: str, joined: Any, assignments: dict[str, bytes] | None = None, **fields: Any) -> SyncGroupRequest:
    """A request to sync after a join was answered."""
    return SyncGroupRequest(
        **{
            "group_id": group_id,
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
            "protocol_type": joined.protocol_type,
            "protocol_name": joined.protocol_name,
            "assignments": [
                SyncGroupRequestAssignment(member_id=member_id, assignment=data)
                for member_id, data in (assignments or {}).items()
            ],
            **fields,
        }
    )


def leave(group_id: str, member_id: str) -> LeaveGroupRequest:
    """A request to leave that is right in every version."""
    return LeaveGroupRequest(group_id=group_id, member_id=member_id, members=[MemberIdentity(member_id=member_id)])


def commit(group_id: str, topic: str, offset: int, **fields: Any) -> OffsetCommitRequest:
    """A commit for partition 0 of a topic; of a member if its id and generation are given."""
    partition = OffsetCommitRequestPartition(
        **{
            "partition_index": fields.pop("partition", 0),
            "committed_offset": offset,
            "committed_metadata": fields.pop("metadata", ""),
            "commit_timestamp": fields.pop("timestamp", -1),
        }
    )
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(name=topic, topic_id=fields.pop("topic_id", bytes(16)), partitions=[partition])
        ],
        **fields,
    )
