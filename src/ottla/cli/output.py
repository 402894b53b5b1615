"""What the commands that talk to a cluster share: options, tables, JSON, and what becomes of failures."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from ottla.cli.access import Need, refusal
from ottla.cli.ending import INTERRUPTED, fail
from ottla.cli.security import chosen, in_words_of_the_command, security_arguments
from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.options import parse_bootstrap
from ottla.client.producer import Producer
from ottla.wire.errors import EncodeError, KafkaError, ProtocolError

WIDTH_WITHOUT_TERMINAL = 250

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@dataclass(frozen=True)
class Where:
    """Options of all commands that talk to a cluster: which one, and how long to wait for it."""

    bootstrap: Annotated[
        str,
        typer.Option(
            "--bootstrap", "-b", envvar="OTTLA_BOOTSTRAP", metavar="HOST:PORT", help="A broker; several with commas."
        ),
    ] = "localhost:9092"
    timeout_ms: Annotated[int, typer.Option("--timeout-ms", min=1, help="How long to wait for the cluster.")] = 30_000


def with_admin(where: Where, work: Callable[[Admin], Awaitable[None]], *needs: Need) -> None:
    """Connect, do the work, and leave with the exit code that its outcome calls for.

    `needs` are what whoever runs the command has to be allowed to do, for what is said if he is not.
    """

    async def connected() -> None:
        async with Admin(where.bootstrap, request_timeout_ms=where.timeout_ms, **security_arguments()) as admin:
            await work(admin)

    _finish(where, connected, needs)


def with_consumer(where: Where, work: Callable[[Consumer], Awaitable[None]], *needs: Need) -> None:
    """The same with a consumer that has no group, creates no topic, and begins where it is told."""

    async def connected() -> None:
        async with Consumer(
            bootstrap_servers=where.bootstrap,
            request_timeout_ms=where.timeout_ms,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            **security_arguments(),
        ) as consumer:
            await work(consumer)

    _finish(where, connected, needs)


def with_producer(where: Where, work: Callable[[Producer], Awaitable[None]], *needs: Need, **options: Any) -> None:
    """The same with a producer; what it was given is sent before it ends."""

    async def connected() -> None:
        async with Producer(
            bootstrap_servers=where.bootstrap,
            request_timeout_ms=where.timeout_ms,
            max_block_ms=where.timeout_ms,
            delivery_timeout_ms=where.timeout_ms,
            **security_arguments(),
            **options,
        ) as producer:
            await work(producer)

    _finish(where, connected, needs)


def _finish(where: Where, story: Callable[[], Awaitable[None]], needs: Sequence[Need]) -> None:
    try:
        parse_bootstrap(where.bootstrap)
    except ValueError as error:
        raise typer.BadParameter(in_words_of_the_command(str(error)), param_hint="--bootstrap") from None
    try:
        _run(story)
        sys.stdout.flush()
    except KafkaError as error:
        fail(told(error, *needs))
    except (ProtocolError, EncodeError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read the output has had enough, as `head` has.
        _forget_output()
        raise typer.Exit from None
    except OSError as error:
        # A full disk, or a terminal that is gone: brokers' failures have names of their own.
        _forget_output()
        fail(f"reading the input or writing the output failed: {error.strerror or error}")


def _forget_output() -> None:
    """Drop what could not be written: Python would try, and complain, once more when it closes stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await story()

    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())


def told(error: KafkaError, *needs: Need) -> str:
    """An error in the words of the command that runs."""
    refused = refusal(error, needs, chosen().security)
    if refused is not None:
        return refused
    # Not with the advice of `str(error)`, which is for those who write programs. What has no code on the wire says so
    # by being its message alone.
    code = "" if str(error) == error.message else f"{error.code.name}: "
    return in_words_of_the_command(f"{code}{error.message}")


def say(message: str) -> None:
    """Tell a person what was done; on stderr, so that stdout has nothing but data."""
    typer.echo(message, err=True)


def write_all(stream: BinaryIO, data: bytes) -> None:
    """Write and flush. With PYTHONUNBUFFERED stdout is a raw file, which takes no more than its pipe has room for."""
    left = memoryview(data)
    while left:
        left = left[stream.write(left) or 0 :]
    stream.flush()


def print_json(value: Any) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(value, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Print a table; columns whose name ends in ` #` are numbers and go to the right."""
    make_console().print(make_table(columns, rows, title=title))


def make_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> Table:
    """A table as `print_table` prints it."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        number = column.endswith(" #")
        name = column.removesuffix(" #")
        table.add_column(name, justify="right" if number else "left", overflow="fold", no_wrap=number)
    for row in rows:
        table.add_row(*["" if cell is None else str(cell) for cell in row])
    return table


def make_console() -> Console:
    """Where tables go: stdout, and a good deal wide if that is no terminal."""
    width = None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL
    return Console(file=sys.stdout, width=width, highlight=False, markup=False)


def parse_settings(settings: Iterable[str], option: str) -> dict[str, str]:
    """Read `name=value` words.

    >>> parse_settings(["retention.ms=1000", "cleanup.policy=compact,delete"], "--config")
    {'retention.ms': '1000', 'cleanup.policy': 'compact,delete'}
    """
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{setting!r} is not of the form NAME=VALUE", param_hint=option)
        found[name.strip()] = value
    return found
