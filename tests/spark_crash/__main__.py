"""Kill Spark and the broker under a pipeline, and look for every record: `python -m tests.spark_crash --seeds 30`."""

import argparse
import logging
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from .cluster import SparkCluster
from .report import Run, line, show
from .run import Outcome, free_seed, run_at_points, run_at_random


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark_crash", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many runs with kills at random times")
    parser.add_argument("--first", type=int, default=None, help="the first seed; with --seeds 1 it repeats a run")
    parser.add_argument("--kills", type=int, default=12, help="of each run")
    parser.add_argument("--minutes", type=float, default=None, help="start no run after this long")
    parser.add_argument(
        "--cluster", action="store_true", help="a master and two workers instead of Spark in one process"
    )
    parser.add_argument("--points", action="store_true", help="a run before that with a kill at every named point")
    parser.add_argument("--verbose", action="store_true", help="tell of each kill")
    options = parser.parse_args()
    # Whoever ends this early leaves no processes behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    logging.basicConfig(format="%(asctime)s %(message)s")
    logging.getLogger(__package__).setLevel(logging.INFO if options.verbose else logging.WARNING)
    first = free_seed() if options.first is None else options.first
    started = time.monotonic()
    runs: list[Run] = []

    def tell(name: str, work: Callable[[Path], Outcome]) -> None:
        if options.minutes is not None and time.monotonic() - started > options.minutes * 60:
            return
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            runs.append(Run.of(name, lambda: work(Path(folder) / "run")))
        print(line(runs[-1]), flush=True)

    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        SparkCluster(Path(folder)) if options.cluster else nullcontext() as cluster,
    ):
        if options.points:
            tell("named points", lambda place: run_at_points(place, cluster))
        for seed in range(first, first + options.seeds):
            tell(f"seed {seed}", lambda place: run_at_random(place, options.kills, seed, cluster))  # noqa: B023
    show(runs)
    return 0 if all(run.sound for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
