"""`make fuzz`: at least a million hostile inputs, on every core, with a table at the end. Exit code 1 on a finding."""

import argparse
import json
import os
import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from .run import SLICES, Finding, run_slice
from .targets import all_targets


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000, help="at least so many cases in all (%(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="repeat an earlier run")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    targets = all_targets()
    cases_each = -(-options.cases // sum(target.weight for target in targets))
    console = Console(stderr=True)
    console.print(f"{len(targets)} decoders, {cases_each} cases or more each, seed {seed}")
    taken, refused = Counter[str](), Counter[str]()
    findings: list[Finding] = []
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool,
        Progress(*columns, console=console) as progress,
    ):
        task = progress.add_task("cases", total=cases_each * sum(target.weight for target in targets))
        running = {pool.submit(run_slice, index, cases_each, seed): index for index in range(SLICES)}
        for done in as_completed(running):
            try:
                outcome = done.result()
            except BrokenProcessPool:
                findings.append(Finding("a worker", "died or hung; what it was doing stands above", ""))
                break
            taken.update(outcome.taken)
            refused.update(outcome.refused)
            findings += outcome.findings
            done_targets = targets[running[done] :: SLICES]
            progress.advance(task, cases_each * sum(target.weight for target in done_targets))
    report(seed, taken, refused, findings, as_json=options.json)
    return 1 if findings else 0


def report(seed: int, taken: Counter[str], refused: Counter[str], findings: list[Finding], *, as_json: bool) -> None:
    groups = sorted({*taken, *refused})
    total = taken.total() + refused.total() + len(findings)
    if as_json:
        rows = {group: {"taken": taken[group], "refused": refused[group]} for group in groups}
        found = [finding._asdict() for finding in findings]
        print(json.dumps({"seed": seed, "cases": total, "groups": rows, "findings": found}))
        return
    table = Table("decoders", "made sense", "refused with ProtocolError", title="Hostile bytes")
    for group in groups:
        table.add_row(group, f"{taken[group]:,}", f"{refused[group]:,}")
    console = Console()
    console.print(table)
    for finding in findings[:20]:
        console.print(f"[red]{finding.target}[/]: {finding.what}\n  {finding.data[:2000]}", highlight=False)
    console.print(f"{total:,} cases, {len(findings)} findings (seed {seed})", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
