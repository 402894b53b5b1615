"""Groups: list and describe them, remove their members, delete them."""

from collections.abc import Iterable

from ottla.client.admin.group_types import (
    OF_CONSUMERS,
    GroupDescription,
    GroupListing,
    MemberToRemove,
    classic_group,
    consumer_group,
)
from ottla.client.admin.part import AdminPart, Answers, lacks, list_of, names_of, outcome
from ottla.client.errors import check
from ottla.net import Connection
from ottla.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.api.delete_groups import DeleteGroupsRequest
from ottla.wire.api.describe_groups import DescribedGroup, DescribeGroupsRequest
from ottla.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.schema import schema_of

FIRST_LIST_VERSION_WITH_STATES = 4
FIRST_LIST_VERSION_WITH_TYPES = 5
FIRST_LEAVE_VERSION_WITH_MANY = 3

CLASSIC = "classic"

_NOT_OF_THE_CONSUMER_PROTOCOL = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


class GroupAdmin(AdminPart):
    """The methods that concern groups. Each group is asked for at its coordinator."""

    async def list_groups(
        self,
        broker_ids: Iterable[int] | None = None,
        states_filter: Iterable[str] = (),
        types_filter: Iterable[str] = (),
    ) -> list[GroupListing]:
        """All groups by id, or those that certain brokers coordinate, in certain states, or of certain types.

        >>> run(lambda admin: admin.create_topics(["orders"]))
        >>> run(lambda admin: admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 0): 0}))
        >>> run(lambda admin: admin.list_groups(states_filter=["Empty"]))
        [GroupListing(group_id='readers', protocol_type='', state='Empty', group_type='classic')]
        """
        states, types = list_of(states_filter, "states_filter"), list_of(types_filter, "types_filter")
        answers = await self._each_broker(broker_ids, lambda connection: _listed(connection, states, types))
        return sorted((group for groups in answers.values() for group in groups), key=lambda group: group.group_id)

    async def list_consumer_groups(self, broker_ids: Iterable[int] | None = None) -> list[GroupListing]:
        """The groups of consumers: those of `list_groups` that share out partitions, or only have offsets.

        >>> run(lambda admin: admin.list_consumer_groups())
        []
        """
        return [group for group in await self.list_groups(broker_ids) if group.protocol_type in (OF_CONSUMERS, "")]

    async def describe_consumer_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
        """State and members of groups by their ids, whichever protocol they speak.

        >>> run(lambda admin: admin.create_topics(["orders"]))
        >>> run(lambda admin: admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 0): 0}))
        >>> group = run(lambda admin: admin.describe_consumer_groups(["readers"]))["readers"]
        >>> group.state, group.group_type, group.members
        ('Empty', 'classic', ())
        """

        async def ask(left: list[str]) -> Answers[str, GroupDescription]:
            return await self._ask_coordinators(left, _described)

        return await self._each(names_of(group_ids, "group_ids"), ask)

    async def delete_consumer_groups(self, group_ids: Iterable[str]) -> None:
        """Delete groups without members, with their offsets.

        >>> run(lambda admin: admin.delete_consumer_groups(["readers"]))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ottla.errors.GroupIdNotFoundError: GROUP_ID_NOT_FOUND: there is no group 'readers'; ...
        """

        async def ask_one(connection: Connection, left: list[str]) -> Answers[str, None]:
            response = await connection.request(DeleteGroupsRequest(groups_names=left))
            return {
                one.group_id: outcome(one.error_code, one.error_message, "group", one.group_id)
                for one in response.results
            }

        async def ask(left: list[str]) -> Answers[str, None]:
            return await self._ask_coordinators(left, ask_one)

        await self._each(names_of(group_ids, "group_ids"), ask, done=ErrorCode.GROUP_ID_NOT_FOUND)

    async def remove_group_members(self, group_id: str, members: Iterable[MemberToRemove | str] | None = None) -> None:
        """Have members leave a group, all of them if none are named. Those that still run will join again.

        It is for those that do not run any more and whose sessions last: static members above all.

        >>> run(lambda admin: admin.remove_group_members("readers", [MemberToRemove(group_instance_id="reader-1")]))
        ... # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ottla.errors.UnknownMemberIdError: UNKNOWN_MEMBER_ID: ...
        """
        if members is None:
            described = (await self.describe_consumer_groups([group_id]))[group_id]
            members = [MemberToRemove(one.member_id, one.group_instance_id) for one in described.members]
        wanted = [MemberToRemove(one) if isinstance(one, str) else one for one in list_of(members, "members")]

        async def ask(left: list[MemberToRemove]) -> Answers[MemberToRemove, None]:
            return await self._ask_coordinator(group_id, lambda connection: _removed(connection, group_id, left))

        await self._each(wanted, ask, done=ErrorCode.UNKNOWN_MEMBER_ID)


