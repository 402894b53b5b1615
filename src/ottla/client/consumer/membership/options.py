"""How a consumer takes part in its group."""

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.assign import classic
from ottla.assign.assignor import Assignor
from ottla.client.checks import check_number, check_text
from ottla.record._kernel_types import LARGEST_INT32

PROTOCOLS = ("classic", "consumer")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """How a consumer takes part in its group. The names are those of other Python clients.

    >>> GroupOptions(group_id="billing").is_cooperative
    False
    >>> GroupOptions(group_id="billing", heartbeat_interval_ms=60_000)
    Traceback (most recent call last):
    ValueError: heartbeat_interval_ms is 60000; it must be less than session_timeout_ms, which is 45000
    """

    group_id: str
    group_protocol: str = "classic"
    """`classic`, or `consumer` for the one of Kafka 4, in which the broker shares out."""
    group_remote_assignor: str | None = None
    """Which of its assignors the broker should use, with the protocol `consumer`."""
    group_instance_id: str | None = None
    """The name of a static member, which keeps its partitions while it is started anew."""
    partition_assignment_strategy: Sequence[str | Assignor] = ("range", "cooperative-sticky")
    """Assignors for the protocol `classic`, the preferred one first."""
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    session_timeout_ms: int = 45_000
    """How long the group waits for a silent member, and a member for a silent group."""
    heartbeat_interval_ms: int = 3_000
    """With the protocol `consumer` the broker decides."""
    max_poll_interval_ms: int = 300_000
    """How long the user may take until he comes for more records, before others get his partitions."""
    rebalance_timeout_ms: int | None = None
    """How long the group waits for a member that has to give up partitions; `max_poll_interval_ms` if None."""
    require_stable: bool = False
    """Wait for transactions that commit offsets, as those who read only what is committed must."""
    exclude_internal_topics: bool = True
    allow_auto_create_topics: bool = True
    client_rack: str | None = None

    def __post_init__(self) -> None:
        check_text("group_id", self.group_id)
        if not self.group_id:
            raise ValueError("group_id is empty; give the group a name, or None to read without one")
        if self.group_protocol not in PROTOCOLS:
            raise ValueError(f"group_protocol is {self.group_protocol!r}; it must be one of {', '.join(PROTOCOLS)}")
        if self.group_instance_id is not None:
            check_text("group_instance_id", self.group_instance_id)
        if self.group_instance_id == "":
            raise ValueError("group_instance_id is empty; give the member a name, or None if it has none")
        if isinstance(self.partition_assignment_strategy, str) or not self.partition_assignment_strategy:
            given = self.partition_assignment_strategy
            raise ValueError(f"partition_assignment_strategy is {given!r}; give a list of names or assignors")
        names = [classic.find(choice).name for choice in self.partition_assignment_strategy]
        if len(set(names)) < len(names):
            raise ValueError(f"partition_assignment_strategy names an assignor twice: {', '.join(names)}")
        for name, most in _MOST.items():
            if (value := getattr(self, name)) is not None:
                check_number(name, value, 1, most)
        if self.group_protocol == "classic" and self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms is {self.heartbeat_interval_ms}; "
                f"it must be less than session_timeout_ms, which is {self.session_timeout_ms}"
            )

    @property
    def rebalance_patience_ms(self) -> int:
        """How long the group waits for this member in a rebalance."""
        return self.max_poll_interval_ms if self.rebalance_timeout_ms is None else self.rebalance_timeout_ms

    @property
    def is_cooperative(self) -> bool:
        """Whether partitions that stay are read on during a rebalance: if all assignors allow it."""
        return all(classic.is_cooperative(choice) for choice in self.partition_assignment_strategy)


_MOST = {
    "auto_commit_interval_ms": None,
    "session_timeout_ms": LARGEST_INT32,
    "heartbeat_interval_ms": None,
    "max_poll_interval_ms": LARGEST_INT32,
    "rebalance_timeout_ms": LARGEST_INT32,
}
"""Times of which there must be one millisecond at least. The coordinator is told some of them."""
