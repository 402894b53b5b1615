"""Orders from a topic into a table, sums by country into another, and large orders back into a topic."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

spark = SparkSession.active()
SERVERS = spark.conf.get("example.bootstrap.servers")


@dp.table
def orders() -> DataFrame:
    """Each record as a row."""
    records = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", SERVERS)
        .option("subscribe", spark.conf.get("example.input"))
        .option("startingOffsets", "earliest")
        .load()
    )
    value = sql.from_json(sql.col("value").cast("string"), "id BIGINT, country STRING, amount DOUBLE")
    return records.select(value.alias("value"), "timestamp").select("value.*", "timestamp")


@dp.materialized_view
def by_country() -> DataFrame:
    """Sums, computed anew in each run."""
    return spark.read.table("orders").groupBy("country").agg(sql.count("*").alias("orders"), sql.sum("amount"))


dp.create_sink("large_orders", "ottla", {"kafka.bootstrap.servers": SERVERS, "topic": spark.conf.get("example.output")})


@dp.append_flow(target="large_orders")
def send_large_orders() -> DataFrame:
    """Rows as JSON, by country."""
    large = spark.readStream.table("orders").where("amount >= 50")
    return large.select(sql.col("country").alias("key"), sql.to_json(sql.struct("id", "amount")).alias("value"))
