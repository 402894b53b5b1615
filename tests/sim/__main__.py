"""Cut the power of simulated machines and check what their flush policies promise.

`python -m tests.sim --seeds 1000`, or `--policy interval --seed 19` to repeat one run, with `--compacted` if its topic
was.
"""

import argparse
import json
import logging
import sys
from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.progress import Progress

from .compacted import CompactedWorld
from .run import Report, run
from .world import POLICIES, World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="runs per policy")
    parser.add_argument("--policy", choices=POLICIES, action="append", help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=None, help="repeat one run, and say what recovery did")
    parser.add_argument("--compacted", action="store_true", help="only machines whose topic is compacted")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL if options.seed is None else logging.INFO, format="%(message)s")
    seeds = range(options.seeds) if options.seed is None else [options.seed]
    kinds: dict[str, Callable[[str, int], World]] = {"": World, "compacted": CompactedWorld}
    if options.compacted or options.seed is not None:
        # One seed is repeated as the one machine that it was.
        del kinds["" if options.compacted else "compacted"]
    reports = []
    with Progress(console=Console(stderr=True)) as progress:
        for kind, world in kinds.items():
            for policy in options.policy or POLICIES:
                task = progress.add_task(f"{policy} {kind}", total=len(seeds))
                advance = partial(progress.advance, task)
                reports.append((kind, run(policy, seeds, advance, world)))
    for kind, report in reports:
        _show(kind, report, as_json=options.json)
    return 1 if any(report.broken for _, report in reports) else 0


def _show(kind: str, report: Report, *, as_json: bool) -> None:
    seen = report.seen
    if as_json:
        broken = [each._asdict() for each in report.broken]
        front = {"policy": report.policy, "topic": kind or "plain", "seeds": report.seeds}
        print(json.dumps({**front, **seen._asdict(), "broken": broken}))
        return
    print(
        f"{report.policy}{', compacted' if kind else ''}: {report.seeds} seeds, {seen.power_cuts:,} power cuts, "
        f"{seen.kills:,} kills, {seen.clean_stops:,} clean stops; {seen.acknowledged:,} records acknowledged, "
        f"{seen.lost:,} lost as the policy allows; {len(report.broken)} seeds broke the promise"
    )
    for each in report.broken:
        print(f"  {'--compacted ' if kind else ''}--policy {report.policy} --seed {each.seed}: {each.reason}")


if __name__ == "__main__":
    sys.exit(main())
