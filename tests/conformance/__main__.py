"""Check every codec against every oracle at hand, and print what checked what.

    python -m tests.conformance [--samples 50] [--seed 0] [--without-java] [--json]

The last line counts the requests and responses, of the 600 that clients speak, that were really checked in this
run with nobody disagreeing; below 600 the exit status is 1.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.java import is_available

from .check import ENGINES, Result, check_all, check_golden
from .codecs import Codec, api_codecs, other_codecs
from .handwritten_oracle import HandwrittenOracle
from .oracle import Oracle
from .oracles import JAVA_ORACLES, PYTHON_ORACLES, opened
from .verdict import Verdict, ranges


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 0 if every codec conforms."""
    options = _parse(arguments)
    notes = Console(stderr=True)
    openers = list(PYTHON_ORACLES)
    if options.without_java:
        notes.print("[bold yellow]Java is left out, as asked: Apache Kafka's own classes check nothing in this run.")
    elif is_available():
        openers += JAVA_ORACLES
    else:
        notes.print("[bold red]SKIPPED: no mvn or java on the PATH: Apache Kafka's own classes check nothing here.")
    apis, others = list(api_codecs()), list(other_codecs())
    with opened(openers, lambda reason: notes.print(f"[bold red]SKIPPED: {escape(reason)}")) as oracles:
        results = _run(oracles, [*apis, *others], options.samples, options.seed, notes)
    verdict, beyond = Verdict(apis, results), Verdict(others, results)
    if options.json:
        print(json.dumps({"engines": list(ENGINES), "apis": verdict.as_json(), "others": beyond.as_json()}, indent=1))
    else:
        # Where nobody looks on, as in a log, the table is not squeezed into 80 columns.
        _print(verdict, beyond, oracles, Console(width=None if sys.stdout.isatty() else 160))
    return 0 if verdict.complete and not beyond.failures else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=50, help="messages for each codec and oracle (default 50)")
    parser.add_argument("--seed", type=int, default=0, help="other numbers give other messages (default 0)")
    parser.add_argument("--without-java", action="store_true", help="use the oracles in Python and golden bytes alone")
    parser.add_argument("--json", action="store_true", help="print JSON, and no table")
    return parser.parse_args(arguments)


def _run(oracles: list[Oracle], codecs: list[Codec], samples: int, seed: int, notes: Console) -> list[Result]:
    columns = (TextColumn("{task.description:>18}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notes) as progress:
        tasks = {oracle.name: progress.add_task(oracle.name, total=len(codecs)) for oracle in oracles}
        asked = check_all(oracles, codecs, samples, seed, lambda name: progress.advance(tasks[name]))
    return asked + check_golden(codecs)


def _print(verdict: Verdict, beyond: Verdict, oracles: list[Oracle], console: Console) -> None:
    console.print(_table("Headers, embedded messages and records of internal topics", beyond))
    console.print(_table("Requests and responses", verdict))
    for oracle in oracles:
        if isinstance(oracle, HandwrittenOracle):
            for (name, version), fault in oracle.faults.items():
                console.print(f"[yellow]{oracle.name} was not asked for {name} v{version}: {fault}")
    for result in verdict.failures + beyond.failures:
        console.print(f"[bold red]{result.codec} differs from {result.oracle}[/]: {escape(result.failure or '')}")
    for codec in verdict.unchecked + beyond.unchecked:
        console.print(f"[bold red]{codec} was checked by nothing in this run")
    console.print(f"Each message went through these engines of our codec: {', '.join(ENGINES)}")
    console.print(f"{beyond.closing_line()} headers, embedded messages and records")
    console.print(f"[bold {'green' if verdict.complete else 'red'}]{verdict.closing_line()}")


def _table(title: str, verdict: Verdict) -> Table:
    table = Table("key", "message", "versions", "oracle: versions", "samples", title=title)
    table.columns[-1].justify = "right"
    for (key, name), group in groupby(verdict.wanted, lambda codec: (codec.key, codec.name)):
        codecs = list(group)
        results = [result for codec in codecs for result in verdict.by_codec.get(codec, [])]
        said: dict[str, list[int]] = {}
        for result in results:
            if result.failure is None:
                said.setdefault(result.oracle, []).append(result.codec.version)
        table.add_row(
            "" if key is None else str(key),
            name if all(verdict.conforms(codec) for codec in codecs) else f"[bold red]{name}",
            ranges(codec.version for codec in codecs),
            " · ".join(f"{oracle}: {ranges(versions)}" for oracle, versions in said.items()),
            str(sum(result.samples for result in results)),
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
