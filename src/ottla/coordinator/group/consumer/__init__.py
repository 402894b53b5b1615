"""The consumer protocol: the coordinator decides who reads what, and members follow one heartbeat after another.

state.py      what is written down of a group, and how records change it
member.py     a member: what it said of itself, and how far it has come       partitions.py  sets of partitions
reconcile.py  the next step of a member towards what it is meant to have
draft.py      a change while it is worked out: subscriptions, the group's epoch, the target assignment
core.py       what all requests work on: state, timers (watch.py), members that go
check.py      what requests may say      heartbeat.py  what they do           describe.py    what tools see
regex.py      subscriptions by regular expression
classic.py    classic members of such a group       protocol.py  what they tell each other
migrate.py    groups that change their protocol while they run
"""

from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.state import ConsumerState

__all__ = ["ConsumerGroup", "ConsumerState"]
