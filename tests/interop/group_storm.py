"""Storms in groups of real clients, with a table at the end.

    python -m tests.interop.group_storm [--client CLIENT ...] [--seconds 120] [--seed 0] [--restarts]

Members come, leave, are killed and are paused for longer than their session at random moments while records flow.
`--restarts` has the broker restart now and then too. The exit status is 1 if a record was skipped, if something
committed was delivered again to a member that came later, or if a group did not settle.
"""

import argparse
import random
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .group_storm_process import ALL_CLIENTS
from .group_storm_run import Report, random_moves, storm

COLUMNS = ("client", "seconds", "moves", "produced", "delivered", "commits", "refused", "assignments", "silence s", "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run them; 0 if all went well."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.group_storm")
    parser.add_argument("--client", action="append", choices=ALL_CLIENTS, help="may be given again; all if not given")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--restarts", action="store_true", help="restart the broker now and then")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = Table(*COLUMNS, title=f"Storms in groups, seed {options.seed}")
    troubled = False
    for client in options.client or ALL_CLIENTS:
        moves = random_moves(random.Random(options.seed), options.seconds, restarts=options.restarts)
        report = storm(client, moves, options.seconds)
        table.add_row(*_row(report))
        troubled |= bool(report.trouble)
        for line in report.trouble:
            console.print(f"[bold red]{client}[/]: {escape(line)}")
    console.print(table)
    return 1 if troubled else 0


def _row(report: Report) -> tuple[str, ...]:
    said = report.said
    return (
        report.client,
        f"{report.seconds:.0f}",
        ", ".join(f"{count} {what}" for what, count in sorted(report.moves.items())),
        f"{report.produced:,}",
        f"{report.delivered:,}",
        f"{said['committed']:,}",
        f"{said['refused']:,}",
        f"{said['assigned']:,}",
        f"{report.longest_silence_s:.1f}",
        "[red]trouble" if report.trouble else "[green]well",
    )


if __name__ == "__main__":
    sys.exit(main())
