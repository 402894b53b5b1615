"""`ottla produce`: lines of stdin as records."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import Annotated, Any, BinaryIO

import typer

from ottla.cli.access import on_topics
from ottla.cli.ending import fail
from ottla.cli.formats import NewRecord, read_json, unescape
from ottla.cli.output import Where, with_producer
from ottla.client.producer import Producer
from ottla.cluster.acl import ACLOperation

CHUNK_BYTES = 1 << 18
CHUNKS_AHEAD = 4


class Compression(StrEnum):
    """How batches are compressed."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    """Whose acknowledgement a record waits for."""

    ALL = "all"
    LEADER = "1"
    NONE = "0"


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", "-K", metavar="TEXT", help="What stands between key and value.")
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--headers", "-H", metavar="NAME=VALUE", help="A header for every record; may be repeated."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="Send all to this partition, not by key.")
    ] = None,
    compression: Annotated[Compression, typer.Option("--compression", "-z", help="Codec.")] = Compression.NONE,
    acks: Annotated[Acks, typer.Option("--acks", help="Wait for all replicas, the leader, or nobody.")] = Acks.ALL,
    empty_as_null: Annotated[
        bool, typer.Option("--empty-as-null", "-Z", help="Send empty keys and values as null: tombstones.")
    ] = False,
    from_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Lines are JSON objects, as `ottla consume --json` prints them: value, key, headers, partition, "
            "timestamp. No value, or null, is a tombstone; a value that is no string is sent as JSON.",
        ),
    ] = False,
    *,
    where: Where,
) -> None:
    """Send each line of stdin as a record."""
    if from_json and key_separator is not None:
        raise typer.BadParameter("--json lines name their keys; leave --key-separator out")
    fixed = [_header(text) for text in headers or []]
    parse = read_json if from_json else _line_reader(key_separator, empty_as_null)

    async def work(producer: Producer) -> None:
        number = 0
        with _progress(producer) as show:
            async for lines in _lines(sys.stdin.buffer):
                for line in lines:
                    number += 1
                    try:
                        record = parse(line)
                    except ValueError as error:
                        await producer.flush()
                        fail(f"line {number}: {error}; the {number - 1} before it are sent")
                    await producer.send(
                        topic,
                        record.value,
                        record.key,
                        partition=record.partition if partition is None else partition,
                        timestamp_ms=record.timestamp_ms,
                        headers=[*fixed, *record.headers],
                    )
                show()
                # Nothing lies ready: somebody is typing, and wants to see it sent, or the input is at its end.
                if not lines.more_at_hand:
                    await producer.flush()
            await producer.flush()

    writing = on_topics(ACLOperation.WRITE, [topic], " (and CREATE if there is no such topic yet)")
    with_producer(where, work, writing, acks=acks.value, compression_type=compression.value)


def _header(text: str) -> tuple[str, bytes | None]:
    """Read NAME=VALUE; without `=` the value is null, as with kcat."""
    name, equals, value = text.partition("=")
    if not name:
        raise typer.BadParameter(f"{text!r} has no name; write NAME=VALUE", param_hint="--headers")
    return name, value.encode() if equals else None


def _line_reader(key_separator: str | None, empty_as_null: bool) -> Callable[[bytes], NewRecord]:
    separator = unescape(key_separator or "").encode()
    if key_separator is not None and not separator:
        raise typer.BadParameter("the separator is empty", param_hint="--key-separator")

    def read(line: bytes) -> NewRecord:
        key, found, value = line.partition(separator) if separator else (b"", b"", line)
        if not found:
            return NewRecord(_or_null(line, empty_as_null))
        return NewRecord(_or_null(value, empty_as_null), _or_null(key, empty_as_null))

    return read


def _or_null(data: bytes, empty_as_null: bool) -> bytes | None:
    return None if empty_as_null and not data else data


class _Lines(list[bytes]):
    """Lines without their ends, and whether more have been read already."""

    more_at_hand = False


async def _lines(stream: BinaryIO) -> AsyncIterator[_Lines]:
    """The lines of a stream that may block, as many at a time as are there.

    A thread of its own reads, one that the program's end does not wait for: the executor's would sit in a read of the
    terminal until Enter is pressed. It reads the raw file: a lock on the buffer around it would crash that end.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes | OSError] = asyncio.Queue(CHUNKS_AHEAD)

    def read_all() -> None:
        raw: Any = getattr(stream, "raw", stream)
        chunk: bytes | OSError = b" "
        while chunk and not isinstance(chunk, OSError):
            try:
                chunk = raw.read(CHUNK_BYTES)
            except ValueError:  # it was closed, so there is no more of it
                chunk = b""
            except OSError as error:
                chunk = error
            handing_over = chunks.put(chunk)
            try:
                asyncio.run_coroutine_threadsafe(handing_over, loop).result()
            except (RuntimeError, CancelledError):  # the loop is closed, or about to be
                handing_over.close()
                return

    threading.Thread(target=read_all, daemon=True, name="stdin").start()
    rest = b""
    while chunk := await chunks.get():
        if isinstance(chunk, OSError):
            raise chunk
        lines = _Lines((rest + chunk).split(b"\n"))
        rest = lines.pop()
        lines.more_at_hand = not chunks.empty()
        yield lines
    if rest:
        yield _Lines([rest])


def _progress(producer: Producer) -> AbstractContextManager[Callable[[], None]]:
    """A count of records on stderr, where a person waits for a long input to be sent."""
    if not sys.stderr.isatty() or sys.stdin.isatty():
        return nullcontext(lambda: None)
    from ottla.cli.progress import counting

    return counting("records sent", lambda: producer.records_sent)
