"""What the commands that talk to a cluster share: options, tables, JSON, and how failures end.

Exit codes: 0 fine, 1 failed with a message on stderr, 2 a mistake in the command line, 130 interrupted.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Annotated, Any, BinaryIO, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from ottla.cli.security import chosen_security, security_arguments
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.consumer import Consumer
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.producer import Producer
from ottla.wire.errors import EncodeError, KafkaError, ProtocolError

FAILED, INTERRUPTED = 1, 130
WIDTH_WITHOUT_TERMINAL = 250

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap", "-b", envvar="OTTLA_BOOTSTRAP", metavar="HOST:PORT", help="A broker; several with commas."
    ),
]
DEFAULT_BOOTSTRAP = "localhost:9092"
TimeoutMs = Annotated[int, typer.Option("--timeout-ms", min=1, help="How long to wait for the cluster.")]
DEFAULT_TIMEOUT_MS = 30_000
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def with_cluster(bootstrap: str, timeout_ms: int, work: Callable[[Cluster], Awaitable[None]]) -> None:
    """Connect, do the work, and leave with the exit code that its outcome calls for."""

    async def connected() -> None:
        options = ClientOptions(bootstrap_servers=bootstrap, request_timeout_ms=timeout_ms, security=chosen_security())
        async with Cluster(options) as cluster:
            await work(cluster)

    _finish(bootstrap, connected)


def with_admin(bootstrap: str, timeout_ms: int, work: Callable[[Admin], Awaitable[None]]) -> None:
    """The same with an admin client."""

    async def connected() -> None:
        async with Admin(bootstrap, request_timeout_ms=timeout_ms, **security_arguments()) as admin:
            await work(admin)

    _finish(bootstrap, connected)


def with_consumer(bootstrap: str, timeout_ms: int, work: Callable[[Consumer], Awaitable[None]]) -> None:
    """The same with a consumer that has no group, creates no topic, and begins where it is told."""

    async def connected() -> None:
        async with Consumer(
            bootstrap_servers=bootstrap,
            request_timeout_ms=timeout_ms,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            **security_arguments(),
        ) as consumer:
            await work(consumer)

    _finish(bootstrap, connected)


def with_producer(bootstrap: str, timeout_ms: int, work: Callable[[Producer], Awaitable[None]], **options: Any) -> None:
    """The same with a producer; what it was given is sent before it ends."""

    async def connected() -> None:
        async with Producer(
            bootstrap_servers=bootstrap,
            request_timeout_ms=timeout_ms,
            max_block_ms=timeout_ms,
            delivery_timeout_ms=timeout_ms,
            **security_arguments(),
            **options,
        ) as producer:
            await work(producer)

    _finish(bootstrap, connected)


def _finish(bootstrap: str, story: Callable[[], Awaitable[None]]) -> None:
    try:
        parse_bootstrap(bootstrap)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap") from None
    try:
        _run(story)
        sys.stdout.flush()
    except KafkaError as error:
        # Not with the advice of `str(error)`, which is for those who write programs.
        fail(f"{error.code.name}: {error.message}")
    except (ProtocolError, EncodeError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read the output has had enough, as `head` has. Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None


def _run(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await story()

    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())


def fail(message: str) -> NoReturn:
    """Say on stderr what went wrong and leave with code 1."""
    complain(message)
    raise typer.Exit(FAILED)


def complain(message: str) -> None:
    """Say on stderr what went wrong, and go on."""
    typer.echo(f"error: {message}", err=True)


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
