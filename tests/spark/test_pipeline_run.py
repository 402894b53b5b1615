"""Pipelines from files, run in Spark against brokers: what goes in comes out, also when they are run again."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from ottla import sync
from ottla.client.types import TopicPartition
from ottla.spark.pipeline import run
from ottla.spark.pipeline.copying import Compared
from ottla.spark.pipeline.load import load
from ottla.spark.pipeline.section import PipelineError
from ottla.testing import TestBroker

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

NewTopicName = Callable[..., str]
Fill = Callable[..., None]
SCHEMA = "id BIGINT NOT NULL, country STRING, amount DOUBLE, at TIMESTAMP"


class Runner:
    """Runs files until there are no more records."""

    def __init__(self, spark: SparkSession, broker: TestBroker, folder: Path) -> None:
        self.spark = spark
        self.broker = broker
        self.folder = folder
        self.shown: list[list[Any]] = []

    def __call__(self, text: str) -> run.Pipeline:
        file = self.folder / "pipeline.toml"
        file.write_text(text)
        spec = load(file, {"source.bootstrap_servers": self.broker.bootstrap_servers, "trigger": "available-now"})

        def show(sink: str, batch_id: int, columns: Any, rows: Any) -> None:
            self.shown += [list(row) for row in rows]

        pipeline = run.Pipeline(spec, self.spark, show=show)
        pipeline.start(run.check(spec))
        for branch in pipeline.branches:
            branch.query.awaitTermination()
        list(pipeline.poll())
        return pipeline

    def records(self, topic: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = sync.read_table(
            topic, bootstrap_servers=self.broker.bootstrap_servers
        ).to_pylist()
        return found


@pytest.fixture
def pipeline(spark: SparkSession, broker: TestBroker, tmp_path: Path) -> Runner:
    return Runner(spark, broker, tmp_path)


def orders(count: int, start: int = 0) -> list[bytes]:
    return [
        json.dumps(
            {
                "id": number,
                "country": ["DE", "São Tomé/x"][number % 2],
                "amount": number % 10 - 0.5,
                "at": f"2026-01-01T00:0{number % 3}:00Z",
            }
        ).encode()
        for number in range(start, start + count)
    ]


def test_a_topic_into_tables_each_row_once_over_two_runs(
    pipeline: Runner, admin: sync.Admin, new_topic: NewTopicName, fill: Fill, tmp_path: Path
) -> None:
    topic, rejected = new_topic(partitions=2), new_topic(prefix="rejected")
    text = f"""
        dead_letters = "{rejected}"
        [source]
        topics = "{topic}"
        group = "{topic}"
        max_records_per_batch = 70
        [source.decode]
        schema = "{SCHEMA}"
        [[step]]
        sql = "SELECT value.*, to_date(value.at) AS day FROM input"
        [[step]]
        name = "positive"
        expect = "amount > 0"
        otherwise = "divert"
        [[sink]]
        parquet = "parquet"
        partition_by = ["day", "country"]
        [[sink]]
        delta = "delta"
        partition_by = ["country"]
    """
    fill(topic, [*orders(99), b"{broken"])
    first = pipeline(text)
    fill(topic, orders(100, start=100), partition=1)
    second = pipeline(text)

    wanted = [number for number in range(200) if number % 10 and number != 99]
    table = DeltaTable(str(tmp_path / "delta"))
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == wanted
    assert {row["country"] for row in table.to_pyarrow_table(columns=["country"]).to_pylist()} == {"DE", "São Tomé/x"}
    assert table.count() == len(wanted)
    parquet = pipeline.spark.read.parquet(str(tmp_path / "parquet"))
    assert sorted(row.id for row in parquet.collect()) == wanted
    assert (tmp_path / "parquet" / "day=2026-01-01" / "country=DE").is_dir()

    # Both queries come across them; one sends them.
    letters = pipeline.records(rejected)
    assert len(letters) == 21
    reasons = [{h["key"]: h["value"] for h in letter["headers"]}["dead-letter.reason"] for letter in letters]
    assert reasons.count(b"it is no JSON") == 1
    assert b"the expectation positive is not met: amount > 0" in reasons

    for branch in first.branches:
        assert (branch.tally.rows_in, branch.tally.batches) == (100, 2)
        assert branch.tally.observed == {"decoded": 99, "positive": 10}
    assert [branch.tally.rows_out for branch in second.branches] == [90, 90]
    places = admin.list_consumer_group_offsets(topic)
    assert {place.partition: found.offset for place, found in places.items()} == {0: 100, 1: 100}


def test_a_micro_batch_that_is_done_again_is_in_the_delta_table_once(
    pipeline: Runner, new_topic: NewTopicName, fill: Fill, tmp_path: Path
) -> None:
    """As after a crash between the table's commit and Spark's own."""
    topic = new_topic()
    text = f"""
        checkpoint = "checkpoint"
        [source]
        topics = "{topic}"
        [[step]]
        sql = "SELECT offset, cast(value AS STRING) AS text FROM input"
        [[sink]]
        delta = "delta"
    """
    fill(topic, [b"%d" % number for number in range(20)])
    pipeline(text)
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoint" / "delta0" / "commits" / name).unlink()
    fill(topic, [b"last"])
    pipeline(text)
    found = DeltaTable(str(tmp_path / "delta")).to_pyarrow_table()
    assert sorted(found["offset"].to_pylist()) == list(range(21))


def test_windows_over_event_time_count_late_records(pipeline: Runner, new_topic: NewTopicName, fill: Fill) -> None:
    topic, out = new_topic(), new_topic(prefix="windows")
    text = f"""
        [source]
        topics = "{topic}"
        [source.decode]
        schema = "{SCHEMA}"
        [[step]]
        sql = "SELECT value.country, value.amount, value.at FROM input"
        watermark = {{ column = "at", delay = "10 minutes" }}
        [[step]]
        sql = '''
        SELECT window.start AS minute, country, count(*) AS orders
        FROM input GROUP BY window(at, '1 minute'), country
        '''
        [[sink]]
        topic = "{out}"
        mode = "update"
        key = "concat(minute, ' ', country)"
    """

    def order(at: str) -> bytes:
        return json.dumps({"id": 1, "country": "DE", "amount": 1, "at": f"2026-01-01T{at}Z"}).encode()

    fill(topic, [order("00:00:10"), order("00:00:50"), order("00:09:00")])
    pipeline(text)
    # Late, but not too late; then one that moves the watermark, and one that is too late.
    fill(topic, [order("00:00:30"), order("01:00:00")])
    pipeline(text)
    fill(topic, [order("00:00:40")])
    pipeline(text)
    last = {record["key"].decode(): json.loads(record["value"])["orders"] for record in pipeline.records(out)}
    assert last == {"2026-01-01 00:00:00 DE": 3, "2026-01-01 00:09:00 DE": 1, "2026-01-01 01:00:00 DE": 1}


@pytest.fixture(scope="module")
def other() -> Iterator[TestBroker]:
    with TestBroker() as broker:
        yield broker


def test_a_copy_keeps_partitions_keys_headers_and_times(
    pipeline: Runner, other: TestBroker, new_topic: NewTopicName, fill: Fill, producer: sync.Producer
) -> None:
    topic = new_topic(partitions=3)
    fill(topic, [b"a", None, b"c"], key=b"k", headers=[("trace", b"1"), ("none", None)], timestamp_ms=1_700_000_000_001)
    fill(topic, [b"d"], partition=2, timestamp_ms=5)
    text = f"""
        [source]
        topics = "{topic}"
        [[sink]]
        copy = "{other.bootstrap_servers}"
    """
    done = pipeline(text)
    kept = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
    copied = sync.read_table(topic, bootstrap_servers=other.bootstrap_servers).select(kept)
    original = sync.read_table(topic, bootstrap_servers=pipeline.broker.bootstrap_servers).select(kept)
    order = [("partition", "ascending"), ("offset", "ascending")]
    assert copied.sort_by(order).to_pylist() == original.sort_by(order).to_pylist()
    with sync.Admin(other.bootstrap_servers) as there:
        assert len(there.describe_topics([topic])[topic].partitions) == 3
    assert done.compare_copies() == [
        Compared(topic, 0, 3, 3, True),
        Compared(topic, 1, 0, 0, True),
        Compared(topic, 2, 1, 1, True),
    ]

    with sync.Producer(bootstrap_servers=other.bootstrap_servers) as intruder:
        intruder.send_and_wait(topic, b"d", partition=1)
    again = pipeline(text)
    assert again.branches[0].tally.rows_in == 0
    assert again.compare_copies()[1] == Compared(topic, 1, 0, 1, False)


def test_python_steps_the_console_and_what_is_dropped(
    pipeline: Runner, new_topic: NewTopicName, fill: Fill, tmp_path: Path
) -> None:
    (tmp_path / "steps_of_mine.py").write_text(
        "from pyspark.sql.functions import udf\n"
        "@udf('bigint')\n"
        "def double(number): return helper(number)\n"
        "def helper(number): return 2 * number\n"
        "def doubled(rows): return rows.select(double('value.id').alias('id'))\n"
        "def nothing(rows): return None\n"
    )
    topic = new_topic()
    fill(topic, [b'{"id": 1}', b"{broken", b'{"id": 2}', b'{"id": 3}'])
    text = f"""
        [source]
        topics = "{topic}"
        [source.decode]
        schema = "id BIGINT"
        otherwise = "drop"
        [[step]]
        python = "steps_of_mine:doubled"
        [[step]]
        name = "not_four"
        expect = "id != 4"
        otherwise = "drop"
        [[sink]]
        console = true
    """
    done = pipeline(text)
    assert sorted(pipeline.shown) == [[2], [6]]
    assert done.branches[0].tally.observed == {"decoded": 3, "not_four": 1}
    for function, message in (("nothing", "gave None; it must give a DataFrame"), ("no", "is not there")):
        with pytest.raises(PipelineError, match=message):
            pipeline(text.replace(":doubled", f":{function}"))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            'expect = "value.id > 1"',
            r"sink console0: the expectation step0 is not met: value\.id > 1; the row is .*id",
        ),
        ('sql = "SELECT nothing FROM input"', "nothing"),
        ('sql = "SELEC 1"', "SELEC"),
    ],
)
def test_what_fails_is_said_in_a_line(
    pipeline: Runner, new_topic: NewTopicName, fill: Fill, step: str, message: str
) -> None:
    topic = new_topic()
    fill(topic, [b'{"id": 1}'])
    text = f"""
        [source]
        topics = "{topic}"
        [source.decode]
        schema = "id BIGINT"
        [[step]]
        {step}
        [[sink]]
        console = true
    """
    with pytest.raises(PipelineError, match=message) as caught:
        _run_to_failure(pipeline, text)
    assert "\n" not in str(caught.value)
    assert "Traceback" not in str(caught.value)


def _run_to_failure(pipeline: Runner, text: str) -> None:
    from pyspark.errors import StreamingQueryException

    file = pipeline.folder / "pipeline.toml"
    file.write_text(text)
    spec = load(file, {"source.bootstrap_servers": pipeline.broker.bootstrap_servers, "trigger": "available-now"})
    running = run.Pipeline(spec, pipeline.spark, show=lambda *_: None)
    running.start(run.check(spec))
    with pytest.raises(StreamingQueryException):
        running.branches[0].query.awaitTermination()
    list(running.poll())


def test_a_missing_topic_is_named_before_spark_starts(broker: TestBroker, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text('[source]\ntopics = "no-such-topic"\n[[sink]]\nconsole = true')
    spec = load(file, {"source.bootstrap_servers": broker.bootstrap_servers})
    with pytest.raises(Exception, match="no-such-topic"):
        run.check(spec)


def test_what_all_queries_are_done_with_is_committed(
    pipeline: Runner, admin: sync.Admin, new_topic: NewTopicName, fill: Fill
) -> None:
    topic = new_topic()
    fill(topic, [b"1", b"2"])
    done = pipeline(
        f'[source]\ntopics = "{topic}"\ngroup = "{topic}"\n[[sink]]\nconsole = true\n[[sink]]\nconsole = true'
    )
    done.branches[0].end = {topic: {"0": 9}}
    list(done.poll())
    assert admin.list_consumer_group_offsets(topic)[TopicPartition(topic, 0)].offset == 2
