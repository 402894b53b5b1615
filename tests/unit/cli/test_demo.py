"""`ottla demo` as people and programs start it, and what it says when numbers do not agree."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ottla.cli import demo
from ottla.cli.demo_broker import Check
from ottla.cli.demo_checks import Checks, Found, check_sums, check_table
from ottla.cli.demo_orders import MINUTE_MS, START_MS, Orders, total
from ottla.cli.demo_spark import BY_MINUTE, PipelineFailedError, PipelineFigures, run_pipeline, why_not
from ottla.cli.demo_telling import Teller
from ottla.cli.main import app
from ottla.sync import Producer
from ottla.testing import TestBroker

COMMAND = [sys.executable, "-m", "ottla", "demo"]
PATIENCE_S = 600


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
        env={**os.environ, **environment},
    )


def test_the_demo_explains_each_format_and_gets_every_order_back_and_goes_on_without_java() -> None:
    done = run("--json", "--records", "3000", JAVA_HOME="/no/java/here")
    *fields, broker, spark = [json.loads(line) for line in done.stdout.splitlines()]
    assert len({line["format"] for line in fields}) == 3
    assert all(line["read_back_the_same"] for line in fields)
    magics = [line["value"] for line in fields if line["path"].endswith(".magic")]
    assert magics == [0, 1, 2]
    for one in {line["format"] for line in fields}:
        shown = [line for line in fields if line["format"] == one and line["start"] != line["end"]]
        assert [line["start"] for line in shown[1:]] == [line["end"] for line in shown[:-1]], "no byte unexplained"
    assert broker["broker"]["records"] == 3000
    assert broker["broker"]["in_order"]
    reason = spark["spark"]["skipped"]
    assert "pip install" in reason or reason.startswith("/no/java/here/bin/java does not run: install Java 17")


def test_the_demo_tells_people_what_it_does() -> None:
    done = run("--records", "100", JAVA_HOME="/no/java/here")
    assert "Record batch, magic 2" in done.stdout
    assert "A DIFFERENT RECORD" not in done.stdout
    assert "100 orders produced" in done.stdout
    assert "every one as it was sent, in order" in done.stdout
    assert "Left out, since" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_pipeline_in_spark_makes_of_the_orders_what_it_must() -> None:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    # Java that does not optimise what runs only once takes half the time.
    done = run("--json", "--records", "2000", SPARK_SUBMIT_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    assert "WARN" not in done.stderr, "Spark's own words are not for the terminal"
    spark = json.loads(done.stdout.splitlines()[-1])["spark"]
    orders = Orders(2000)
    assert len(list(orders)) == 2000
    expected = {"orders": 1998, "cents": total(orders.sums()).cents, "windows": len(orders.sums()), "same": True}
    assert spark["produced"] == spark["table"] == spark["sums"] == expected
    assert spark["rejected"] == {"orders": 2, "cents": None, "windows": None, "same": True}
    assert spark["agree"]
    for sink in spark["sinks"].values():
        assert sink["rows_in"] == 2000
        assert sink["batches"] >= 2, "progress shows while it runs"
        assert sink["rows_per_second"] > 0


def test_orders_that_come_back_in_another_order_or_changed_or_not_at_all_are_noticed() -> None:
    orders = Orders(4)
    values = [value for _, value in orders]
    changed = [*values[:3], values[3].replace(b'"cents": ', b'"cents": 1')]
    for wrong in (values[::-1], values[:3], [*values, values[3]], changed):
        check = Check(orders)
        for value in wrong:
            check.add(0, value)
        assert not check.is_right


def write_table(folder: Path, rows: list[dict[str, Any]]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import dataset

    dataset.write_dataset(
        pyarrow.Table.from_pylist(rows),
        folder,
        format="parquet",
        partitioning=["country"],
        partitioning_flavor="hive",
    )


def test_a_table_that_lacks_a_row_or_has_one_twice_or_a_wrong_one_is_noticed(tmp_path: Path) -> None:
    orders = Orders(500)
    rows = [json.loads(value) for _, value in orders]
    expected = orders.sums()
    wrong = {**rows[0], "cents": rows[0]["cents"] + 1}
    doubled = {**rows[0], "order": rows[1]["order"]}
    tables = {"right": rows, "less": rows[1:], "more": [*rows, rows[0]], "wrong": [wrong, *rows[1:]]}
    tables["doubled"] = [doubled, *rows[1:]]
    for name, table in tables.items():
        write_table(tmp_path / name, table)
    same = {name: check_table(tmp_path / name, expected).same for name in tables}
    assert same == {"right": True, "less": False, "more": False, "wrong": False, "doubled": False}


def test_the_last_sums_of_each_window_count(ottla_broker: TestBroker) -> None:
    pytest.importorskip("pyarrow")
    orders = Orders(500)
    assert list(orders)
    expected = orders.sums()
    address = ottla_broker.bootstrap_servers

    def send(producer: Producer, minute: int, country: str, count: int, cents: int) -> None:
        value = {"minute_ms": START_MS + minute * MINUTE_MS, "country": country, "orders": count, "cents": cents}
        producer.send_and_wait(BY_MINUTE, json.dumps(value).encode(), b"%d %b" % (minute, country.encode()))

    with Producer(bootstrap_servers=address) as producer:
        for (minute, country), one in expected.items():
            send(producer, minute, country, one.orders - 1, one.cents - 1)
        assert not check_sums(address, expected).same
        for (minute, country), one in expected.items():
            send(producer, minute, country, one.orders, one.cents)
        assert check_sums(address, expected).same


def test_a_pipeline_that_fails_says_why(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(PipelineFailedError, match=r"127\.0\.0\.1:1\b"):
        run_pipeline(tmp_path, "127.0.0.1:1", 100, Teller(as_json=True))


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A demo whose pipeline is done at once."""
    monkeypatch.setattr(demo, "why_not", lambda: None)
    monkeypatch.setattr(demo, "run_pipeline", lambda *_: PipelineFigures())
    return monkeypatch


def test_numbers_that_do_not_agree_are_said_loudly_and_end_in_exit_code_1(
    without_spark: pytest.MonkeyPatch,
) -> None:
    right, lost = Found(10, 1000, 7, same=True), Found(9, 900, 6, same=False)
    without_spark.setattr(demo, "check", lambda *_: Checks(right, right, lost, Found(0, None, None, same=True)))
    result = CliRunner().invoke(app, ["demo", "--records", "10"])
    assert result.exit_code == 1
    assert re.search(r"orders-by-minute .* NO\b", result.stdout)
    assert "error: NO: not all is as it must be" in result.stderr


def test_a_pipeline_that_fails_ends_in_exit_code_1(without_spark: pytest.MonkeyPatch) -> None:
    def run_out(*_: object) -> PipelineFigures:
        raise PipelineFailedError("out of luck")

    without_spark.setattr(demo, "run_pipeline", run_out)
    result = CliRunner().invoke(app, ["demo", "--json", "--records", "10"])
    assert result.exit_code == 1
    assert json.loads(result.stdout.splitlines()[-1]) == {"spark": {"failed": "out of luck", "agree": False}}
    assert "the pipeline failed: out of luck" in result.stderr
