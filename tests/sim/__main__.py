"""Cut the power of simulated machines and check what their flush policies promise.

`python -m tests.sim --seeds 1000`, or `--policy interval --seed 19` to repeat one run.
"""

import argparse
import json
import logging
import sys

from rich.console import Console
from rich.progress import Progress

from .run import run
from .world import POLICIES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="runs per policy")
    parser.add_argument("--policy", choices=POLICIES, action="append", help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=None, help="repeat one run, and say what recovery did")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL if options.seed is None else logging.INFO, format="%(message)s")
    seeds = range(options.seeds) if options.seed is None else [options.seed]
    reports = []
    with Progress(console=Console(stderr=True)) as progress:
        for policy in options.policy or POLICIES:
            task = progress.add_task(policy, total=len(seeds))
            reports.append(run(policy, seeds, lambda task=task: progress.advance(task)))  # type: ignore[misc]
    for report in reports:
        seen = report.seen
        if options.json:
            broken = [each._asdict() for each in report.broken]
            print(json.dumps({"policy": report.policy, "seeds": report.seeds, **seen._asdict(), "broken": broken}))
            continue
        print(
            f"{report.policy}: {report.seeds} seeds, {seen.power_cuts:,} power cuts, {seen.kills:,} kills, "
            f"{seen.clean_stops:,} clean stops; {seen.acknowledged:,} records acknowledged, {seen.lost:,} lost as the "
            f"policy allows; {len(report.broken)} seeds broke the promise"
        )
        for each in report.broken:
            print(f"  --policy {report.policy} --seed {each.seed}: {each.reason}")
    return 1 if any(report.broken for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
