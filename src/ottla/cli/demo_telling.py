"""What people see of `ottla demo` while it goes on. Programs see none of it on stdout."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import indent
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text


class Bars:
    """Bars that grow, one for each thing that goes on."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def show(self, what: str, done: int, total: int | None, rate: float | None = None) -> None:
        """Set a bar. Without a total it only shows that something goes on."""
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, rate="")
        shown = "" if rate is None else f"{rate:,.0f}/s"
        self._progress.update(self._tasks[what], completed=done, total=total, rate=shown)

    def hide(self, what: str) -> None:
        """Take a bar away."""
        self._progress.remove_task(self._tasks.pop(what))


class Teller:
    """Tells the story, line by line and with bars below; with `--json` there are only the bars, on stderr."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.console = Console(highlight=False)
        self._bars_console = Console(stderr=True) if as_json else self.console

    def say(self, text: RenderableType = "") -> None:
        """Something without a duration."""
        if not self.as_json:
            self.console.print(text, soft_wrap=True)

    def did(self, seconds: float, what: str) -> None:
        """Something is done, and took so long."""
        self.say(f"[bold]{seconds:7.2f} s[/]  {what}")

    def heading(self, text: str) -> None:
        """A part begins."""
        if not self.as_json:
            self.console.rule(f"[bold]{text}[/]", align="left")

    def quote(self, text: str) -> None:
        """A file as it is."""
        self.say(Text(indent(text, " " * 4), "cyan"))

    def result(self, name: str, figures: dict[str, Any]) -> None:
        """What programs get of a part."""
        if self.as_json:
            self.console.out(json.dumps({name: figures}), highlight=False)

    @contextmanager
    def bars(self) -> Iterator[Bars]:
        """Bars while the block runs, if somebody looks."""
        columns = (
            TextColumn("   {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
        )
        hidden = not self._bars_console.is_terminal
        with Progress(*columns, console=self._bars_console, transient=True, disable=hidden) as progress:
            yield Bars(progress)
