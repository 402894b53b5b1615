"""The states of a classic group."""

from enum import Enum


class ClassicState(Enum):
    """Where a group stands; the values are the names that tools show."""

    EMPTY = "Empty"
    """No members."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for all members to join again."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """A new generation has begun; waiting for the leader to share the work out."""
    STABLE = "Stable"
    """Every member has its assignment, or can ask for it."""
    DEAD = "Dead"
    """Gone."""


_FOLLOWERS = {
    ClassicState.EMPTY: {ClassicState.PREPARING_REBALANCE, ClassicState.DEAD},
    ClassicState.PREPARING_REBALANCE: {ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY, ClassicState.DEAD},
    ClassicState.COMPLETING_REBALANCE: {ClassicState.STABLE, ClassicState.PREPARING_REBALANCE, ClassicState.DEAD},
    ClassicState.STABLE: {ClassicState.PREPARING_REBALANCE, ClassicState.DEAD},
    ClassicState.DEAD: set(),
}


def may_follow(now: ClassicState, then: ClassicState) -> bool:
    """Whether a group may go from one state to the other.

    >>> may_follow(ClassicState.PREPARING_REBALANCE, ClassicState.EMPTY)
    True
    >>> may_follow(ClassicState.EMPTY, ClassicState.STABLE)
    False
    """
    return then in _FOLLOWERS[now]
