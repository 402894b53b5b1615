"""The classic protocol: members join, one of them shares the work out, the coordinator only keeps them in step.

state.py      the states, and which may follow which
member.py     a member, and what it is subscribed to
roster.py     all members of a group, and what they can agree on
rebalance.py  a round: who waits for it, when it ends, what is written down, what loading makes of that
join.py, sync.py, leave.py    what the requests do to it
group.py      the group as the shard sees it
"""

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.member import Member
from ottla.coordinator.group.classic.state import ClassicState

__all__ = ["ClassicGroup", "ClassicState", "Member"]
