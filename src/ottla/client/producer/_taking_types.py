"""What the compiled taker and its twin share."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ottla.client.producer.accumulator import PartitionQueue

Headers = Iterable[tuple[str, bytes | None]]


class Untaken(NamedTuple):
    """A record that no open batch had room for, serialized, with what was found out on the way."""

    queue: "PartitionQueue | None"
    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp_ms: int
    headers: Headers
