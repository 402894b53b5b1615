"""What a storm's members have said, held against what a group promises."""

import bisect
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Event:
    """Something that a member said, or that was seen of it."""

    member: str
    at_ns: int
    kind: str
    partitions: tuple[int, ...] = ()
    """`assigned`, `revoked`, `lost`: which."""
    spans: tuple[tuple[int, int, int], ...] = ()
    """`got`: partition, first and last offset."""
    offsets: Mapping[int, int] = field(default_factory=dict)
    """`committing`, `committed`: where to go on, by partition."""
    detail: str = ""


@dataclass(frozen=True)
class History:
    """All that is known of a storm."""

    produced: Mapping[int, int]
    """Records of each partition; they have the offsets from 0 on."""
    events: list[Event]
    """In the order of each member's own events; `paused` and `resumed` among them, noted by whoever did that to it."""
    observed: list[tuple[int, Mapping[int, int]]] = field(default_factory=list)
    """What somebody outside the group was told is committed, with the moment of the answer."""
    slack_ns: int = 0
    """How much later than it happened an assignment may have been noted down."""
    commits_are_told: bool = True
    """Whether members say what they are about to commit."""
    swallows_when_leaving: bool = False
    """Whether a member that is told to leave (`leaving`) may drop one record and commit it nevertheless."""


def judge(history: History) -> list[str]:
    """Everything that should not have been; an empty list is what a broker wants to read."""
    return [
        *(f"{event.member}: {event.kind}: {event.detail}" for event in history.events if event.kind == "wrong"),
        *_never_delivered(history),
        *_sessions(history),
    ]


def _never_delivered(history: History) -> list[str]:
    delivered: dict[int, set[int]] = defaultdict(set)
    for event in history.events:
        for partition, first, last in event.spans:
            delivered[partition].update(range(first, last + 1))
    missing = {
        (partition, offset)
        for partition, count in history.produced.items()
        for offset in set(range(count)) - delivered[partition]
    }
    if history.swallows_when_leaving:
        missing -= _swallowed(history, missing)
    return [f"partition {partition}: record {offset} was never delivered" for partition, offset in sorted(missing)]


def _swallowed(history: History, missing: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those that members which left would have delivered next; one for each of them."""
    found: set[tuple[int, int]] = set()
    for member in {event.member for event in history.events if event.kind == "leaving"}:
        nexts: dict[int, int] = {}
        for event in history.events:
            if event.member == member:
                nexts.update((partition, last + 1) for partition, _, last in event.spans)
        found.update(sorted(missing & nexts.items() - found)[:1])
    return found


class _Timeline:
    """The highest offset of each partition that was known by a moment."""

    def __init__(self, notes: list[tuple[int, Mapping[int, int]]]) -> None:
        self._moments: dict[int, list[int]] = defaultdict(list)
        self._highest: dict[int, list[int]] = defaultdict(list)
        for at_ns, offsets in sorted(notes, key=lambda note: note[0]):
            for partition, offset in offsets.items():
                highest = self._highest[partition]
                self._moments[partition].append(at_ns)
                highest.append(max(offset, highest[-1] if highest else 0))

    def before(self, partition: int, at_ns: int) -> int:
        count = bisect.bisect_left(self._moments[partition], at_ns)
        return self._highest[partition][count - 1] if count else 0


@dataclass
class _Session:
    """A member's time on a partition, from when it got it."""

    committed: int
    """What had been acknowledged by then."""
    next_offset: int | None = None


class _Clock:
    """When members got what they tell of.

    One that was paused may have had an assignment before that, and tells of it only when it goes on: the first thing
    that it says then counts as said before the pause.
    """

    def __init__(self) -> None:
        self._paused_ns: dict[str, int] = {}
        self._resumed: set[str] = set()

    def moment_ns(self, event: Event) -> int:
        if event.kind == "paused":
            self._paused_ns[event.member] = event.at_ns
            self._resumed.discard(event.member)
        elif event.kind == "resumed":
            self._resumed.add(event.member)
        elif event.member in self._resumed:
            self._resumed.discard(event.member)
            return self._paused_ns.pop(event.member)
        return self._paused_ns.get(event.member, event.at_ns)


def _sessions(history: History) -> list[str]:
    acknowledged = [(event.at_ns, event.offsets) for event in history.events if event.kind == "committed"]
    committed = _Timeline([*acknowledged, *history.observed])
    attempted = _Timeline([(event.at_ns, event.offsets) for event in history.events if event.kind == "committing"])
    clock = _Clock()
    sessions: dict[tuple[str, int], _Session] = {}
    found = []
    for event in history.events:
        moment_ns = clock.moment_ns(event) - history.slack_ns
        for partition in event.partitions:
            sessions.pop((event.member, partition), None)
            if event.kind == "assigned":
                sessions[event.member, partition] = _Session(committed.before(partition, moment_ns))
        for partition, first, last in event.spans:
            where = f"{event.member}, partition {partition}, offsets {first} to {last}"
            session = sessions.get((event.member, partition))
            if session is None:
                found.append(f"{where}: delivered while it did not have the partition")
                continue
            if first < session.committed:
                found.append(f"{where}: delivered again, although {session.committed} was committed before it started")
            if session.next_offset is None:
                farthest = attempted.before(partition, event.at_ns)
                if history.commits_are_told and first > farthest:
                    found.append(f"{where}: started behind {farthest}, the farthest that anybody meant to commit")
            elif first != session.next_offset:
                found.append(f"{where}: expected {session.next_offset} next")
            session.next_offset = last + 1
    return found


def longest_silence_ns(history: History) -> int:
    """The longest time between two deliveries of one partition, by whomever."""
    last: dict[int, int] = {}
    longest = 0
    for event in sorted(history.events, key=lambda event: event.at_ns):
        for partition, _, _ in event.spans:
            longest = max(longest, event.at_ns - last.get(partition, event.at_ns))
            last[partition] = event.at_ns
    return longest
