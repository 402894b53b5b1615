"""`spark.readStream.format("ottla")`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from ottla.ports import Clock, SystemClock
from ottla.spark.admission import Patience, share_out
from ottla.spark.connections import begun, connected
from ottla.spark.java_socket import FromJava
from ottla.spark.offsets import Offsets, from_json_dict, start_of, to_json_dict, with_start
from ottla.spark.options import SourceOptions
from ottla.spark.parallelism import cores
from ottla.spark.planning import (
    are_continued,
    find_beginnings,
    find_latest,
    find_start,
    losses_between,
    plan_micro_batch,
    report_losses,
)
from ottla.spark.reading import Task, read_task, tasks_of
from ottla.spark.splitting import Ranges, split
from ottla.sync.loop import Call

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.progress import GroupCommitter


PLAN_LASTS_S = 1.0
"""How long ago a plan may have been begun; whatever is gone since, the task finds that too."""


@dataclass(slots=True)
class _Plan:
    """What the batch reads that Spark will probably ask for next."""

    starts: Offsets
    ends: Offsets
    call: Call[Ranges] | None = None
    """Once it is looked at."""
    begun_s: float = 0.0


class StreamReader(FromJava, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says what each batch of a streaming query reads, and reads it."""

    def __init__(self, options: SourceOptions, schema: StructType, *, clock: Clock | None = None) -> None:
        self._options = options
        self._schema = schema
        self._clock = clock or SystemClock()
        self._start: dict[str, Any] | None = None
        """Where the query began, if it began here."""
        self._latest: Offsets | None = None
        self._target: Offsets | None = None
        """Where an `availableNow` query ends."""
        self._committer = _committer(options)
        self._plan: _Plan | None = None
        self._patience = Patience(options.min_offsets_per_trigger or 0, options.max_trigger_delay_ms)

    # What Spark asks on the driver.

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where the query begins."""
        self._start = to_json_dict(connected(self._options.client, find_start, self._options))
        return self._start

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit that the options set. Spark knows one kind at a time; both are looked at in `latestOffset`."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note where partitions end: the query reads up to there."""
        self._target = connected(self._options.client, find_latest, self._options, {})

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next batch ends, which is `start` if there is none."""
        if self._committer:
            # Spark asks when the batch that ended at `start` is done, also if there is nothing new.
            self._committer.commit(start)
        starts = from_json_dict(start)
        ends = self._find_end(starts, limit)
        self._plan = None if ends is None or ends == starts else _Plan(starts, ends)
        if start == self._start and not self._options.start.is_fixed:
            # Spark does the first batch even if it is empty.
            return with_start(to_json_dict(starts if ends is None else ends), start)
        return start if ends is None or ends == starts else to_json_dict(ends)

    def _find_end(self, starts: Offsets, limit: ReadLimit) -> Offsets | None:
        options = self._options
        latest = self._target
        if latest is None:
            latest = connected(options.client, find_latest, options, starts)
        self._latest = latest
        losses = losses_between(starts, latest)
        if options.fail_on_data_loss:
            report_losses(options, losses)
        if isinstance(limit, ReadAllAvailable):
            return latest
        if are_continued(starts, latest):
            beginnings = {place: starts[place] for place in latest}
        else:
            beginnings = connected(options.client, find_beginnings, starts, latest)
        rows = sum(max(0, end - beginnings[place]) for place, end in latest.items())
        # A query that ends with what there is now would wait for records that are not for it.
        if self._target is None and not self._patience.is_over(rows, self._clock.monotonic() * 1000):
            return None
        most = options.max_offsets_per_trigger
        return latest if most is None else share_out(most, beginnings, latest)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Where partitions ended when that was last looked at, for the query's progress.

        Spark asks this after `latestOffset` and goes on to write down where the batch ends. What the batch will read is
        looked at meanwhile: any sooner, and this answer would have to wait for it.
        """
        if self._plan is not None:
            self._plan.begun_s = self._clock.monotonic()
            self._plan.call = begun(
                self._options.client, plan_micro_batch, self._options, self._plan.starts, self._plan.ends
            )
        return to_json_dict(self._latest) if self._latest else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch."""
        options = self._options
        return tasks_of(
            split(
                self._ranges(start_of(start, end), from_json_dict(end)),
                min_partitions=options.min_partitions,
                max_records=options.max_records_per_partition,
                parallelism=cores(),
            )
        )

    def _ranges(self, starts: Offsets, ends: Offsets) -> Ranges:
        """What a batch reads, as it was found just now or as it is found now."""
        plan, self._plan = self._plan, None
        if (
            plan is not None
            and plan.call is not None
            and (plan.starts, plan.ends) == (starts, ends)
            and self._clock.monotonic() - plan.begun_s < PLAN_LASTS_S
        ):
            return plan.call.result()
        return connected(self._options.client, plan_micro_batch, self._options, starts, ends)

    # What a task asks.

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The records of a task."""
        assert isinstance(partition, Task)
        return read_task(partition, self._options, self._schema)


def _committer(options: SourceOptions) -> "GroupCommitter | None":
    if not options.commit_group:
        return None
    # Each query has a process of its own on the driver, which starts sooner without what it does not need.
    from ottla.spark.progress import GroupCommitter

    return GroupCommitter(options.client, options.commit_group)
