"""A client of Spark Connect, in a process of its own: `python -m tests.spark.connect_client SERVERS FOLDER`.

A process that has a Spark of the usual kind cannot have one through Connect.
"""

import json
import os
import sys

from pyspark.sql import SparkSession

from ottla.spark import DeadLetters, decode


def main(servers: str, folder: str) -> None:
    # Else the server listens on a port that is not free of choice.
    os.environ["SPARK_TESTING"] = "1"
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    options = {"kafka.bootstrap.servers": servers}

    def read(topic: str) -> list[list[str]]:
        rows = spark.read.format("ottla").options(**options, subscribe=topic).load()
        texts = rows.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
        return sorted(list(row) for row in texts.collect())

    def fail_to_read() -> str:
        try:
            read("missing")
        except Exception as error:  # noqa: BLE001 - whatever Spark makes of it, the text is looked at
            return str(error)
        return ""

    orders = spark.createDataFrame([("alice", '{"id": 1}'), ("bob", "oops")], ["key", "value"])
    orders.write.format("ottla").options(**options, topic="orders").mode("append").save()
    stream = spark.readStream.format("ottla").options(**options, subscribe="orders", startingOffsets="earliest").load()
    query = (
        decode(stream, "json", "id BIGINT", dead_letters=DeadLetters(topic="rejected", bootstrap_servers=servers))
        .selectExpr("key", "CAST(value.id AS STRING) AS value")
        .writeStream.format("ottla")
        .options(**options, topic="numbers", checkpointLocation=f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = {
        "session": type(spark).__module__,
        "orders": read("orders"),
        "numbers": read("numbers"),
        "rejected": read("rejected"),
        "progress": [progress.numInputRows for progress in query.recentProgress],
        "missing": fail_to_read(),
    }
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
