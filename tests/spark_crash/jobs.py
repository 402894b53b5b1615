"""Applications of Spark for the tests of a cluster: `python -m tests.spark_crash.jobs MASTER SERVERS JOB TOPIC FOLDER`.

They are processes of their own, since a process has one Spark only.
"""

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from tests.spark_crash.cluster import SETTINGS

ROWS = 20_000


def main(master: str, servers: str, job: str, topic: str, folder: str) -> None:
    builder = SparkSession.builder.master(master).appName(job)
    # Both executors are there before there is work.
    for name, value in {**SETTINGS, "spark.scheduler.minRegisteredResourcesRatio": "1.0"}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        options = {"kafka.bootstrap.servers": servers}
        print(json.dumps({"batch": batch, "stream": stream}[job](spark, options, topic, folder)))
    finally:
        spark.stop()


def batch(spark: SparkSession, options: dict[str, str], topic: str, folder: str) -> dict[str, Any]:
    """Write rows to a topic, and read them."""
    rows = spark.range(ROWS, numPartitions=4).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
    rows.write.format("ottla").options(**options, topic=topic).mode("append").save()
    return found(spark, options, topic)


def stream(spark: SparkSession, options: dict[str, str], topic: str, folder: str) -> dict[str, Any]:
    """Read a topic in micro-batches, and write them to another."""
    records = spark.readStream.format("ottla").options(
        **options, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=str(ROWS // 4), minPartitions="4"
    )
    copied = f"{topic}-copied"
    query = (
        records.load()
        .select("key", "value")
        .writeStream.format("ottla")
        .options(**options, topic=copied, checkpointLocation=f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = [progress.numInputRows for progress in query.recentProgress]
    return {"batches": batches, **found(spark, options, copied)}


def found(spark: SparkSession, options: dict[str, str], topic: str) -> dict[str, Any]:
    """What there is in a topic, and how many executors have read it."""

    @sql.udf("int")
    def executor() -> int:
        # Each executor has one process that starts its workers.
        return os.getppid()

    records = spark.read.format("ottla").options(**options, subscribe=topic, minPartitions="4").load()
    read = records.select(
        sql.expr("CAST(CAST(value AS STRING) AS BIGINT)").alias("number"), executor().alias("executor")
    )
    sums = read.agg(
        sql.count("*").alias("rows"),
        sql.count_distinct("number").alias("numbers"),
        sql.sum("number").alias("sum"),
        sql.count_distinct("executor").alias("executors"),
    )
    return {**sums.collect()[0].asDict()}


if __name__ == "__main__":
    main(*sys.argv[1:])
