"""What a request may say, and who may say it."""

from ottla.assign import assignors
from ottla.config.broker import BrokerConfig
from ottla.coordinator.group.consumer import partitions
from ottla.coordinator.group.consumer.member import JOINS, LEAVES, LEAVES_FOR_NOW, Member
from ottla.coordinator.group.consumer.partitions import Partitions
from ottla.coordinator.group.consumer.state import GroupState
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.errors import ErrorCode, KafkaError

FIRST_VERSION_WITH_CLIENTS_OWN_IDS = 1
FIRST_COMMIT_VERSION_WITH_EPOCHS = 9


def check_request(config: BrokerConfig, version: int, request: ConsumerGroupHeartbeatRequest) -> None:
    """INVALID_REQUEST for what makes no sense in any group; UNSUPPORTED_ASSIGNOR for one that is not on offer."""
    epoch = request.member_epoch
    if not request.group_id:
        raise _invalid("group id: must not be empty")
    if not request.member_id and (version >= FIRST_VERSION_WITH_CLIENTS_OWN_IDS or epoch != JOINS):
        raise _invalid("member id: must not be empty")
    if request.instance_id == "":
        raise _invalid("instance id: must not be empty; null means none")
    if request.rack_id == "":
        raise _invalid("rack id: must not be empty; null means none")
    if epoch < LEAVES_FOR_NOW:
        raise _invalid(f"member epoch {epoch}: must be an epoch, 0 to join, -1 to leave or -2 to leave for a while")
    if epoch == LEAVES_FOR_NOW and request.instance_id is None:
        raise _invalid("member epoch -2: only static members leave for a while, and there is no instance id")
    if request.rebalance_timeout_ms < -1 or (epoch == JOINS and request.rebalance_timeout_ms < 0):
        raise _invalid(f"rebalance timeout {request.rebalance_timeout_ms} ms: must be given, and not negative, to join")
    if epoch == JOINS:
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("topic partitions: must be there and empty to join")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("subscription: names or a regular expression must be given to join")
    if request.server_assignor is not None and epoch >= JOINS:
        assignors.find(request.server_assignor, config.group_consumer_assignors)


def check_epoch(member: Member, epoch: int, owned: Partitions | None) -> None:
    """FENCED_MEMBER_EPOCH unless the member speaks from the epoch that it is in.

    One that joins anew has nothing, so it may always; one that never got the last answer is still in the epoch before,
    and has nothing that it was not given.
    """
    current = member.current
    if epoch in (current.epoch, JOINS):
        return
    lost = epoch == current.previous_epoch and owned is not None and partitions.within(owned, current.assigned)
    if not lost:
        message = f"member epoch {epoch} is not {current.epoch}: give up all partitions and join again"
        raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def check_room(state: GroupState, most: int, member_id: str, instance_id: str | None) -> None:
    """GROUP_MAX_SIZE_REACHED if a new member is one too many."""
    if member_id in state.members or state.static_member(instance_id) is not None:
        return
    if len(state.members) >= most:
        message = f"group {state.group_id!r} has {len(state.members)} members, and at most {most} are allowed"
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def existing_member(state: GroupState, member_id: str, instance_id: str | None) -> Member:
    """The member; UNKNOWN_MEMBER_ID if there is none, FENCED_INSTANCE_ID if another has its name by now."""
    if instance_id is None:
        found = state.members.get(member_id)
        if found is None:
            message = f"group {state.group_id!r} has no member {member_id!r}"
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return found
    found = state.static_member(instance_id)
    if found is None:
        message = f"group {state.group_id!r} has no member with instance id {instance_id!r}"
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    if found.member_id != member_id:
        message = f"instance id {instance_id!r} belongs to member {found.member_id!r} by now"
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, message)
    return found


def check_commit(state: GroupState, version: int, member_id: str, instance_id: str | None, epoch: int) -> None:
    """Refuse a commit by somebody who may not commit now."""
    if epoch < 0 and not state.members:
        return
    member = existing_member(state, member_id, instance_id)
    if not member.is_classic and version < FIRST_COMMIT_VERSION_WITH_EPOCHS:
        message = f"members of the consumer protocol commit with version 9 or later, not {version}"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
    check_same_epoch(member, epoch)


def check_fetch(state: GroupState, member_id: str | None, epoch: int) -> None:
    """Refuse a fetch of offsets in the name of a member that is not one, or from another epoch."""
    if not member_id and epoch < 0:
        return
    check_same_epoch(existing_member(state, member_id or "", None), epoch)


def check_same_epoch(member: Member, epoch: int) -> None:
    """STALE_MEMBER_EPOCH, or ILLEGAL_GENERATION for a classic member, unless this is the epoch that it is in."""
    if epoch != member.current.epoch:
        code = ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
        raise KafkaError(code, f"epoch {epoch} is not {member.current.epoch}, the one that the member is in")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


__all__ = [
    "JOINS",
    "LEAVES",
    "LEAVES_FOR_NOW",
    "check_commit",
    "check_epoch",
    "check_fetch",
    "check_request",
    "check_room",
    "check_same_epoch",
    "existing_member",
]
