"""Does around a coordinator what the broker does, in virtual time and without a disk.

`Harness(make)` takes what makes the subject: a `GroupShard`, or a group in `OneClassicGroup`. Requests and replies pass
through the codec in the version that is asked for; records are encoded, kept in `log`, and replayed from there. What a
version cannot carry, and what is not written down, is lost here as it would be in a broker.
"""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from ottla.coordinator.group.classic import ClassicGroup
from ottla.coordinator.group.context import Context
from ottla.coordinator.outcome import Call, Outcome, Ticket
from ottla.wire.compile import decoder, encode
from ottla.wire.embedded import decode_key, decode_versioned
from ottla.wire.embedded.offsets_topic import GroupMetadataKey, GroupMetadataValue
from ottla.wire.errors import ErrorCode


class Subject(Protocol):
    """What is looked after; `GroupShard` is one."""

    @property
    def next_deadline_ms(self) -> int | None: ...
    def replay(self, key: bytes, value: bytes | None) -> None: ...
    def loaded(self, now_ms: int) -> Outcome: ...
    def expire(self, now_ms: int) -> Outcome: ...


S = TypeVar("S", bound=Subject)


class Answer:
    """A reply that has come, or has yet to. One who waited when the coordinator stopped never gets it."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.is_lost = False
        self._reply: Any = None

    def come(self, reply: Any) -> None:
        """The reply leaves the broker."""
        assert self._reply is None, "answered twice"
        assert not self.is_lost, "answered by a coordinator that had stopped"
        self._reply = decoder(type(reply), self.version)(encode(reply, self.version), 0)[0]

    @property
    def is_waiting(self) -> bool:
        return self._reply is None and not self.is_lost

    @property
    def reply(self) -> Any:
        assert self._reply is not None, "no answer yet"
        return self._reply

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(self.reply.error_code)


class Harness(Generic[S]):
    """Runs a subject: calls it, writes down what it says, hands answers out, lets time pass, starts it again."""

    def __init__(self, make: Callable[[], S], now_ms: int = 1_000_000) -> None:
        self._make = make
        self.now_ms = now_ms
        self.log: list[tuple[bytes, bytes | None]] = []
        self.waiting: dict[Ticket, Answer] = {}
        self.subject = make()
        self._apply(self.subject.loaded(now_ms))

    def ask(self, method: Callable[[int, Call], Outcome], body: Any, version: int, client_id: str = "client") -> Answer:
        """Send a request."""
        body = decoder(type(body), version)(encode(body, version), 0)[0]
        outcome = method(self.now_ms, Call(version, client_id, "/127.0.0.1", body))
        answer = Answer(version)
        if isinstance(outcome.reply, Ticket):
            assert all(ticket is not outcome.reply for ticket, _ in outcome.released)
            self.waiting[outcome.reply] = answer
        self._apply(outcome)
        if not isinstance(outcome.reply, Ticket):
            answer.come(outcome.reply)
        return answer

    def _apply(self, outcome: Outcome) -> None:
        written = [record.encoded() for record in outcome.records]
        self.log += written
        for key, value in written:
            self.subject.replay(key, value)
        for ticket, reply in outcome.released:
            self.waiting.pop(ticket).come(reply)

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass, and what is due happen when it is due."""
        end_ms = self.now_ms + duration_ms
        while (due_ms := self.subject.next_deadline_ms) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self._apply(self.subject.expire(self.now_ms))
        self.now_ms = end_ms

    def restart(self) -> None:
        """Start the coordinator again with nothing but what is written down."""
        for answer in self.waiting.values():
            answer.is_lost = True
        self.waiting.clear()
        self.subject = self.replayed()
        self._apply(self.subject.loaded(self.now_ms))

    def replayed(self) -> S:
        """What a start would make of the log, before it is told that it is loaded."""
        fresh = self._make()
        for key, value in self.log:
            fresh.replay(key, value)
        return fresh


class OneClassicGroup:
    """A classic group without the shard around it."""

    def __init__(self, context: Context, group_id: str = "group") -> None:
        self.context = context
        self.group = ClassicGroup(context, group_id)

    @property
    def next_deadline_ms(self) -> int | None:
        return self.context.timers.next_ms

    def replay(self, key: bytes, value: bytes | None) -> None:
        assert decode_key(GroupMetadataKey, key).group == self.group.group_id
        assert value is not None
        self.group.replay(decode_versioned(GroupMetadataValue, value))

    def loaded(self, now_ms: int) -> Outcome:
        return self.group.loaded(now_ms)

    def expire(self, now_ms: int) -> Outcome:
        timer = next(self.context.timers.due(now_ms))
        assert isinstance(timer, tuple)
        assert timer[0] == self.group.group_id
        return self.group.expire(now_ms, timer[1:])
