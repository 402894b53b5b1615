"""Errors of brokers that concern groups: members, coordinators and committed offsets."""

from ottla.client.broker_errors.base import BrokerError
from ottla.wire.errors import ErrorCode


class GroupLoadInProgressError(BrokerError):
    """The coordinator is reading what it knows of the group.

    >>> print(GroupLoadInProgressError("group 'billing'"))
    COORDINATOR_LOAD_IN_PROGRESS: group 'billing'; try again
    """

    code_of_class = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    advice = "try again"


class GroupCoordinatorNotAvailableError(BrokerError):
    """The group has no coordinator at the moment.

    >>> print(GroupCoordinatorNotAvailableError("group 'billing'"))
    COORDINATOR_NOT_AVAILABLE: group 'billing'; try again
    """

    code_of_class = ErrorCode.COORDINATOR_NOT_AVAILABLE
    advice = "try again"


class NotCoordinatorForGroupError(BrokerError):
    """The broker that was asked is not the group's coordinator (any more).

    >>> print(NotCoordinatorForGroupError("group 'billing'"))
    NOT_COORDINATOR: group 'billing'; try again: the coordinator is being looked for
    """

    code_of_class = ErrorCode.NOT_COORDINATOR
    advice = "try again: the coordinator is being looked for"


class IllegalGenerationError(BrokerError):
    r"""The group has moved on without this member.

    >>> print(str(IllegalGenerationError("group 'billing'")).replace("; ", ";\n", 1))
    ILLEGAL_GENERATION: group 'billing';
    process the records again that were not committed: somebody else may have got them
    """

    code_of_class = ErrorCode.ILLEGAL_GENERATION
    advice = "process the records again that were not committed: somebody else may have got them"


class UnknownMemberIdError(BrokerError):
    r"""The group does not know this member: it was silent for too long, or was removed.

    >>> print(str(UnknownMemberIdError("group 'billing', member 'ottla-1'")).replace("; ", ";\n", 1))
    UNKNOWN_MEMBER_ID: group 'billing', member 'ottla-1';
    process the records again that were not committed: somebody else may have got them
    """

    code_of_class = ErrorCode.UNKNOWN_MEMBER_ID
    advice = "process the records again that were not committed: somebody else may have got them"


class InconsistentGroupProtocolError(BrokerError):
    """The group's members have no assignor in common with this one, or another kind of membership.

    >>> print(InconsistentGroupProtocolError("group 'billing'"))
    INCONSISTENT_GROUP_PROTOCOL: group 'billing'; give all members one partition_assignment_strategy in common
    """

    code_of_class = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    advice = "give all members one partition_assignment_strategy in common"


class InvalidGroupIdError(BrokerError):
    """The group id is not one that a group can have.

    >>> print(InvalidGroupIdError("group 'billing'"))
    INVALID_GROUP_ID: group 'billing'; give a group_id that is not empty
    """

    code_of_class = ErrorCode.INVALID_GROUP_ID
    advice = "give a group_id that is not empty"


class InvalidSessionTimeoutError(BrokerError):
    r"""The broker does not take this session timeout.

    >>> print(str(InvalidSessionTimeoutError("session_timeout_ms = 10")).replace("; ", ";\n", 1))
    INVALID_SESSION_TIMEOUT: session_timeout_ms = 10;
    choose session_timeout_ms within the broker's group.min.session.timeout.ms and group.max.session.timeout.ms
    """

    code_of_class = ErrorCode.INVALID_SESSION_TIMEOUT
    advice = (
        "choose session_timeout_ms within the broker's group.min.session.timeout.ms and group.max.session.timeout.ms"
    )


class RebalanceInProgressError(BrokerError):
    """The group is sharing out its partitions.

    >>> print(RebalanceInProgressError("group 'billing', member 'ottla-1'"))
    REBALANCE_IN_PROGRESS: group 'billing', member 'ottla-1'; go on consuming: the member joins again by itself
    """

    code_of_class = ErrorCode.REBALANCE_IN_PROGRESS
    advice = "go on consuming: the member joins again by itself"


class NonEmptyGroupError(BrokerError):
    """The group has members.

    >>> print(NonEmptyGroupError("group 'billing'"))
    NON_EMPTY_GROUP: group 'billing'; stop its members first
    """

    code_of_class = ErrorCode.NON_EMPTY_GROUP
    advice = "stop its members first"


