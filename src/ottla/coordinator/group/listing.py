"""DescribeGroups, ConsumerGroupDescribe and ListGroups: what a shard tells of its groups."""

from collections.abc import Mapping

from ottla.coordinator.group.classic import ClassicGroup, ClassicState
from ottla.coordinator.group.consumer import ConsumerGroup
from ottla.coordinator.group.register import AnyGroup
from ottla.coordinator.outcome import Call
from ottla.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from ottla.wire.api.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.wire.api.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.api.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.wire.errors import ErrorCode

Groups = Mapping[str, AnyGroup]

FIRST_DESCRIBE_VERSION_WITH_NOT_FOUND = 6


def describe_groups(groups: Groups, call: Call) -> DescribeGroupsResponse:
    """Answer for classic groups. Others, and those that are not there, are dead to whoever asks this way."""
    request: DescribeGroupsRequest = call.body
    return DescribeGroupsResponse(groups=[_described(groups, group_id, call.version) for group_id in request.groups])


def _described(groups: Groups, group_id: str, version: int) -> DescribedGroup:
    group = groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return group.describe()
    dead = DescribedGroup(group_id=group_id, group_state=ClassicState.DEAD.value)
    if version >= FIRST_DESCRIBE_VERSION_WITH_NOT_FOUND:
        dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        dead.error_message = _not_found(group_id, group, "classic")
    return dead


def describe_consumer_groups(groups: Groups, call: Call) -> ConsumerGroupDescribeResponse:
    """Answer for groups of the consumer protocol, one answer for each that was asked for."""
    request: ConsumerGroupDescribeRequest = call.body
    response = ConsumerGroupDescribeResponse()
    for group_id in request.group_ids:
        group = groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            response.groups.append(group.describe())
            continue
        code = ErrorCode.GROUP_ID_NOT_FOUND if group_id else ErrorCode.INVALID_GROUP_ID
        response.groups.append(
            DescribedConsumerGroup(
                group_id=group_id, error_code=code, error_message=_not_found(group_id, group, "consumer")
            )
        )
    return response


def _not_found(group_id: str, group: AnyGroup | None, kind: str) -> str:
    return f"there is no group {group_id!r}" if group is None else f"group {group_id!r} is no {kind} group"


def list_groups(groups: Groups, call: Call) -> ListGroupsResponse:
    """Answer with all groups of certain states and types; both are compared without regard to case."""
    request: ListGroupsRequest = call.body
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.strip().lower() for kind in request.types_filter}

    def is_wanted(listed: ListedGroup) -> bool:
        return (not states or listed.group_state.lower() in states) and (
            not types or listed.group_type.lower() in types
        )

    return ListGroupsResponse(groups=list(filter(is_wanted, (group.listed() for group in groups.values()))))
