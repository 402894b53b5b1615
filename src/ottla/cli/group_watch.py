"""`ottla group describe --watch`: groups each second, also those to come, and whether the broker still answers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live

from ottla.cli import group_show
from ottla.cli.group_show import Looked
from ottla.cli.output import say
from ottla.ports import Clock
from ottla.wire.errors import KafkaError

REDRAW_S = 1.0


class Sight(NamedTuple):
    """What there is to see at a moment."""

    looked: Looked
    """What the last answer said."""
    at_ms: int
    """When that came, or when the watch began."""
    silent: bool
    """Whether the answer that should be there by now is not."""

    @property
    def status(self) -> str:
        """How old it is."""
        # Next to a person's own clock, hence in their time zone.
        time = f"{datetime.fromtimestamp(self.at_ms / 1000, UTC).astimezone():%H:%M:%S}"
        return f"no answer since {time}, still trying" if self.silent else f"at {time}"

    @property
    def waiting(self) -> list[str]:
        """A line for each group that is not there."""
        return [f"there is no group {name!r} yet: waiting for it" for name in self.looked.missing]


async def watch(look: Callable[[], Awaitable[Looked]], clock: Clock) -> AsyncIterator[Sight]:
    """Look each second, for ever. What fails before the first answer is raised, since it is likely a wrong address."""
    sight = Sight(Looked([], []), clock.now_ms(), silent=True)
    answered = False
    while True:
        looking = asyncio.ensure_future(look())
        try:
            # A look tries again by itself for as long as a request may take; nobody is left in the dark meanwhile.
            while not (await asyncio.wait({looking}, timeout=REDRAW_S))[0]:
                sight = sight._replace(silent=True)
                yield sight
            sight = Sight(looking.result(), clock.now_ms(), silent=False)
            answered = True
        except KafkaError as error:
            if not answered or not error.retriable:
                raise
            sight = sight._replace(silent=True)
        finally:
            looking.cancel()
        yield sight
        await asyncio.sleep(REDRAW_S)


async def draw(sights: AsyncIterator[Sight], console: Console, *, members: bool) -> None:
    """Keep a terminal up to date."""

    def picture(sight: Sight) -> RenderableType:
        tables = group_show.screen(sight.looked, console, members=members)
        return Group(tables, *sight.waiting, sight.status)

    with Live(console=console, auto_refresh=False) as live:
        async for sight in sights:
            live.update(picture(sight), refresh=True)


async def follow(sights: AsyncIterator[Sight], show: Callable[[Sight], None]) -> None:
    """Write what each look found; on stderr, once each, that one is not answered and which groups are not there."""
    told: list[str] = []
    async for sight in sights:
        news = [sight.status] if sight.silent else sight.waiting
        for line in news:
            if line not in told:
                say(line)
        told = news
        if sight.looked.shown and not sight.silent:
            show(sight)
