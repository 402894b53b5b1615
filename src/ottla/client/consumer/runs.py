"""A run of records on its way to the user, and how far he has come in it."""

from operator import length_hint

from ottla.client.types import ConsumerRecord


class Run:
    """Records of one partition that are handed out in order.

    How far the user is shows in the list's own iterator, so that nothing is counted per record.

    >>> run = Run([ConsumerRecord("orders", 0, offset, 0, 0, None, b"", ()) for offset in (7, 9)], 7, 12)
    >>> next(run.iterator).offset, run.position, run.left
    (7, 8, 1)
    >>> next(run.iterator).offset, run.position, run.left
    (9, 12, 0)
    """

    __slots__ = ("iterator", "leader_epoch", "next_offset", "records", "start_offset")

    def __init__(
        self, records: list[ConsumerRecord], start_offset: int, next_offset: int, leader_epoch: int = -1
    ) -> None:
        self.records = records
        self.iterator = iter(records)
        self.start_offset = start_offset
        """The position before the first record, which may be before its offset."""
        self.next_offset = next_offset
        """The position after the last record; offsets between the two may have no record."""
        self.leader_epoch = leader_epoch
        """The epoch in which they were written, -1 if that is not known."""

    @property
    def left(self) -> int:
        """How many records have not been handed out."""
        return length_hint(self.iterator)

    @property
    def last_offset(self) -> int | None:
        """The offset of the record that was handed out last, if any was."""
        taken = len(self.records) - self.left
        return self.records[taken - 1].offset if taken else None

    @property
    def position(self) -> int:
        """The offset after what was handed out."""
        left = self.left
        if not left:
            return self.next_offset
        taken = len(self.records) - left
        return self.records[taken - 1].offset + 1 if taken else self.start_offset

    def cut(self) -> "Run | None":
        """End the run at what was handed out; what was not is returned as another run.

        Whoever is iterating finds the end at the next step.
        """
        # In one step, as the user may be iterating in another thread: each record goes to him or is left.
        rest = list(self.iterator)
        if not rest:
            return None
        del self.records[-len(rest) :]
        position = self.records[-1].offset + 1 if self.records else self.start_offset
        later = Run(rest, position, self.next_offset, self.leader_epoch)
        self.next_offset = position
        return later
