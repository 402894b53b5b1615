"""Results made up for tests."""

from bench.brokers.line import Figure
from bench.brokers.results import Report, Result, Rounds

KAFKA = "Kafka"
RATE = Figure("rate", "records/s", more_is_better=True, aim=1.2, limit_aim=0.6)
LATENCY = Figure("p50", "us", more_is_better=False, aim=0.2)


def result(
    figure: Figure, ours: Rounds, theirs: Rounds, limit: Rounds | None = None, line: str = "produce/100"
) -> Result:
    limits = {} if limit is None else {"sockets": [value and value * 2 for value in limit], "file": limit}
    return Result(line, f"title of {line}", figure, {"Ottla": ours, KAFKA: theirs}, limits)


def report(*results: Result) -> Report:
    return Report({"date": "2026-11-16", "Python": "3.11"}, 3, 1.0, KAFKA, results)
