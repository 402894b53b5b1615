"""The results of `bench.spark` as tables, for terminals and for Markdown."""

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from rich.console import Console
from rich.table import Table

TITLES = {
    "count": "`count()`",
    "values": "`sum(length(value))`",
    "columns": "all columns, thrown away",
    "parquet": "all columns, to Parquet",
    "stream": "streaming, thrown away",
    "write": "DataFrame into a topic",
}
FILE_WIDTH = 160
"""For tables that go into a file."""
FLOOR_TITLE = "a source that reads nothing"
SINKS = {"nowhere": "topic, thrown away", "topic": "topic to topic"}


class Spread(NamedTuple):
    """Ratios of several rounds, the official connector's time to ours: more than one is faster."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Self:
        """Of the ratios within rounds.

        >>> str(Spread.of([2.0, 2.5, 1.9]))
        '2.00 (1.90-2.50)'
        """
        return cls(statistics.median(ratios), min(ratios), max(ratios))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}-{self.high:.2f})"


@dataclass(frozen=True)
class Result:
    """What one connector did in one line: medians of the rounds."""

    rows_per_second: float
    spark_cpu: float
    """Processor seconds of Spark, its Python processes among them, for a million rows."""
    broker_cpu: float


@dataclass(frozen=True)
class Comparison:
    """One line, for values of one size in a topic with so many partitions."""

    line: str
    size: int
    partitions: int
    rows: int
    ours: Result
    official: Result
    ratio: Spread
    floor: Result | None = None
    """Of a source that reads nothing, on lines where it takes its turn."""

    def __str__(self) -> str:
        return (
            f"{self.line}, {self.size} B, {self.partitions} partitions: {self.ours.rows_per_second:,.0f} rows/s, "
            f"{self.ratio} times the official connector, with {self.ours.spark_cpu:.1f} to "
            f"{self.official.spark_cpu:.1f} CPU s per million rows"
        )


@dataclass(frozen=True)
class Overhead:
    """What micro-batches of a few rows take, and starting and ending a query."""

    sink: str
    partitions: int
    ours_ms: float
    official_ms: float
    ratio: Spread
    ours_start_seconds: float
    official_start_seconds: float
    floor_ms: float | None = None
    """Of a source that reads nothing, where it takes its turn."""

    def __str__(self) -> str:
        return (
            f"micro-batches to {self.sink}, {self.partitions} partitions: {self.ours_ms:.0f} ms, the official "
            f"connector {self.official_ms:.0f} ms, {self.ratio}"
        )


@dataclass(frozen=True)
class Report:
    """All that a run has found."""

    circumstances: dict[str, str]
    """What figures depend on."""
    lines: list[Comparison] = field(default_factory=list)
    overheads: list[Overhead] = field(default_factory=list)

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.circumstances.items())


class Sheet(NamedTuple):
    """A table."""

    title: str
    header: list[str]
    rows: list[list[str]]


def sheets(report: Report) -> list[Sheet]:
    """One for each size of values, and one for micro-batches."""
    found = []
    for size in dict.fromkeys(one.size for one in report.lines):
        rows = [
            [
                TITLES[one.line],
                str(one.partitions),
                f"{one.rows:,}",
                f"{one.official.rows_per_second:,.0f}",
                f"{one.ours.rows_per_second:,.0f}",
                str(one.ratio),
                f"{one.floor.rows_per_second:,.0f}" if one.floor else "",
                f"{one.official.spark_cpu:.1f} + {one.official.broker_cpu:.1f}",
                f"{one.ours.spark_cpu:.1f} + {one.ours.broker_cpu:.1f}",
            ]
            for line in TITLES
            for one in report.lines
            if one.size == size and one.line == line
        ]
        cpu = "CPU s per million rows, Spark + broker"
        header = [f"values of {size} B", "partitions", "rows", "official, rows/s", "Ottla, rows/s", "ratio"]
        header.append(f"{FLOOR_TITLE}, rows/s")
        found.append(Sheet(f"values of {size} B", [*header, f"official, {cpu}", "Ottla"], rows))
    if report.overheads:
        rows = [
            [
                SINKS[one.sink],
                str(one.partitions),
                f"{one.official_ms:.0f} ms",
                f"{one.ours_ms:.0f} ms",
                str(one.ratio),
                f"{one.floor_ms:.0f} ms" if one.floor_ms else "",
                f"{one.official_start_seconds:.1f} s",
                f"{one.ours_start_seconds:.1f} s",
            ]
            for sink in SINKS
            for one in report.overheads
            if one.sink == sink
        ]
        header = ["a micro-batch of 100 rows", "partitions", "official", "Ottla", "ratio", FLOOR_TITLE]
        found.append(Sheet("micro-batches", [*header, "official, start and end of a query", "Ottla"], rows))
    return found


def show(report: Report) -> None:
    """Print tables for people."""
    console = Console(width=None if sys.stdout.isatty() else FILE_WIDTH)
    console.print(str(report), highlight=False)
    for sheet in sheets(report):
        table = Table(title=sheet.title)
        for number, name in enumerate(sheet.header):
            table.add_column(name, justify="left" if number == 0 else "right")
        for row in sheet.rows:
            table.add_row(*row)
        console.print(table)


def markdown(report: Report) -> str:
    """The tables in Markdown."""
    blocks = [str(report)]
    for sheet in sheets(report):
        rule = ["---", *["---:"] * (len(sheet.header) - 1)]
        blocks.append("\n".join("| " + " | ".join(row) + " |" for row in [sheet.header, rule, *sheet.rows]))
    return "\n\n".join(blocks) + "\n"
