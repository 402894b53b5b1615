"""Sequence numbers, by which a broker stores a batch once and in order however often it is sent. Decisions only, no IO.

A batch gets its numbers when it is first sent and keeps them while it is sent again. A broker takes a batch only if its
numbers follow those of the last one, so once a batch is given up, those behind it are refused, and the numbers have to
begin anew, under another epoch of the producer. That must wait until no batch under the old epoch can still have been
written: such a batch is sent again under its old numbers until a broker has said what became of it.
"""

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import NamedTuple, Protocol

from ottla.wire.errors import ErrorCode

LARGEST_EPOCH = 2**15 - 1
SEQUENCE_MASK = 2**31 - 1
REMEMBERED = 5
"""Brokers recognise the last five batches of a producer when they come again, and no others."""


class Identity(NamedTuple):
    """Who a producer is to the brokers, and in which of its lives."""

    producer_id: int = -1
    epoch: int = -1


NOBODY = Identity()


class Numbered(Protocol):
    """What is numbered: a batch."""

    identity: Identity
    sequence: int
    place: int
    doubtful: bool
    refused: bool

    @property
    def count(self) -> int:
        """How many records it has."""
        ...


class Verdict(Enum):
    """What a broker's answer to a batch means."""

    WRITTEN = auto()
    AGAIN = auto()
    REFUSED = auto()
    """It was not written, since its numbers do not follow those before it, or its identity is not taken any more."""
    SPLIT = auto()
    FAILED = auto()


_NOT_WRITTEN = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""Errors after which it may be tried again, and which say that nothing was written. Others leave that open."""

_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_IDENTITY_SPENT = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)


def judge(code: ErrorCode, batch: Numbered) -> Verdict:
    """What an answer means for a batch; notes on it whether it may have been written."""
    numbered = batch.identity is not NOBODY
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return Verdict.WRITTEN
    if numbered and code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        # Had an earlier copy been written, the broker would know its numbers. So there is no doubt left.
        return Verdict.REFUSED
    if numbered and (code is ErrorCode.UNKNOWN_PRODUCER_ID or code in _IDENTITY_SPENT):
        # What the broker knew of the producer is gone, and with it whether an earlier copy was written.
        return Verdict.FAILED if batch.doubtful else Verdict.REFUSED
    if code in _TOO_LARGE and batch.count > 1 and not (numbered and batch.doubtful):
        return Verdict.SPLIT
    if code.retriable:
        batch.doubtful = batch.doubtful or code not in _NOT_WRITTEN
        return Verdict.AGAIN
    return Verdict.FAILED


class Sequences:
    """The numbers of one partition.

    >>> sequences = Sequences()
    >>> sequences.begin(Identity(7, 0))
    >>> sequences.take(3), sequences.take(2), sequences.following
    (0, 3, 5)
    """

    __slots__ = ("batches", "broken", "confirmed", "following", "identity", "spent")

    def __init__(self) -> None:
        self.identity = NOBODY
        self.following = 0
        """The number of the next record."""
        self.batches = 0
        """How many batches were numbered, which is the place of the next one."""
        self.broken = True
        """Whether the next number cannot follow those that were given out, so that a new identity is needed."""
        self.spent = False
        """Whether no epoch of this identity is taken any more."""
        self.confirmed = False
        """Whether a broker knows this identity. One that does not takes any number for the first, so until then a
        batch must not be sent before the one in front of it is known to be written."""

    def begin(self, identity: Identity) -> None:
        """Count from 0 under a new identity."""
        self.identity, self.following = identity, 0
        self.broken = self.spent = self.confirmed = False

    def take(self, count: int) -> int:
        """The first of so many numbers."""
        assert not self.broken, "the numbers have to begin anew"
        first = self.following
        self.following = (first + count) & SEQUENCE_MASK
        self.batches += 1
        return first

    def may_leave(self, batch: Numbered, oldest: Numbered | None) -> bool:
        """Whether a batch may be sent while `oldest` is the first that is under way.

        As long as it is not known whether that one was written, it may have to be sent again, and must be recognised:
        so no more than four may be written after it.
        """
        if oldest is None:
            return True
        place = batch.place
        if batch.identity is NOBODY:
            if self.broken:
                return False
            place = self.batches
        return self.confirmed and place - oldest.place < REMEMBERED

    def confirm(self, batch: Numbered) -> None:
        """A batch was written."""
        if batch.identity == self.identity:
            self.confirmed = True

    def successor(self, newest: Identity) -> Identity | None:
        """The identity to begin anew with, given the newest of the producer; None if another has to be asked for."""
        if newest is NOBODY:
            return None
        if newest.producer_id != self.identity.producer_id:
            return newest
        if self.spent or self.identity.epoch >= LARGEST_EPOCH - 1:
            return None
        return Identity(newest.producer_id, self.identity.epoch + 1)

    def split(self, whole: Numbered, parts: Sequence[Numbered], behind: Iterable[Numbered]) -> None:
        """A batch was split, so those behind it are further behind."""
        more = len(parts) - 1
        for number, part in enumerate(parts):
            part.place = whole.place + number
        for batch in behind:
            if batch.identity == whole.identity and batch.place > whole.place:
                batch.place += more
        self.batches += more

    def give_up(self, batch: Numbered) -> None:
        """A batch will not be sent again, and is not known to be written. What is behind it cannot follow it."""
        if batch.identity == self.identity and batch.identity is not NOBODY:
            self.broken = True

    def refuse(self, batch: Numbered, code: ErrorCode) -> None:
        """A broker has refused a batch for its numbers."""
        batch.refused = True
        if code in _IDENTITY_SPENT and batch.identity == self.identity:
            self.spent = True

    def regroup(self, waiting: Sequence[Numbered]) -> None:
        """Decide on the batches that wait, in their order, while none is under way and some came back.

        If the first was refused, the gap is right before it: all are known not to be written, and get new numbers. A
        later one may have been refused only because the first was not there yet.
        """
        if waiting and waiting[0].refused and waiting[0].identity is not NOBODY:
            self.broken = True
            for batch in waiting:
                batch.identity, batch.sequence, batch.doubtful = NOBODY, -1, False
        for batch in waiting:
            batch.refused = False
