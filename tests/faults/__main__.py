"""Clients behind a proxy that cuts, delays and repeats at random: `python -m tests.faults --seeds 300`."""

import argparse
import logging
import sys
import traceback

from rich.console import Console
from rich.progress import Progress

from .long_run import STORIES, run_seeds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many runs")
    parser.add_argument("--first", type=int, default=0, help="the first seed; with --seeds 1 it repeats an earlier run")
    parser.add_argument("--broker", choices=["ottla", "kafka-4", "kafka-3.9"], default="ottla")
    parser.add_argument("--story", choices=sorted(set(STORIES)), help="this one only; which one a seed tells changes")
    options = parser.parse_args()
    # Clients tell of every fault; what matters is what comes of it.
    logging.getLogger("ottla").setLevel(logging.CRITICAL)
    console = Console(stderr=True)
    with Progress(console=console) as progress:
        task = progress.add_task("runs", total=options.seeds)

        def on_seed(seed: int, story: str, failure: BaseException | None) -> None:
            progress.advance(task)
            if failure is not None:
                text = "".join(traceback.format_exception(failure))
                console.print(f"seed {seed}, {story}:\n{text}", markup=False, highlight=False)

        seeds = range(options.first, options.first + options.seeds)
        summary = run_seeds(options.broker, seeds, on_seed, options.story)
    print(f"{options.broker}: {summary}")
    return 1 if summary.broken else 0


if __name__ == "__main__":
    sys.exit(main())
