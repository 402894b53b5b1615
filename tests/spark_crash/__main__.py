"""Kill Spark and the broker under a pipeline, and look for every record: `python -m tests.spark_crash --seeds 10`."""

import argparse
import logging
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from .cluster import SparkCluster
from .run import Outcome, free_seed, run_at_points, run_at_random


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark_crash", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many runs with kills at random times")
    parser.add_argument("--first", type=int, default=None, help="the first seed; with --seeds 1 it repeats a run")
    parser.add_argument("--kills", type=int, default=12, help="of each run")
    parser.add_argument(
        "--cluster", action="store_true", help="a master and two workers instead of Spark in one process"
    )
    parser.add_argument("--points", action="store_true", help="a run before that with a kill at every named point")
    options = parser.parse_args()
    # Whoever ends this early leaves no processes behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    logging.basicConfig(format="%(asctime)s %(message)s")
    logging.getLogger(__package__).setLevel(logging.INFO)
    first = free_seed() if options.first is None else options.first
    outcomes: list[Outcome] = []

    def tell(name: str, run: Callable[[], Outcome]) -> None:
        outcome = run()
        outcomes.append(outcome)
        print(f"{name}: {'' if outcome.sound else 'NOT SOUND: '}{outcome}", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with SparkCluster(folder / "cluster") if options.cluster else nullcontext() as cluster:
            if options.points:
                tell("named points", lambda: run_at_points(folder / "points", cluster))
            for seed in range(first, first + options.seeds):
                tell(f"seed {seed}", lambda: run_at_random(folder / str(seed), options.kills, seed, cluster))  # noqa: B023
    print(f"{len(outcomes)} runs: {total(outcomes)}")
    return 0 if all(outcome.sound for outcome in outcomes) else 1


def total(outcomes: list[Outcome]) -> Outcome:
    """All runs as one."""
    found = Outcome()
    for outcome in outcomes:
        for name in Outcome.__slots__:
            setattr(found, name, getattr(found, name) + getattr(outcome, name))
    return found


if __name__ == "__main__":
    sys.exit(main())
