"""`format("kafka")` without Maven: a small jar that leads Spark from that name to Ottla's source and sink.

Spark keeps the name "kafka" for the official connector, whose jar comes by Maven. Without it, Spark looks for a class
`kafka.DefaultSource`, and the jar that comes with this package has one. Where the official connector's jar is present
as well, that one is used.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(__file__).parent / "java" / "kafka" / "DefaultSource.java"
"""What the jar is made of."""


def kafka_jar() -> str:
    """Where the jar is: for `spark.jars`, or for `--jars` of spark-submit.

    >>> Path(kafka_jar()).name
    'kafka_format.jar'
    """
    return str(Path(__file__).parent / "kafka_format.jar")


def enable_kafka_format(builder: "SparkSession.Builder") -> "SparkSession.Builder":
    """Let code that uses `format("kafka")` run on Ottla's source and sink, in the session that this builder makes.

    >>> from pyspark.sql import SparkSession
    >>> builder = enable_kafka_format(SparkSession.builder.master("local[2]"))

    Call it after `spark.jars` was set, since it adds to that. A session that runs already does not change; with Spark
    Connect, the server is what needs the jar.
    """
    jars = [jar for jar in builder._options.get("spark.jars", "").split(",") if jar]
    if kafka_jar() not in jars:
        jars.append(kafka_jar())
    return builder.config("spark.jars", ",".join(jars))
