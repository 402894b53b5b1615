"""Thousands of histories: python -m tests.sim.groups --seeds 2000."""

import argparse
import json
import sys
import time

from rich.console import Console
from rich.progress import track
from rich.table import Table

from .run import KINDS, Report, run


def main() -> None:
    """Play them, and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, help="one kind of group only")
    parser.add_argument("--seeds", type=int, default=1000, help="histories of each kind")
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args()
    seeds = range(options.seeds) if options.seed is None else range(options.seed, options.seed + 1)
    console = Console(stderr=True)
    reports: dict[str, Report] = {}
    began = time.monotonic()
    for kind in [options.kind] if options.kind else KINDS:
        report = reports[kind] = Report()
        for seed in track(seeds, description=kind, console=console):
            one = run(kind, [seed])
            report.histories += one.histories
            report.seen += one.seen
            report.broken += one.broken
    if options.json:
        print(json.dumps({kind: {**vars(r), "broken": [vars(f) for f in r.broken]} for kind, r in reports.items()}))
    else:
        _show(reports, time.monotonic() - began)
    sys.exit(1 if any(report.broken for report in reports.values()) else 0)


def _show(reports: dict[str, Report], took_s: float) -> None:
    table = Table("groups", "histories", "joins", "commits", "offsets read", "coordinators killed", "broken")
    for kind, report in reports.items():
        seen = report.seen
        joins = seen["join 0"] + seen["consumer heartbeat 0"]
        cells = report.histories, joins, seen["commit 0"], seen["offsets read"], seen["coordinator killed"]
        table.add_row(kind, *(f"{cell:,}" for cell in cells), str(len(report.broken)))
    console = Console()
    console.print(table)
    for report in reports.values():
        for failure in report.broken[:10]:
            console.print(f"{failure.kind} seed {failure.seed}: {failure.complaint}", style="red", markup=False)
    console.print(f"{took_s:.1f} s")


if __name__ == "__main__":
    main()
