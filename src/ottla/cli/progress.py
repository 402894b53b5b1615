"""How far long work has come, on stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn


@contextmanager
def counting(what: str, count: Callable[[], int]) -> Iterator[Callable[[], None]]:
    """Show a count that grows, and its speed, while the block runs; call what it yields now and then."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.completed:,.0f} {task.description}"),
        TaskProgressColumn(show_speed=True),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda: progress.update(task, completed=count())
