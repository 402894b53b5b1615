"""`ottla top`: topics, clients, groups and lag, drawn again and again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from ottla.cli.output import Json, Where, make_console, make_table, print_json, with_admin
from ottla.cli.top_look import ClientLine, GroupLine, Look, Snapshot, TopicLine, compare, look
from ottla.client.admin import Admin
from ottla.ports import SystemClock
from ottla.wire.errors import KafkaError

NONE = "-"
LINES_BESIDE_ROWS = 16
"""What headings take of a screen."""

FEWEST_ROWS = 3
PATIENCE_S = 2.0

TOPIC_COLUMNS = ["topic", "partitions #", "records #", "records/s #", "in/s #", "out/s #"]
GROUP_COLUMNS = ["group", "state", "members #", "partitions #", "lag #", "lag/s #", "clients"]
CLIENT_COLUMNS = ["client", "principal", "connections #", "requests/s #", "errors/s #", "in/s #", "out/s #"]


def top(
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            envvar="OTTLA_METRICS",
            help="The broker's port for metrics (`ottla serve --metrics`), for what single clients do.",
        ),
    ] = None,
    interval_s: Annotated[float, typer.Option("--interval", min=0.1, help="Seconds between two looks.")] = 1.0,
    internal: Annotated[bool, typer.Option("--internal", help="Internal topics too.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Look twice, show what happened in between, and end.")] = False,
    as_json: Json = False,
    *,
    where: Where,
) -> None:
    """Watch topics, clients, groups and lag; with --json, one snapshot for programs."""
    clock = SystemClock()

    async def work(admin: Admin) -> None:
        console = make_console()

        async def look_again() -> Look:
            return await look(admin, metrics, clock, internal=internal)

        before = await look_again()
        await asyncio.sleep(interval_s)
        now = await look_again()
        if as_json:
            print_json(compare(before, now).as_json())
        elif once or not console.is_terminal:
            console.print(_picture(compare(before, now), None, ""))
        else:
            await _draw(console, look_again, before, now, interval_s)

    with_admin(where, work)


async def _draw(
    console: Console, look_again: Callable[[], Awaitable[Look]], before: Look, now: Look, interval_s: float
) -> None:
    """Keep a terminal up to date, also while no broker answers."""
    with Live(console=console, auto_refresh=False, screen=True) as live:

        def show(status: str) -> None:
            live.update(_picture(compare(before, now), console.height, status), refresh=True)

        show("")
        while True:
            await asyncio.sleep(interval_s)
            looking = asyncio.ensure_future(look_again())
            try:
                # A look tries again by itself for as long as a request may take.
                while not (await asyncio.wait({looking}, timeout=PATIENCE_S))[0]:
                    show("no answer, still trying")
                before, now = now, looking.result()
                show("")
            except KafkaError as error:
                if not error.retriable:
                    raise
                show(f"no answer, still trying: {error.message}")
            finally:
                looking.cancel()


def _picture(snapshot: Snapshot, height: int | None, status: str) -> RenderableType:
    tables = 3 if snapshot.clients is not None else 2
    rows = None if height is None else max(FEWEST_ROWS, (height - LINES_BESIDE_ROWS) // tables)
    parts: list[RenderableType] = [
        Text(_headline(snapshot) + (f"   {status}" if status else ""), style="bold"),
        _table("topics", TOPIC_COLUMNS, _topic_rows(snapshot.topics), rows),
        _table("groups", GROUP_COLUMNS, _group_rows(snapshot.groups), rows),
    ]
    if snapshot.clients is not None:
        parts.append(_table("clients", CLIENT_COLUMNS, _client_rows(snapshot.clients), rows))
    return Group(*parts)


def _headline(snapshot: Snapshot) -> str:
    records = sum(line.records_in for line in snapshot.topics)
    lag = sum(line.lag or 0 for line in snapshot.groups)
    return f"{records:,.0f} records/s in   lag {lag:,}   over {snapshot.interval_s:.1f} s"


def _table(title: str, columns: list[str], cells: list[tuple[object, ...]], most: int | None) -> RenderableType:
    shown = cells if most is None else cells[:most]
    left = len(cells) - len(shown)
    heading = f"{len(cells)} {title if len(cells) != 1 else title.removesuffix('s')}"
    return make_table(columns, shown, title=heading + (f", {left} not shown" if left else ""))


def _topic_rows(lines: list[TopicLine]) -> list[tuple[object, ...]]:
    return [
        (
            *(line.topic, line.partitions, f"{line.records:,}", f"{line.records_in:,.0f}"),
            *(_size(line.bytes_in), _size(line.bytes_out)),
        )
        for line in lines
    ]


def _group_rows(lines: list[GroupLine]) -> list[tuple[object, ...]]:
    return [
        (
            *(line.group, line.state, line.members, line.partitions),
            NONE if line.lag is None else f"{line.lag:,}",
            NONE if line.lag_growth is None else f"{line.lag_growth:+,.0f}",
            ", ".join(line.clients) or NONE,
        )
        for line in lines
    ]


def _client_rows(lines: list[ClientLine]) -> list[tuple[object, ...]]:
    return [
        (
            *(line.client_id or NONE, line.principal or NONE, line.connections),
            *(f"{line.requests:,.0f}", f"{line.errors:,.0f}", _size(line.bytes_in), _size(line.bytes_out)),
        )
        for line in lines
    ]


def _size(number: float | None) -> str:
    """A number of bytes, short.

    >>> _size(None), _size(999), _size(1_500_000)
    ('-', '999 B', '1.5 MB')
    """
    if number is None:
        return NONE
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"