class GroupIdNotFoundError(BrokerError):
    """There is no such group.

    >>> print(GroupIdNotFoundError("group 'billing'"))
    GROUP_ID_NOT_FOUND: group 'billing'; check its name; a group is made when a member joins or offsets are committed
    """

    code_of_class = ErrorCode.GROUP_ID_NOT_FOUND
    advice = "check its name; a group is made when a member joins or offsets are committed"


class MemberIdRequiredError(BrokerError):
    """The coordinator has given the member an id to join with.

    >>> print(MemberIdRequiredError("group 'billing', member 'ottla-1'"))
    MEMBER_ID_REQUIRED: group 'billing', member 'ottla-1'; join again with it
    """

    code_of_class = ErrorCode.MEMBER_ID_REQUIRED
    advice = "join again with it"


class GroupMaxSizeReachedError(BrokerError):
    """The group has as many members as the broker allows.

    >>> print(GroupMaxSizeReachedError("group 'billing'"))
    GROUP_MAX_SIZE_REACHED: group 'billing'; raise the broker's group.max.size
    """

    code_of_class = ErrorCode.GROUP_MAX_SIZE_REACHED
    advice = "raise the broker's group.max.size"


class FencedInstanceIdError(BrokerError):
    """Another member has joined with the same group_instance_id.

    >>> print(FencedInstanceIdError("group 'billing', member 'ottla-1'"))
    FENCED_INSTANCE_ID: group 'billing', member 'ottla-1'; give each running member a group_instance_id of its own
    """

    code_of_class = ErrorCode.FENCED_INSTANCE_ID
    advice = "give each running member a group_instance_id of its own"


class GroupSubscribedToTopicError(BrokerError):
    """Members of the group read the topic.

    >>> print(GroupSubscribedToTopicError("group 'billing'"))
    GROUP_SUBSCRIBED_TO_TOPIC: group 'billing'; stop them first
    """

    code_of_class = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    advice = "stop them first"


class UnstableOffsetCommitError(BrokerError):
    """A transaction that commits offsets is not finished.

    >>> print(UnstableOffsetCommitError("orders-0"))
    UNSTABLE_OFFSET_COMMIT: orders-0; try again
    """

    code_of_class = ErrorCode.UNSTABLE_OFFSET_COMMIT
    advice = "try again"


class FencedMemberEpochError(BrokerError):
    r"""The group has moved on without this member.

    >>> print(str(FencedMemberEpochError("group 'billing', member 'ottla-1'")).replace("; ", ";\n", 1))
    FENCED_MEMBER_EPOCH: group 'billing', member 'ottla-1';
    process the records again that were not committed: somebody else may have got them
    """

    code_of_class = ErrorCode.FENCED_MEMBER_EPOCH
    advice = "process the records again that were not committed: somebody else may have got them"


class UnreleasedInstanceIdError(BrokerError):
    """A member with this group_instance_id is still in the group.

    >>> print(UnreleasedInstanceIdError("group 'billing', member 'ottla-1'"))
    UNRELEASED_INSTANCE_ID: group 'billing', member 'ottla-1'; stop the other one first, or wait until its session ends
    """

    code_of_class = ErrorCode.UNRELEASED_INSTANCE_ID
    advice = "stop the other one first, or wait until its session ends"


class UnsupportedAssignorError(BrokerError):
    r"""The broker does not have the assignor that was asked for.

    >>> print(str(UnsupportedAssignorError("group 'billing', member 'ottla-1'")).replace("; ", ";\n", 1))
    UNSUPPORTED_ASSIGNOR: group 'billing', member 'ottla-1';
    choose one of the broker's group.consumer.assignors, or none
    """

    code_of_class = ErrorCode.UNSUPPORTED_ASSIGNOR
    advice = "choose one of the broker's group.consumer.assignors, or none"


class StaleMemberEpochError(BrokerError):
    r"""The member's epoch is an old one.

    >>> print(str(StaleMemberEpochError("group 'billing', member 'ottla-1'")).replace("; ", ";\n", 1))
    STALE_MEMBER_EPOCH: group 'billing', member 'ottla-1';
    process the records again that were not committed: somebody else may have got them
    """

    code_of_class = ErrorCode.STALE_MEMBER_EPOCH
    advice = "process the records again that were not committed: somebody else may have got them"


class InvalidRegularExpressionError(BrokerError):
    """The broker cannot read the pattern.

    >>> print(InvalidRegularExpressionError("pattern 'orders-['"))
    INVALID_REGULAR_EXPRESSION: pattern 'orders-['; write it in RE2's syntax
    """

    code_of_class = ErrorCode.INVALID_REGULAR_EXPRESSION
    advice = "write it in RE2's syntax"
