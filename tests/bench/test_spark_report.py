"""What `bench.spark` makes of its figures."""

from bench.spark import Choice
from bench.spark_report import Comparison, Overhead, Report, Result, Spread, markdown, sheets

OURS = Result(rows_per_second=1_000_000, spark_cpu=1.5, broker_cpu=0.2)
OFFICIAL = Result(rows_per_second=400_000, spark_cpu=5.0, broker_cpu=0.4)
FLOOR = Result(rows_per_second=1_250_000, spark_cpu=1.2, broker_cpu=0.0)


def report() -> Report:
    lines = [
        Comparison(line, size, partitions, 1000 * partitions, OURS, OFFICIAL, Spread(2.5, 2.4, 2.6), floor)
        for partitions in (1, 100)
        for size in (100, 1024)
        for line, floor in (("stream", FLOOR), ("count", None))
    ]
    overheads = [
        Overhead(sink, 1, 184.0, 134.0, Spread(0.73, 0.7, 0.75), 3.1, 0.6, floor_ms)
        for sink, floor_ms in (("nowhere", 121.0), ("topic", None))
    ]
    return Report({"cores": "2", "Spark": "4.3.0"}, lines, overheads)


def test_each_line_is_in_the_table_of_its_size_with_its_rows_and_what_it_cost() -> None:
    small, large, _ = sheets(report())
    assert [row[:3] for row in small.rows] == [
        ["`count()`", "1", "1,000"],
        ["`count()`", "100", "100,000"],
        ["streaming, thrown away", "1", "1,000"],
        ["streaming, thrown away", "100", "100,000"],
    ]
    assert small.rows[0][3:] == ["400,000", "1,000,000", "2.50 (2.40-2.60)", "", "5.0 + 0.4", "1.5 + 0.2"]
    assert large.title == "values of 1024 B"


def test_what_a_source_that_reads_nothing_does_stands_beside_the_lines_where_it_takes_its_turn() -> None:
    small, _, overheads = sheets(report())
    column = small.header.index("a source that reads nothing, rows/s")
    assert [row[column] for row in small.rows] == ["", "", "1,250,000", "1,250,000"]
    column = overheads.header.index("a source that reads nothing")
    assert [row[column] for row in overheads.rows] == ["121 ms", ""]


def test_what_a_micro_batch_costs_stands_beside_the_rates() -> None:
    *_, overheads = sheets(report())
    assert overheads.rows == [
        [title, "1", "134 ms", "184 ms", "0.73 (0.70-0.75)", floor, "0.6 s", "3.1 s"]
        for title, floor in (("topic, thrown away", "121 ms"), ("topic to topic", ""))
    ]


def test_markdown_has_all_tables_and_what_figures_depend_on() -> None:
    first, *tables = markdown(report()).strip().split("\n\n")
    assert first == "cores 2, Spark 4.3.0"
    assert [len(table.splitlines()) - 2 for table in tables] == [4, 4, 2]
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_a_run_that_ended_early_shows_what_it_has() -> None:
    assert sheets(Report({})) == []
    assert markdown(Report({"cores": "2"})) == "cores 2\n"


def test_topics_with_many_partitions_have_fewer_rows() -> None:
    choice = Choice(lines=("count",), sizes=(100,), partitions=(8, 100), rounds=1, scale=1.0)
    assert [choice.rows(partitions) for partitions in choice.partitions] == [1_000_000, 200_000]
    tiny = Choice(lines=("count",), sizes=(100,), partitions=(8, 100), rounds=1, scale=1.0, most_rows=500)
    assert [tiny.rows(partitions) for partitions in tiny.partitions] == [500, 500]
