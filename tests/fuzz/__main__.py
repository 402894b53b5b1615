"""`make fuzz`: at least a million hostile inputs, on every core, with a table at the end. Exit code 1 on a finding.

`python -m tests.fuzz --part door` has as many strangers come to the door of a broker that asks for a login, instead.
"""

import argparse
import json
import os
import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from .door import run_door
from .run import SLICES, Finding, run_slice
from .targets import all_targets


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=1_000_000, help="at least so many cases in all (%(default)s)")
    parser.add_argument("--part", choices=("decoders", "door"), default="decoders", help="what to try (%(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="repeat an earlier run")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    console = Console(stderr=True)
    if options.part == "door":
        console.print(f"{options.cases} strangers at the door, seed {seed}")
        sizes = [-(-options.cases // SLICES)] * SLICES
        jobs = [partial(run_door, size, seed + index) for index, size in enumerate(sizes)]
    else:
        targets = all_targets()
        cases_each = -(-options.cases // sum(target.weight for target in targets))
        console.print(f"{len(targets)} decoders, {cases_each} cases or more each, seed {seed}")
        sizes = [cases_each * sum(target.weight for target in targets[index::SLICES]) for index in range(SLICES)]
        jobs = [partial(run_slice, index, cases_each, seed) for index in range(SLICES)]
    taken, refused = Counter[str](), Counter[str]()
    findings: list[Finding] = []
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool,
        Progress(*columns, console=console) as progress,
    ):
        task = progress.add_task("cases", total=sum(sizes))
        running = {pool.submit(job): size for job, size in zip(jobs, sizes, strict=True)}
        for done in as_completed(running):
            try:
                outcome = done.result()
            except BrokenProcessPool:
                findings.append(Finding("a worker", "died or hung; what it was doing stands above", ""))
                break
            taken.update(outcome.taken)
            refused.update(outcome.refused)
            findings += outcome.findings
            progress.advance(task, running[done])
    title = "Strangers at the door" if options.part == "door" else "Hostile bytes"
    report(title, seed, taken, refused, findings, as_json=options.json)
    return 1 if findings else 0


def report(
    title: str, seed: int, taken: Counter[str], refused: Counter[str], findings: list[Finding], *, as_json: bool
) -> None:
    groups = sorted({*taken, *refused})
    total = taken.total() + refused.total() + len(findings)
    if as_json:
        rows = {group: {"taken": taken[group], "refused": refused[group]} for group in groups}
        found = [finding._asdict() for finding in findings]
        print(json.dumps({"seed": seed, "cases": total, "groups": rows, "findings": found}))
        return
    columns = {
        "Hostile bytes": ("decoders", "made sense", "refused with ProtocolError"),
        "Strangers at the door": ("what they tried", "not yet sent away", "sent away"),
    }
    table = Table(*columns[title], title=title)
    for group in groups:
        table.add_row(group, f"{taken[group]:,}", f"{refused[group]:,}")
    console = Console()
    console.print(table)
    for finding in findings[:20]:
        console.print(f"[red]{finding.target}[/]: {finding.what}\n  {finding.data[:2000]}", highlight=False)
    console.print(f"{total:,} cases, {len(findings)} findings (seed {seed})", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
