"""Kill a broker with SIGKILL under load, and check every acknowledged record: `python -m tests.crash --kills 200`."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from .run import free_seed, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None, help="repeat an earlier run")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seed = free_seed() if options.seed is None else options.seed
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder, Progress(console=console) as progress:
        task = progress.add_task("kills", total=options.kills)
        outcome = run(Path(folder), options.kills, seed, lambda _: progress.advance(task))
    if options.json:
        print(json.dumps({"seed": seed, **outcome._asdict()}))
    else:
        print(
            f"{outcome.kills} kills, {outcome.acknowledged:,} records acknowledged, {outcome.stored:,} stored: "
            f"{outcome.missing} missing, {outcome.duplicated} duplicated, {outcome.out_of_order} out of order "
            f"(seed {seed})"
        )
    return 0 if outcome.sound else 1


if __name__ == "__main__":
    sys.exit(main())
