"""Orders that do not depend on chance, so that the same input gives the same answer."""

from collections.abc import Iterable, Mapping

from ottla.assign.assignor import Member, Topic


def topics_in_order(topics: Iterable[Topic]) -> list[Topic]:
    """Topics by how they are written: names and ids alike have an order then.

    >>> topics_in_order({"b", "a"})
    ['a', 'b']
    """
    return sorted(topics, key=repr)


def members_in_order(members: Mapping[str, Member[Topic]]) -> list[str]:
    """Member ids: static members first and by their own names, which stay when their member ids change.

    >>> a, b, c = Member(frozenset()), Member(frozenset()), Member(frozenset(), instance_id="one")
    >>> members_in_order({"b": b, "a": a, "c": c})
    ['c', 'a', 'b']
    """
    return sorted(members, key=lambda member_id: _place(member_id, members[member_id].instance_id))


def _place(member_id: str, instance_id: str | None) -> tuple[bool, str, str]:
    return instance_id is None, instance_id or "", member_id
