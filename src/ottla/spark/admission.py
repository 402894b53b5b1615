"""How much a batch of a streaming query takes."""

import math
from collections.abc import Mapping

from ottla.client.types import TopicPartition
from ottla.spark.offsets import Offsets


def share_out(limit: int, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> Offsets:
    """Where a batch ends that has about `limit` records: partitions have a share in it by what there is of them.

    Partitions that have little are not starved: each that has something gets one record at least, so that there may be
    a few more than `limit`.

    >>> orders, payments = TopicPartition("orders", 0), TopicPartition("payments", 0)
    >>> list(share_out(100, {orders: 0, payments: 50}, {orders: 300, payments: 150}).values())
    [75, 75]
    """
    sizes = {place: max(0, end - starts[place]) for place, end in ends.items()}
    total = sum(sizes.values())
    if total <= limit:
        return dict(ends)
    found: Offsets = {}
    for place, end in ends.items():
        share = limit * sizes[place] / total
        rows = math.ceil(share) if share < 1 else math.floor(share)
        found[place] = min(end, starts[place] + rows) if sizes[place] else end
    return found


class Patience:
    """Whether to wait until there are enough records for a batch."""

    def __init__(self, min_rows: int, max_delay_ms: int) -> None:
        self._min_rows = min_rows
        self._max_delay_ms = max_delay_ms
        self._last_ms: float | None = None

    def is_over(self, rows: int, now_ms: float) -> bool:
        """True if there are enough, or the last batch is too long ago; the first batch does not wait.

        >>> patience = Patience(100, 60_000)
        >>> patience.is_over(1, 0), patience.is_over(99, 59_999), patience.is_over(99, 60_000)
        (True, False, True)
        """
        waited_ms = math.inf if self._last_ms is None else now_ms - self._last_ms
        if rows < self._min_rows and waited_ms < self._max_delay_ms:
            return False
        self._last_ms = now_ms
        return True
