"""Ways to share partitions out, by name: the ones that come with Ottla, and whatever else is registered.

A broker offers those that `group.consumer.assignors` lists, the usual one first. An entry is a name, or the place of
an assignor of one's own, as "package.module:attribute".
"""

import re
from collections.abc import Iterable, Mapping
from importlib import import_module

from ottla.assign.assignor import Assignor, Member, Topic
from ottla.assign.range import RangeAssignor
from ottla.assign.uniform import UniformAssignor
from ottla.wire.errors import ErrorCode, KafkaError

_PLACE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")

_built_in: tuple[Assignor, ...] = (UniformAssignor(), RangeAssignor())
_known: dict[str, Assignor] = {assignor.name: assignor for assignor in _built_in}


def register(name: str, assignor: Assignor) -> None:
    """Have this assignor known by this name, in place of any that was."""
    _known[name] = assignor


def offered(entries: Iterable[str]) -> dict[str, Assignor]:
    """The assignors that such a list names, by their names and in order; the built-in ones if it names none.

    >>> list(offered(["range"])), list(offered([]))
    (['range'], ['uniform', 'range'])
    """
    found = {_known[entry].name if ":" in entry else entry: _known[entry] for entry in entries if entry in _known}
    return found or {assignor.name: assignor for assignor in _built_in}


def find(name: str, entries: Iterable[str] | None = None) -> Assignor:
    """The assignor of that name, among those on offer if these are given.

    >>> find("range").name
    'range'
    >>> find("fair", ["uniform", "range"])
    Traceback (most recent call last):
        ...
    ottla.wire.errors.KafkaError: UNSUPPORTED_ASSIGNOR: assignor 'fair' is not known here; choose from uniform, range
    """
    choice = offered(_known if entries is None else entries)
    if (found := choice.get(name)) is None:
        shown = name if len(name) <= 100 else name[:100] + "..."
        message = f"assignor {shown!r} is not known here; choose from {', '.join(choice)}"
        raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    return found


def load(entries: Iterable[str]) -> list[Assignor]:
    """Import and register what the entries name: done once, when a broker starts, since it runs other people's code.

    >>> [assignor.name for assignor in load(["range", "ottla.assign.uniform:UniformAssignor"])]
    ['range', 'uniform']
    >>> load(["fair"])
    Traceback (most recent call last):
        ...
    ValueError: group.consumer.assignors: 'fair' is not among uniform, range, nor a place like package.module:attribute
    """
    return [_load(entry) for entry in entries]


def _load(entry: str) -> Assignor:
    if entry in _known:
        return _known[entry]
    if not _PLACE.fullmatch(entry):
        names = ", ".join(assignor.name for assignor in _built_in)
        raise _bad(f"{entry!r} is not among {names}, nor a place like package.module:attribute")
    module, _, attribute = entry.partition(":")
    try:
        found = getattr(import_module(module), attribute)
        assignor = found() if isinstance(found, type) else found
    # Other people's code can raise anything, and whoever starts the broker must learn where.
    except Exception as error:
        raise _bad(f"{entry!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(getattr(assignor, "name", None), str) or not callable(getattr(assignor, "assign", None)):
        raise _bad(f"{entry!r} is a {type(assignor).__name__}; an assignor has a name and a method assign")
    other = _known.get(assignor.name)
    if other is not None and type(other) is not type(assignor):
        raise _bad(f"{entry!r} calls itself {assignor.name!r}, and there is another assignor of that name")
    _known[entry] = assignor
    _known.setdefault(assignor.name, assignor)
    return _known[entry]


def _bad(complaint: str) -> ValueError:
    return ValueError(f"group.consumer.assignors: {complaint}")


def assign(
    assignor: Assignor, members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int]
) -> dict[str, dict[Topic, tuple[int, ...]]]:
    """Have the assignor share out, and check its answer if it is somebody else's: two owners must never be."""
    if type(assignor) in {type(one) for one in _built_in}:
        return assignor.assign(members, partition_counts)
    try:
        answer = assignor.assign(members, partition_counts)
        complaint = check_assignment(members, partition_counts, answer)
    except Exception as error:  # noqa: BLE001
        complaint = f"{type(error).__name__}: {error}"
    if complaint is not None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"assignor {assignor.name!r} failed: {complaint}")
    return answer


def check_assignment(
    members: Mapping[str, Member[Topic]],
    partition_counts: Mapping[Topic, int],
    assignment: Mapping[str, Mapping[Topic, tuple[int, ...]]],
) -> str | None:
    """What is wrong with an assignor's answer, or None: all members, all partitions, each once and to a reader.

    >>> reader = Member(frozenset({"orders"}))
    >>> check_assignment({"a": reader, "b": reader}, {"orders": 2}, {"a": {"orders": (0, 1)}, "b": {"orders": (1,)}})
    "partition 1 of topic 'orders' went to a and to b"
    """
    if assignment.keys() != members.keys():
        return "the members in the answer are not those of the group"
    owners: dict[Topic, dict[int, str]] = {}
    for member_id, partitions in assignment.items():
        for topic, indexes in partitions.items():
            if topic not in members[member_id].topics:
                return f"{member_id} got topic {topic!r}, to which it is not subscribed"
            if list(indexes) != sorted(set(indexes)) or not indexes:
                return f"{member_id} got {indexes!r} of topic {topic!r}, which is not in order"
            if indexes[0] < 0 or indexes[-1] >= partition_counts.get(topic, 0):
                return f"{member_id} got {indexes!r} of topic {topic!r}, which has {partition_counts.get(topic, 0)}"
            topic_owners = owners.setdefault(topic, {})
            for index in indexes:
                if (other := topic_owners.setdefault(index, member_id)) != member_id:
                    return f"partition {index} of topic {topic!r} went to {other} and to {member_id}"
    for topic in frozenset().union(*(member.topics for member in members.values())):
        if len(owners.get(topic, ())) != partition_counts.get(topic, 0):
            return f"topic {topic!r} has {partition_counts[topic]} partitions and {len(owners.get(topic, ()))} went out"
    return None
