"""A pipeline that runs: its Spark, its queries, and what they have done so far."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.client.types import TopicPartition
from ottla.spark.connections import connected
from ottla.spark.offsets import Offsets, from_json_dict, to_json_dict
from ottla.spark.options import SourceOptions
from ottla.spark.pipeline.build import Builder
from ottla.spark.pipeline.copying import Compared, compare, prepare_topics, target_client
from ottla.spark.pipeline.section import PipelineError
from ottla.spark.pipeline.sinks import Show, start_sink
from ottla.spark.pipeline.spec import AVAILABLE_NOW, PipelineSpec, SinkSpec
from ottla.spark.planning import find_latest
from ottla.spark.progress import GroupCommitter, Tally, end_offsets

DEFAULTS = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"

_PYTHON_ERROR = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): (.*)$", re.MULTILINE)
_SPARKS_CODES = re.compile(r"^\[[A-Z_.]+\] | SQLSTATE: \w{5}$")


@dataclass(slots=True)
class Branch:
    """A sink and its query."""

    sink: SinkSpec
    query: StreamingQuery
    tally: Tally = field(default_factory=Tally)
    end: dict[str, Any] | None = None
    """Where its last micro-batch ended."""


def check(spec: PipelineSpec) -> list[TopicPartition]:
    """Whether the cluster answers and the topics are there: in a second, before Spark takes its time to start."""
    options = SourceOptions.parse(spec.source.options, streaming=True)
    return sorted(connected(options.client, find_latest, options, {}))


def start_spark(
    spec: PipelineSpec, master: str | None = None, defaults: Mapping[str, str] | None = None
) -> SparkSession:
    """Spark with what the file says, and defaults that suit one machine."""
    settings = {**DEFAULTS, **(defaults or {}), "spark.app.name": spec.name, **spec.spark}
    if master is not None:
        settings["spark.master"] = master
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if SHUFFLE_PARTITIONS not in settings:
        spark.conf.set(SHUFFLE_PARTITIONS, str(spark.sparkContext.defaultParallelism))
    if "spark.log.level" not in settings:
        # Why a query failed is said once, at the end, and not buried in Java's stack.
        spark.sparkContext.setLogLevel("OFF")
    return spark


class Pipeline:
    """The queries of a pipeline. Each sink has one; if one of them fails, all are stopped."""

    def __init__(self, spec: PipelineSpec, spark: SparkSession, *, show: Show, available_now: bool = False) -> None:
        self.spec = replace(spec, trigger=AVAILABLE_NOW) if available_now else spec
        self._spark = spark
        self._show = show
        self.branches: list[Branch] = []
        group = spec.source.group
        self._client = SourceOptions.parse(spec.source.options, streaming=True).client
        self._committer = None if group is None else GroupCommitter(self._client, group)

    def start(self, partitions: list[TopicPartition]) -> None:
        """Start all queries."""
        builder = Builder(self.spec, self._spark)
        try:
            for sink in self.spec.sinks:
                if sink.kind == "copy":
                    topics = {place.topic for place in partitions}
                    prepare_topics(self._client, target_client(sink.options), topics)
                query = start_sink(
                    sink,
                    builder.rows(sink),
                    name=self.spec.name,
                    checkpoint=self.spec.checkpoint,
                    trigger=self.spec.trigger,
                    show=self._show,
                )
                self.branches.append(Branch(sink, query))
        except PySparkException as error:
            self.stop()
            raise PipelineError(reason_of(error)) from error
        except BaseException:
            self.stop()
            raise

    @property
    def is_active(self) -> bool:
        """Whether a query still runs."""
        return any(branch.query.isActive for branch in self.branches)

    def poll(self) -> Iterator[tuple[Branch, dict[str, Any]]]:
        """The micro-batches that were done since the last call. Raises if a query has failed."""
        for branch in self.branches:
            for one in branch.query.recentProgress:
                progress: dict[str, Any] = json.loads(one.json)
                if branch.tally.add(progress):
                    ends = end_offsets(progress)
                    branch.end = ends[0] if ends else branch.end
                    yield branch, progress
        self._commit()
        for branch in self.branches:
            error = branch.query.exception()
            if error is not None:
                self.stop()
                raise PipelineError(f"sink {branch.sink.name}: {reason_of(error)}")

    def stop(self) -> None:
        """Stop all queries. A micro-batch that is under way is done again next time."""
        for branch in self.branches:
            branch.query.stop()

    def compare_copies(self) -> list[Compared]:
        """Compare what was copied with its source, where the file does not say otherwise."""
        found: list[Compared] = []
        for branch in self.branches:
            if branch.sink.kind == "copy" and branch.sink.verify:
                end = branch.end or _last_end(self.spec.checkpoint, branch.sink.name)
                if end:
                    found += compare(self._spark, self.spec.source.options, branch.sink.options, end)
        return found

    def _commit(self) -> None:
        """Tell the group what all queries are done with."""
        ends: list[Offsets] = [from_json_dict(branch.end) for branch in self.branches if branch.end is not None]
        if self._committer is None or not ends or len(ends) < len(self.branches):
            return
        done = {place: min(end.get(place, 0) for end in ends) for place in ends[0]}
        self._committer.commit(to_json_dict(done))


def _last_end(checkpoint: str, sink: str) -> dict[str, Any] | None:
    """Where the last micro-batch of an earlier run ended, by Spark's own notes."""
    folder = Path(checkpoint) / sink / "offsets"
    numbers = sorted((int(file.name) for file in folder.glob("*") if file.name.isdecimal()), reverse=True)
    for number in numbers[:1]:
        found = json.loads((folder / str(number)).read_text().splitlines()[-1])
        return found if isinstance(found, dict) else None
    return None


def reason_of(error: BaseException) -> str:
    """What a failure of Spark comes down to, without the stacks of two languages.

    >>> reason_of(Exception("Job aborted\\nTraceback ...\\nottla.errors.KafkaError: there is no topic x\\n\\tat java"))
    'there is no topic x'
    """
    text = str(error)
    found = _PYTHON_ERROR.findall(text)
    line = found[-1] if found else next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return _SPARKS_CODES.sub("", line)
