"""What a coordinator's method gives back: records to append, and answers that leave once they are committed.

A method changes no durable state. Its records are appended, then replayed, and only then does the reply leave; loading
after a start is the same replay. What is not in the records (who waits for a join, when a session ends) is soft state:
it is changed at once, and a coordinator that starts again does without it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.wire.embedded import encode_key, encode_versioned
from ottla.wire.schema import schema_of


class Record(NamedTuple):
    """One record of an internal topic: messages of `ottla.wire.embedded`, and the version that the value is written in.

    >>> from ottla.wire.embedded.offsets_topic import GroupMetadataKey
    >>> key, value = tombstone(GroupMetadataKey(group="g")).encoded()
    >>> key.hex(), value
    ('0002000167', None)
    """

    key: Any
    value: Any | None
    version: int = 0

    def encoded(self) -> tuple[bytes, bytes | None]:
        """Key and value as they stand in the log."""
        value = None if self.value is None else encode_versioned(self.value, self.version)
        return encode_key(self.key), value


def upsert(key: Any, value: Any, version: int | None = None) -> Record:
    """A record that sets a value, in the newest version unless told."""
    return Record(key, value, schema_of(type(value)).versions.last if version is None else version)


def tombstone(key: Any) -> Record:
    """A record that removes what the key stands for."""
    return Record(key, None)


class Ticket:
    """Stands for a reply that comes later: whoever gets one as a reply finds it again in `Outcome.released`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Ticket {id(self):x}>"


@dataclass(slots=True)
class Outcome:
    """What happened: records to append as one batch, the caller's reply, and replies for those who had to wait.

    All replies leave when the records are committed, and none of them if they could not be.
    """

    reply: Any = None
    """The response, or a `Ticket` if it comes later. None where nobody asked: a timer went off."""
    records: list[Record] = field(default_factory=list)
    released: list[tuple[Ticket, Any]] = field(default_factory=list)

    def then(self, other: "Outcome") -> "Outcome":
        """Both, one after the other; the reply is this one's unless it has none."""
        return Outcome(
            self.reply if self.reply is not None else other.reply,
            self.records + other.records,
            self.released + other.released,
        )


class Call(NamedTuple):
    """A request as the coordinator sees it."""

    version: int
    client_id: str
    client_host: str
    """As tools show it: "/127.0.0.1"."""
    body: Any
    may_see: Callable[[str], bool] | None = None
    """Whether the client may know of a topic of that name; None where everybody may know of all."""
