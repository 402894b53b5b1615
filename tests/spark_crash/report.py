"""What the runs have shown, as lines and as a table."""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from rich.console import Console
from rich.table import Table

from .run import Outcome

FILE_WIDTH = 140
"""For a table that goes into a file."""
COLUMNS = ("run", "killed", "drivers", "records", "table", "topic", "s", "")


@dataclass(frozen=True)
class Run:
    """One run: what came of it, or why nothing did."""

    name: str
    outcome: Outcome
    seconds: float
    error: str = ""

    @classmethod
    def of(cls, name: str, work: Callable[[], Outcome]) -> Self:
        """Do it. One that fails does not keep the next from being done."""
        started = time.monotonic()
        outcome, error = Outcome(), ""
        try:
            outcome = work()
        except Exception as found:  # noqa: BLE001 - whatever it is, the run has not shown that all is well
            error = f"{type(found).__name__}: {found}"
        return cls(name, outcome, time.monotonic() - started, error)

    @property
    def sound(self) -> bool:
        """Whether everything arrived as it should."""
        return not self.error and self.outcome.sound

    @property
    def verdict(self) -> str:
        """In a word, or in the words of what went wrong."""
        if self.error or self.sound:
            return self.error or "sound"
        found = self.outcome
        wrong = found.table_wrong + found.topic_wrong
        return f"NOT SOUND: {wrong} wrong, {found.lost_by_broker} lost by the broker, left: {found.left_behind}"


def line(run: Run) -> str:
    """For who watches."""
    return f"{run.name}: {run.outcome}; {run.seconds:.0f} s; {run.verdict}"


def show(runs: Sequence[Run]) -> None:
    """Print a table, with all runs together in its last row."""
    table = Table(title="in table and topic: records missing, and doubled")
    for name in COLUMNS:
        table.add_column(name, no_wrap=name not in ("killed", ""))
    for run in runs:
        table.add_row(*cells(run))
    table.add_section()
    seconds = sum(run.seconds for run in runs)
    unsound = sum(not run.sound for run in runs)
    verdict = f"{unsound} not sound" if unsound else "all sound"
    table.add_row(*cells(Run(f"{len(runs)} runs", total(run.outcome for run in runs), seconds))[:-1], verdict)
    Console(width=None if sys.stdout.isatty() else FILE_WIDTH).print(table)


def cells(run: Run) -> list[str]:
    """A row of the table."""
    found = run.outcome
    killed = ", ".join(f"{count} {name}" for name, count in found.kills.most_common())
    return [
        run.name,
        f"{found.kills.total()}: {killed}; {len(found.points)} at points",
        str(found.starts),
        f"{found.produced:,}",
        f"{found.table_missing}, {found.table_doubled}",
        f"{found.topic_missing}, {found.topic_doubled:,}",
        f"{run.seconds:.0f}",
        run.verdict,
    ]


def total(outcomes: Iterable[Outcome]) -> Outcome:
    """All runs as one."""
    found = Outcome()
    for outcome in outcomes:
        for name in Outcome.__slots__:
            setattr(found, name, getattr(found, name) + getattr(outcome, name))
    return found
