"""What a streaming query has done: its lag, its speed, and its place told to a group, so that lag tools see it.

Spark keeps the places of a query in its checkpoint and tells no broker. With the option `commitOffsets` of the source,
or with a `CommitListener`, they are committed to a group as well. Nobody reads them back: the checkpoint decides where
a query goes on.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ottla.client.admin.group_offsets import GroupOffsetAdmin
from ottla.client.cluster import Cluster
from ottla.client.options import ClientOptions
from ottla.client.types import TopicPartition
from ottla.net.security import SecurityOptions, security_of
from ottla.spark.connections import connected
from ottla.spark.offsets import START_KEY, Offsets, from_json_dict
from ottla.wire.errors import KafkaError

PATIENCE_MS = 5_000
"""How long a commit may take: it tells others how far a query is, and must not hold the query up."""

log = logging.getLogger(__name__)


class GroupCommitter:
    """Tells a group how far a query has come. What goes wrong is logged: the query does not depend on it."""

    def __init__(self, client: ClientOptions, group_id: str) -> None:
        self._client = client
        self._group_id = group_id
        self._committed: Offsets = {}

    def commit(self, offsets: Mapping[str, Any]) -> None:
        """Commit `{"orders": {"0": 17}}`: all before these is done. Only what has changed is sent."""
        found = from_json_dict(offsets)
        changed = {place: offset for place, offset in found.items() if self._committed.get(place) != offset}
        if not changed:
            return
        try:
            connected(self._client, _commit, self._group_id, changed)
        except KafkaError as error:
            log.warning("the group %s was not told how far the query is: %s", self._group_id, error)
        else:
            self._committed |= changed


async def _commit(cluster: Cluster, group_id: str, offsets: Offsets) -> None:
    admin = GroupOffsetAdmin(cluster)
    await cluster.retrying(lambda: admin.alter_consumer_group_offsets(group_id, offsets), timeout_ms=PATIENCE_MS)


class CommitListener(StreamingQueryListener):
    """Commits to a group where each micro-batch of a query ended, as soon as it is done.

    `spark.streams.addListener(CommitListener("orders-etl", bootstrap_servers="broker-1:9092"))` serves all queries of
    the session, or with `query_name` one of them. The option `commitOffsets` of the source needs no listener, but
    commits a micro-batch when Spark asks for the next.
    """

    def __init__(
        self,
        group_id: str,
        *,
        bootstrap_servers: str = "localhost:9092",
        query_name: str | None = None,
        **security: Unpack[SecurityOptions],
    ) -> None:
        client = ClientOptions(bootstrap_servers=bootstrap_servers, security=security_of(security, type(self).__name__))
        self._committer = GroupCommitter(client, group_id)
        self._query_name = query_name

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing is done yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """A micro-batch is done."""
        progress = json.loads(event.progress.json)
        if self._query_name in (None, progress.get("name")):
            for offsets in end_offsets(progress):
                self._committer.commit(offsets)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """There is nothing new."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """All that was done is committed."""


def end_offsets(progress: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Where the micro-batch ended in each source that reads topics; those of other kinds have offsets of other forms.

    >>> end_offsets({"sources": [{"endOffset": {"orders": {"0": 5}}}, {"endOffset": {"seconds": 17}}]})
    [{'orders': {'0': 5}}]
    """
    return [end for source in progress.get("sources", ()) if _has_form(end := source.get("endOffset"))]


def lag_of(progress: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """How many records each partition had beyond the micro-batch when it began, from a query's progress.

    >>> source = {"endOffset": {"orders": {"0": 5}}, "latestOffset": {"orders": {"0": 8}}}
    >>> {str(place): lag for place, lag in lag_of({"sources": [source]}).items()}
    {'orders-0': 3}
    """
    found: dict[TopicPartition, int] = {}
    for source in progress.get("sources", ()):
        end, latest = source.get("endOffset"), source.get("latestOffset")
        if _has_form(end) and _has_form(latest):
            ends = from_json_dict(end)
            for place, offset in from_json_dict(latest).items():
                found[place] = max(0, offset - ends.get(place, 0))
    return found


def _has_form(offsets: Any) -> bool:
    return isinstance(offsets, dict) and all(
        isinstance(partitions, dict) and all(map(str.isdecimal, partitions))
        for topic, partitions in offsets.items()
        if topic != START_KEY
    )


@dataclass(slots=True)
class Tally:
    """What a query has done so far, by the progress of its micro-batches.

    >>> tally = Tally()
    >>> tally.add({"batchId": 0, "numInputRows": 5, "durationMs": {"addBatch": 90, "triggerExecution": 120}})
    True
    >>> tally.rows_in, tally.batch_ms
    (5, 120)
    """

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    """Rows that came out of the last step, if they were observed as `rows`."""
    rows_per_second: float = 0.0
    batch_ms: int = 0
    lag: int | None = None
    watermark: str | None = None
    observed: dict[str, int] = field(default_factory=dict)
    """Sums of other observed metrics by name."""
    _last_batch: int = -1

    def add(self, progress: Mapping[str, Any]) -> bool:
        """Count a progress; False if it was counted before or is of no micro-batch."""
        duration = progress.get("durationMs", {})
        if progress["batchId"] <= self._last_batch or "addBatch" not in duration:
            return False
        self._last_batch = progress["batchId"]
        self.batches += 1
        self.rows_in += progress.get("numInputRows", 0)
        self.rows_per_second = progress.get("processedRowsPerSecond", 0.0)
        self.batch_ms = duration.get("triggerExecution", 0)
        self.lag = sum(lag_of(progress).values())
        self.watermark = progress.get("eventTime", {}).get("watermark")
        for metrics in progress.get("observedMetrics", {}).values():
            for name, value in metrics.items():
                if name == "rows":
                    self.rows_out += value or 0
                else:
                    self.observed[name] = self.observed.get(name, 0) + (value or 0)
        return True
