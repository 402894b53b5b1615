"""One round of the classic protocol: JoinGroup, and SyncGroup with the assignment if this member leads."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.assign import classic
from ottla.assign.assignor import Assignor
from ottla.client.consumer.membership.identity import Identity
from ottla.client.consumer.membership.options import GroupOptions
from ottla.client.errors import MemberIdRequiredError, check, error_of
from ottla.net import Connection
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.api.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.wire.errors import ErrorCode

PROTOCOL_TYPE = "consumer"
FIRST_JOIN_VERSION_WITH_INSTANCE = 5
MARGIN_MS = 5_000
"""How much longer than the rebalance may take to wait for its end."""

Owned = Mapping[str, tuple[int, ...]]
"""Partitions by topic."""


class Joined(NamedTuple):
    """What JoinGroup told a member."""

    identity: Identity
    protocol_name: str
    subscriptions: dict[str, bytes]
    """What all members subscribe to, if this one leads them."""
    instance_ids: dict[str, str | None]
    is_leader: bool
    skip_assignment: bool
    """The leader has come back, and the group goes on with the assignment that it has."""


def protocols(
    options: GroupOptions, topics: frozenset[str], last: Owned, owned: Owned, generation: int
) -> list[JoinGroupRequestProtocol]:
    """What the member says of itself, once for each assignor that it can work with.

    `last` is what it was last given, in that generation, and `owned` what it goes on reading meanwhile.
    """
    return [
        JoinGroupRequestProtocol(
            name=classic.find(choice).name,
            metadata=classic.encode_subscription(
                topics,
                classic.subscription_user_data(choice, last, generation),
                owned,
                generation,
                options.client_rack,
            ),
        )
        for choice in options.partition_assignment_strategy
    ]


async def join(
    connection: Connection,
    options: GroupOptions,
    identity: Identity,
    offered: list[JoinGroupRequestProtocol],
    reason: str,
) -> Joined:
    """Join, and wait until all other members have. A new member may be told to come again with an id."""
    version = connection.version_of(JoinGroupRequest)
    if options.group_instance_id is not None and version < FIRST_JOIN_VERSION_WITH_INSTANCE:
        message = f"{connection.broker} does not know static members; leave group_instance_id away"
        raise error_of(ErrorCode.UNSUPPORTED_VERSION, message)
    request = JoinGroupRequest(
        group_id=options.group_id,
        session_timeout_ms=options.session_timeout_ms,
        rebalance_timeout_ms=options.rebalance_patience_ms,
        member_id=identity.member_id,
        group_instance_id=options.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=offered,
        reason=reason[:255],
    )
    patience_ms = max(options.rebalance_patience_ms, options.session_timeout_ms) + MARGIN_MS
    response: JoinGroupResponse = await connection.request(request, timeout_ms=patience_ms)
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        raise MemberIdGivenError(response.member_id)
    check(response.error_code, f"joining group {options.group_id!r} as {identity.member_id or 'a new member'!r}")
    return Joined(
        Identity(response.member_id, response.generation_id, options.group_instance_id),
        response.protocol_name or "",
        {member.member_id: member.metadata for member in response.members},
        {member.member_id: member.group_instance_id for member in response.members},
        response.leader == response.member_id,
        response.skip_assignment,
    )


class MemberIdGivenError(MemberIdRequiredError):
    """The coordinator has given the member an id, with which it must join."""

    def __init__(self, member_id: str) -> None:
        super().__init__(f"joining as {member_id!r}")
        self.member_id = member_id


def share_out(options: GroupOptions, joined: Joined, partition_counts: Mapping[str, int]) -> dict[str, bytes]:
    """As the leader: the assignments of all members."""
    by_name: dict[str, str | Assignor] = {
        classic.find(choice).name: choice for choice in options.partition_assignment_strategy
    }
    if joined.protocol_name not in by_name:
        message = f"the group {options.group_id!r} chose assignor {joined.protocol_name!r}, which this member lacks"
        raise error_of(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
    choice = by_name[joined.protocol_name]
    return classic.assign_members(choice, joined.subscriptions, joined.instance_ids, partition_counts)


async def sync(
    connection: Connection, options: GroupOptions, joined: Joined, assignments: Mapping[str, bytes]
) -> dict[str, tuple[int, ...]]:
    """Hand out the assignments, if this member leads, and get its own. Waits for the leader."""
    request = SyncGroupRequest(
        group_id=options.group_id,
        generation_id=joined.identity.generation,
        member_id=joined.identity.member_id,
        group_instance_id=joined.identity.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=joined.protocol_name,
        assignments=[
            SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in assignments.items()
        ],
    )
    # All have joined, so it is the leader alone who is waited for, and he has nothing to wait for.
    response: SyncGroupResponse = await connection.request(request)
    check(response.error_code, f"assignment of group {options.group_id!r}")
    return classic.decode_assignment(response.assignment)


async def leave(connection: Connection, group_id: str, identity: Identity, reason: str) -> None:
    """Leave the group, so that others need not wait for the session to end."""
    request = LeaveGroupRequest(
        group_id=group_id,
        member_id=identity.member_id,
        members=[
            MemberIdentity(member_id=identity.member_id, group_instance_id=identity.instance_id, reason=reason[:255])
        ],
    )
    response: LeaveGroupResponse = await connection.request(request)
    check(response.error_code, f"leaving group {group_id!r}")
    for member in response.members:
        check(member.error_code, f"leaving group {group_id!r}")