async def _listed(connection: Connection, states: list[str], types: list[str]) -> list[GroupListing]:
    version = connection.version_of(ListGroupsRequest)
    if states and version < FIRST_LIST_VERSION_WITH_STATES:
        raise lacks(connection.broker, "listing groups by their states")
    response = await connection.request(ListGroupsRequest(states_filter=states, types_filter=types))
    check(response.error_code, f"groups of {connection.broker}")
    # Brokers that do not tell types have classic groups alone.
    with_types = version >= FIRST_LIST_VERSION_WITH_TYPES
    return [
        GroupListing(
            one.group_id,
            one.protocol_type,
            one.group_state if version >= FIRST_LIST_VERSION_WITH_STATES else None,
            one.group_type.lower() if with_types else CLASSIC,
        )
        for one in response.groups
        if with_types or not types or CLASSIC in map(str.lower, types)
    ]


async def _described(connection: Connection, group_ids: list[str]) -> Answers[str, GroupDescription]:
    answers: dict[str, GroupDescription | KafkaError] = {}
    if schema_of(ConsumerGroupDescribeRequest).key in connection.offer:
        for modern in (await connection.request(ConsumerGroupDescribeRequest(group_ids=group_ids))).groups:
            if modern.error_code not in _NOT_OF_THE_CONSUMER_PROTOCOL:
                failure = outcome(modern.error_code, modern.error_message, "group", modern.group_id)
                answers[modern.group_id] = failure or consumer_group(modern, connection.broker)
    others = [group_id for group_id in group_ids if group_id not in answers]
    if others:
        for classic in (await connection.request(DescribeGroupsRequest(groups=others))).groups:
            answers[classic.group_id] = _failure(classic) or classic_group(classic, connection.broker)
    return answers


def _failure(classic: DescribedGroup) -> KafkaError | None:
    # Brokers before 4 describe a group that they do not have as a dead one.
    code = classic.error_code or (ErrorCode.GROUP_ID_NOT_FOUND if classic.group_state == "Dead" else ErrorCode.NONE)
    return outcome(code, classic.error_message, "group", classic.group_id)


async def _removed(
    connection: Connection, group_id: str, members: list[MemberToRemove]
) -> Answers[MemberToRemove, None]:
    if connection.version_of(LeaveGroupRequest) < FIRST_LEAVE_VERSION_WITH_MANY:
        return {one: await _removed_alone(connection, group_id, one) for one in members}
    identities = [
        MemberIdentity(member_id=one.member_id or "", group_instance_id=one.group_instance_id, reason=one.reason)
        for one in members
    ]
    response = await connection.request(LeaveGroupRequest(group_id=group_id, members=identities))
    check(response.error_code, f"members of group {group_id!r}")
    # Answers come in the order of the questions; the ids in them need not be those that were asked with.
    return {
        one: outcome(answer.error_code, None, "member", str(one))
        for one, answer in zip(members, response.members, strict=False)
    }


async def _removed_alone(connection: Connection, group_id: str, member: MemberToRemove) -> KafkaError | None:
    if member.member_id is None:
        return lacks(connection.broker, "removing members by their group_instance_id")
    response = await connection.request(LeaveGroupRequest(group_id=group_id, member_id=member.member_id))
    return outcome(response.error_code, None, "member", member.member_id)
