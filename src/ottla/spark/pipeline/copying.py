"""Copies of topics: made with as many partitions, and compared with what was copied."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from ottla.client.admin import NewPartitions, NewTopic
from ottla.client.options import ClientOptions
from ottla.spark.java_options import about_the_cluster, client_options, kafka_options
from ottla.spark.offsets import from_json_dict, to_json_dict
from ottla.spark.options import CLIENT_ID
from ottla.sync import Admin

SERVERS = "kafka.bootstrap.servers"


class Compared(NamedTuple):
    """A partition on both sides."""

    topic: str
    partition: int
    records: int
    copied: int
    is_same: bool
    """Whether counts and contents agree: keys, values, headers and times, in whichever order."""


def prepare_topics(source: ClientOptions, target: ClientOptions, topics: Iterable[str]) -> None:
    """Make the topics on the other cluster, or give them partitions, so that there are as many as here."""
    with Admin(**source.arguments()) as here, Admin(**target.arguments()) as there:
        counts = {name: len(one.partitions) for name, one in here.describe_topics(list(topics)).items()}
        existing = set(there.list_topics())
        there.create_topics([NewTopic(name, num_partitions=counts[name]) for name in counts if name not in existing])
        found = there.describe_topics([name for name in counts if name in existing])
        short = {name: NewPartitions(counts[name]) for name, one in found.items() if len(one.partitions) < counts[name]}
        if short:
            there.create_partitions(short)


def target_client(options: Mapping[str, str]) -> ClientOptions:
    """How to reach the other cluster, from the options of the sink that writes there."""
    return client_options(kafka_options(_at_target(options)), client_id=CLIENT_ID)


def _at_target(options: Mapping[str, str]) -> dict[str, str]:
    return {**about_the_cluster(options), SERVERS: options[SERVERS]}


def compare(
    spark: SparkSession, source_options: Mapping[str, str], target_options: Mapping[str, str], end: Mapping[str, Any]
) -> list[Compared]:
    """Count and sum up what there was before `end`, and what there is on the other cluster."""
    ends = from_json_dict(end)
    topics = sorted({place.topic for place in ends})
    here = {name: value for name, value in source_options.items() if name.lower().startswith("kafka.")}
    # Offsets of the other side are its own; what it has in partitions that were not copied is nobody's concern.
    before = _sums(spark, here, topics, json.dumps(to_json_dict(ends)))
    after = _sums(spark, _at_target(target_options), topics, "latest")
    nothing = (0, 0)
    return [
        Compared(
            place.topic,
            place.partition,
            before.get(place, nothing)[0],
            after.get(place, nothing)[0],
            before.get(place, nothing) == after.get(place, nothing),
        )
        for place in sorted(ends)
    ]


def _sums(
    spark: SparkSession, options: Mapping[str, str], topics: list[str], ending: str
) -> dict[tuple[str, int], tuple[int, int]]:
    rows: DataFrame = (
        spark.read.format("ottla")
        .options(**options)
        .option("subscribe", ",".join(topics))
        .option("endingOffsets", ending)
        .option("includeHeaders", "true")
        .load()
    )
    content = sql.xxhash64("key", "value", sql.to_json("headers"), "timestamp")
    sums = rows.groupBy("topic", "partition").agg(
        sql.count(sql.lit(1)).alias("records"), sql.sum(content.cast("decimal(20,0)")).alias("content")
    )
    return {(row.topic, row.partition): (row.records, int(row.content)) for row in sums.collect()}
