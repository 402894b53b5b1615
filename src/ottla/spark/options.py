"""The options of the source, which are the official connector's.

A name that is not known but resembles one that is would be ignored there, and the query would read something else than
was meant. Here it is an error; other unknown names are ignored here too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Self

from pyspark.sql.datasource import CaseInsensitiveDict

from ottla.client.offsets import EARLIEST, ISOLATION_LEVELS, LATEST, IsolationLevel
from ottla.client.options import ClientOptions
from ottla.spark.bounds import Bound, parse_end, parse_start
from ottla.spark.java_options import PREFIX, client_options, kafka_options, number, truth
from ottla.spark.topics import TopicChoice, parse_topics

CLIENT_ID = "ottla-spark"

SOURCE_NAMES = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "failOnDataLoss",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "groupIdPrefix",
    "includeHeaders",
    "commitOffsets",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafka.bootstrap.servers",
    "kafka.group.id",
)
OTHER_NAMES = ("path", "topic", "includeTimestamp")
"""Names that others look at: Spark, the sink."""

_LIKENESS = 0.85

_FETCH_NAMES = ("fetch.max.bytes", "max.partition.fetch.bytes", "isolation.level", "check.crcs")

_REFUSED = {
    "auto.offset.reset": "set startingOffsets to say where to begin",
    "key.deserializer": "keys are binary columns; decode them with functions of DataFrames",
    "value.deserializer": "values are binary columns; decode them with functions of DataFrames",
    "key.serializer": "keys are binary or string columns; encode them with functions of DataFrames",
    "value.serializer": "values are binary or string columns; encode them with functions of DataFrames",
    "enable.auto.commit": "Spark's checkpoint keeps the offsets",
    "interceptor.classes": "there is no Java class that could be called",
}

_UNITS_MS = {"us": 0.001, "ms": 1, "": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """All options of a source, checked."""

    client: ClientOptions
    topics: TopicChoice
    start: Bound
    end: Bound
    fail_on_data_loss: bool = True
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    include_headers: bool = False
    commit_group: str | None = None
    """The group that is told how far a streaming query is, for lag tools."""
    poll_timeout_ms: int = 120_000
    """How long a task waits for records that must be there."""
    offset_retries: int = 3
    """How often to ask again for offsets that went back."""
    offset_retry_interval_ms: int = 1_000
    isolation: IsolationLevel = "read_uncommitted"
    check_crcs: bool = True
    fetch_max_bytes: int | None = None
    max_partition_fetch_bytes: int | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool | None) -> Self:
        """Options as Spark hands them over, in whichever case; `streaming` is None if that is not known yet.

        >>> options = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders", "minPartitions": "4"}
        >>> SourceOptions.parse(options, streaming=False).min_partitions
        4
        >>> SourceOptions.parse({**options, "startingOffset": "latest"}, streaming=True)
        Traceback (most recent call last):
        ValueError: there is no option startingOffset; did you mean startingOffsets?
        """
        check_names(options)
        given: Mapping[str, str] = CaseInsensitiveDict(dict(options))
        kafka = kafka_options(given)
        refuse(kafka)
        client = client_options(kafka, also_known=(*_FETCH_NAMES, *_REFUSED), client_id=CLIENT_ID)
        if streaming is not None:
            _check_mode(given, streaming)
        found = cls(
            client=client,
            topics=parse_topics(given),
            start=parse_start(given, default=LATEST if streaming else EARLIEST),
            end=parse_end(given),
            fail_on_data_loss=truth(given, "failOnDataLoss", True),
            max_offsets_per_trigger=_number_or_none(given, "maxOffsetsPerTrigger"),
            min_offsets_per_trigger=_number_or_none(given, "minOffsetsPerTrigger"),
            max_trigger_delay_ms=_duration_ms(given, "maxTriggerDelay", "15m"),
            min_partitions=_number_or_none(given, "minPartitions"),
            max_records_per_partition=_number_or_none(given, "maxRecordsPerPartition"),
            include_headers=truth(given, "includeHeaders", False),
            commit_group=_commit_group(given),
            poll_timeout_ms=_number(given, "kafkaConsumer.pollTimeoutMs", 120_000, least=1),
            offset_retries=_number(given, "fetchOffset.numRetries", 3),
            offset_retry_interval_ms=_number(given, "fetchOffset.retryIntervalMs", 1_000),
            isolation=_isolation(kafka),
            check_crcs=truth(kafka, "check.crcs", True, PREFIX),
            fetch_max_bytes=_number_or_none(kafka, "fetch.max.bytes", PREFIX),
            max_partition_fetch_bytes=_number_or_none(kafka, "max.partition.fetch.bytes", PREFIX),
        )
        least, most = found.min_offsets_per_trigger, found.max_offsets_per_trigger
        if least is not None and most is not None and least > most:
            raise ValueError(f"minOffsetsPerTrigger is {least}, more than maxOffsetsPerTrigger, {most}; lower it")
        if streaming is False:
            _check_batch_bounds(found)
        return found

    @property
    def read_committed(self) -> bool:
        """Whether records of open and aborted transactions are left out."""
        return self.isolation == "read_committed"


def _commit_group(options: Mapping[str, str]) -> str | None:
    if not truth(options, "commitOffsets", False):
        return None
    if not options.get("kafka.group.id"):
        raise ValueError("option commitOffsets is true, but kafka.group.id does not say to which group; set it")
    return options["kafka.group.id"]


def check_names(options: Mapping[str, str]) -> None:
    """Refuse names that look like typing errors."""
    known = {name.lower(): name for name in (*SOURCE_NAMES, *OTHER_NAMES)}
    for name in options:
        if name.lower() in known or name.lower().startswith(PREFIX):
            continue
        if PREFIX + name.lower() in known:
            raise ValueError(f"there is no option {name}; did you mean {PREFIX}{name}?")
        if like := get_close_matches(name.lower(), known, 1, _LIKENESS):
            raise ValueError(f"there is no option {name}; did you mean {known[like[0]]}?")


def refuse(kafka: Mapping[str, str]) -> None:
    """Refuse options of the Java client that would contradict what Spark does."""
    for name, advice in _REFUSED.items():
        if name in kafka:
            raise ValueError(f"option {PREFIX}{name} is not supported; {advice}")


def _check_mode(options: Mapping[str, str], streaming: bool) -> None:
    for name in ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets") if streaming else ():
        if name in options:
            raise ValueError(f"option {name} is for batch queries; a streaming query has no end, so leave it out")


def _check_batch_bounds(options: SourceOptions) -> None:
    for bound, wrong, what in ((options.start, LATEST, "latest"), (options.end, EARLIEST, "earliest")):
        offsets = bound.offsets
        found = wrong in offsets.values() if not isinstance(offsets, int) else offsets == wrong
        if found and bound.times_ms is None:
            raise ValueError(
                f"option {bound.option} is {what} ({wrong}), so that a batch query would find nothing; set it otherwise"
            )


def _isolation(kafka: Mapping[str, str]) -> IsolationLevel:
    given = kafka.get("isolation.level", "read_uncommitted")
    for level in ISOLATION_LEVELS:
        if given == level:
            return "read_committed" if level == "read_committed" else "read_uncommitted"
    raise ValueError(f"option kafka.isolation.level is {given!r}; it is one of {', '.join(ISOLATION_LEVELS)}")


def _number(options: Mapping[str, str], name: str, default: int, *, least: int = 0) -> int:
    return number(options, name, least=least) if name in options else default


def _number_or_none(options: Mapping[str, str], name: str, prefix: str = "") -> int | None:
    return number(options, name, prefix, least=1) if name in options else None


def _duration_ms(options: Mapping[str, str], name: str, default: str) -> int:
    text = options.get(name, default)
    found = re.fullmatch(r"(\d+)\s*(us|ms|s|m|min|h|d|)", text.strip().lower())
    if found is None:
        raise ValueError(f"option {name} is {text!r}; write a number and a unit, as 500ms, 30s, 15m or 1h")
    return int(int(found[1]) * _UNITS_MS[found[2]])
