"""What was committed and acknowledged, by whomever, to be found again whatever happens."""

from tests.broker.consumer_design.line import Line, Partition


class Ledger:
    """The last acknowledged offset of each partition of a group."""

    def __init__(self) -> None:
        self.offsets: dict[Partition, int] = {}

    def note(self, partition: Partition, offset: int) -> None:
        """A commit was acknowledged."""
        assert offset > self.offsets.get(partition, -1), f"{partition} went back to {offset}: {self.offsets}"
        self.offsets[partition] = offset

    def check(self, line: Line, group_id: str = "g") -> None:
        """All of it is there, once the group is loaded."""
        line.described(group_id)
        found = {(topic, index): line.committed(group_id, topic, partition=index)[0] for topic, index in self.offsets}
        assert found == self.offsets, "a commit that was acknowledged is lost"
