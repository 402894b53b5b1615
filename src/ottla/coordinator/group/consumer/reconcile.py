"""The next step of a member from what it has to what it is meant to have.

A partition has one owner at any moment because of two rules. A member is asked to give up first, and gets nothing new
before it has said that it did. And a partition goes to nobody while another member has it or is giving it up.
"""

from collections.abc import Callable

from ottla.coordinator.group.consumer import partitions
from ottla.coordinator.group.consumer.member import Current, Progress
from ottla.coordinator.group.consumer.partitions import Partitions
from ottla.wire.errors import ErrorCode, KafkaError


def reconcile(
    current: Current,
    target_epoch: int,
    target: Partitions,
    owned: Partitions | None,
    is_free: Callable[[bytes, int], bool],
) -> Current:
    """What the member has next; the same object if nothing changes.

    `owned` is what the member says it has, None if it did not say; `is_free` tells whether no other member has or is
    giving up a partition.

    >>> has_both = Current(4, 4, assigned={b"t": (0, 1)})
    >>> gives_up = reconcile(has_both, 5, {b"t": (0, 2)}, None, lambda topic, index: True)
    >>> gives_up.progress.name, gives_up.epoch, gives_up.assigned, gives_up.revoking
    ('UNREVOKED_PARTITIONS', 4, {b't': (0,)}, {b't': (1,)})
    >>> done = reconcile(gives_up, 5, {b"t": (0, 2)}, {b"t": (0,)}, lambda topic, index: True)
    >>> done.progress.name, done.epoch, done.assigned
    ('STABLE', 5, {b't': (0, 2)})
    """
    epoch = current.epoch
    if current.is_at(target_epoch):
        return current
    if current.progress is Progress.UNREVOKED_PARTITIONS:
        if _has(owned, current.revoking):
            return current
        epoch = min(epoch + 1, target_epoch)
    if current.progress is Progress.UNKNOWN and (owned is None or owned):
        message = "the member is in a state that a newer version wrote: it must give up its partitions and join again"
        raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, message)
    next_ = _towards(current, epoch, target_epoch, target, owned, is_free)
    return current if next_ == current else next_


def _towards(
    current: Current,
    epoch: int,
    target_epoch: int,
    target: Partitions,
    owned: Partitions | None,
    is_free: Callable[[bytes, int], bool],
) -> Current:
    keeps = partitions.common(current.assigned, target)
    gives_up = partitions.without(current.assigned, target)
    if gives_up and _has(owned, gives_up):
        return Current(epoch, _previous(current, epoch), Progress.UNREVOKED_PARTITIONS, keeps, gives_up)
    lacks = partitions.without(target, keeps)
    gets = {topic_id: tuple(i for i in indexes if is_free(topic_id, i)) for topic_id, indexes in lacks.items()}
    gets = {topic_id: indexes for topic_id, indexes in gets.items() if indexes}
    progress = Progress.STABLE if gets == lacks else Progress.UNRELEASED_PARTITIONS
    assigned = partitions.together(keeps, gets)
    return Current(target_epoch, _previous(current, target_epoch), progress, assigned)


def _previous(current: Current, epoch: int) -> int:
    """A member whose answer was lost comes with the epoch that it had before the last rise."""
    return current.epoch if current.epoch != epoch else current.previous_epoch


def _has(owned: Partitions | None, given_up: Partitions) -> bool:
    return owned is None or partitions.overlap(owned, given_up)
