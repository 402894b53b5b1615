"""What the groups of one shard have in common."""

from dataclasses import dataclass, field
from typing import Protocol

from ottla.cluster.image import ClusterImage
from ottla.config.broker import BrokerConfig
from ottla.coordinator.outcome import Outcome, Record
from ottla.coordinator.timers import Timers, Turns
from ottla.ports import Chance
from ottla.wire.api.list_groups import ListedGroup


@dataclass(slots=True)
class Context:
    """Settings, the picture of the cluster, timers and chance. Settings and picture are replaced as they change."""

    config: BrokerConfig
    image: ClusterImage
    chance: Chance
    timers: Timers = field(default_factory=Timers)
    """Keys are `(group_id, what, ...)`: the shard hands what is due to `Group.expire`."""
    turns: Turns = field(default_factory=Turns)
    """Shared with the other shards: one of them at a time goes on with long work."""


class Group(Protocol):
    """What both kinds of group can do; the shard asks them no matter which they are."""

    group_id: str

    @property
    def is_empty(self) -> bool:
        """Whether it has no members: it can be deleted, and anyone may commit for it."""
        ...

    @property
    def empty_since_ms(self) -> int | None:
        """When the last member went, by what is written down; None if it has members or that is not known."""
        ...

    def check_commit(self, now_ms: int, version: int, member_id: str, instance_id: str | None, epoch: int) -> None:
        """Refuse a commit by somebody who may not commit now (`epoch` is a generation in a classic group).

        A simple consumer has epoch -1 and no member id: it may commit only while the group is empty.
        """
        ...

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Refuse a fetch of offsets in the name of a member that is not one, or has another epoch (v9 and later)."""
        ...

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member reads that topic, as far as one can know: its offsets must not be deleted."""
        ...

    def listed(self) -> ListedGroup:
        """Its line in ListGroups."""
        ...

    def removal(self) -> list[Record]:
        """Records that remove it. Offsets are not among them."""
        ...

    def loaded(self, now_ms: int) -> Outcome:
        """Everything is replayed: begin to watch over its members."""
        ...

    def expire(self, now_ms: int, timer: tuple[str, ...]) -> Outcome:
        """A timer of this group is due: its key without the group id."""
        ...
