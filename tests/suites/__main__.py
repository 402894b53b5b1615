"""Run another client's own test suite against Ottla, as a ratchet.

    python -m tests.suites CLIENT --checkout PATH [--update] [--everything] [--json]

The tests in `tests/suites/allowed/CLIENT.txt` must pass; if one does not, the exit status is 1. Tests that pass and are
not in that list are reported, and `--update` adds them; it never takes one away. What is left out stands in
`tests/suites/left_out/CLIENT.txt` with a reason that `tests/suites/findings.md` explains.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .lists import grow
from .run import SuiteError, Verdict, run
from .suite import SUITES


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 0 if every test of the allow list passed."""
    options = _parse(arguments)
    suite = SUITES[options.client]
    notes = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=notes) as progress:
            task = progress.add_task(suite.client, total=None)
            verdict = run(
                suite,
                options.checkout.resolve(),
                everything=options.everything,
                timeout_seconds=options.timeout,
                log=options.log,
                on_progress=lambda done, total: progress.update(task, completed=done, total=total or None),
            )
    except (SuiteError, FileNotFoundError) as error:
        notes.print(f"[bold red]{escape(str(error))}")
        return 2
    added = grow(suite.allowed, suite.left_out, verdict.passed) if options.update else []
    if options.json:
        print(json.dumps(_as_json(verdict, added), indent=1))
    else:
        _print(verdict, added, Console(width=None if sys.stdout.isatty() else 160))
    return 1 if verdict.regressions else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.suites", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("client", choices=sorted(SUITES))
    parser.add_argument("--checkout", type=Path, required=True, help="a clone of the client's repository")
    parser.add_argument("--update", action="store_true", help="add what newly passes to the allow list")
    parser.add_argument("--everything", action="store_true", help="also run what is left out; slow, much of it hangs")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one test (default 120)")
    parser.add_argument("--log", type=Path, help="keep what their pytest prints in this file")
    parser.add_argument("--json", action="store_true", help="print JSON, and no table")
    return parser.parse_args(arguments)


def _as_json(verdict: Verdict, added: list[str]) -> dict[str, object]:
    return {
        "client": verdict.client,
        "seconds": round(verdict.seconds, 1),
        "allowed": len(verdict.allowed),
        "passed": verdict.passed,
        "regressions": {test: vars(ending) for test, ending in verdict.regressions.items()},
        "newly_passing": verdict.newly_passing,
        "added": added,
        "not_passing_and_unlisted": {test: vars(ending) for test, ending in verdict.unlisted.items()},
        "left_out": verdict.left_out,
    }


def _print(verdict: Verdict, added: list[str], console: Console) -> None:
    table = Table("file", "must pass", "passed", "failed", "skipped", "left out", title=f"{verdict.client}'s own suite")
    for column in table.columns[1:]:
        column.justify = "right"
    counts = {outcome: _by_file(verdict, outcome) for outcome in ("passed", "failed", "skipped")}
    allowed, left_out = Counter(map(_file, verdict.allowed)), Counter(map(_file, verdict.left_out))
    for file in sorted({_file(test) for test in (*verdict.allowed, *verdict.endings, *verdict.left_out)}):
        columns = (allowed, *counts.values(), left_out)
        table.add_row(file, *(str(counter[file] or "") for counter in columns))
    console.print(table)
    for reason, count in Counter(verdict.left_out.values()).most_common():
        console.print(f"left out: {count:3} for {reason}")
    for test, ending in verdict.unlisted.items():
        console.print(f"[yellow]{ending.outcome}, in no list[/]: {escape(test)}: {escape(ending.summary)}")
    for test in verdict.newly_passing:
        console.print(
            f"[green]{'added to the list' if test in added else 'passes now, say --update'}[/]: {escape(test)}"
        )
    for test, ending in verdict.regressions.items():
        console.print(f"[bold red]must pass, but {ending.outcome}[/]: {escape(test)}: {escape(ending.summary)}")
    kept = len(verdict.allowed) - len(verdict.regressions)
    colour = "red" if verdict.regressions else "green"
    console.print(f"[bold {colour}]{kept} of {len(verdict.allowed)} that must pass did, in {verdict.seconds:.0f} s")


def _by_file(verdict: Verdict, outcome: str) -> Counter[str]:
    return Counter(_file(test) for test, ending in verdict.endings.items() if ending.outcome == outcome)


def _file(test: str) -> str:
    return test.partition("::")[0]


if __name__ == "__main__":
    sys.exit(main())
