"""`ottla consume`: records of a topic to stdout."""

import sys
from typing import Annotated, NamedTuple

import typer

from ottla.cli.formats import Writer, json_writer, text_writer
from ottla.cli.output import DEFAULT_BOOTSTRAP, DEFAULT_TIMEOUT_MS, Bootstrap, TimeoutMs, with_cluster, write_all
from ottla.client.cluster import Cluster
from ottla.client.fetch import ConsumerRecord, Fetcher
from ottla.client.offsets import EARLIEST, LATEST, NO_OFFSET, list_offsets
from ottla.client.types import TopicPartition
from ottla.wire.errors import ErrorCode, KafkaError


class Start(NamedTuple):
    """Where to begin: at the offset of a time or an end, moved by some records, or at an offset itself."""

    time_ms: int | None
    offset: int = 0


def parse_start(text: str) -> Start:
    """Read `beginning`, `end`, an offset, `-N` for N before the end, or `@MS` for a time.

    >>> parse_start("@1700000000000"), parse_start("-5"), parse_start("17")
    (Start(time_ms=1700000000000, offset=0), Start(time_ms=-1, offset=-5), Start(time_ms=None, offset=17))
    """
    if text == "beginning":
        return Start(EARLIEST)
    if text == "end":
        return Start(LATEST)
    if text.startswith("@") and text[1:].isdecimal():
        return Start(int(text[1:]))
    if text.removeprefix("-").isdecimal():
        return Start(LATEST, int(text)) if text.startswith("-") else Start(None, int(text))
    raise typer.BadParameter(
        f"{text!r} is no place to begin; give beginning, end, an offset, -N for the last N, or @TIME_MS",
        param_hint="--from",
    )


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    start: Annotated[
        str,
        typer.Option(
            "--from",
            "-o",
            metavar="PLACE",
            help="beginning, end, OFFSET, -N for the last N of each partition, @TIME_MS.",
        ),
    ] = "beginning",
    count: Annotated[int | None, typer.Option("--count", "-c", min=1, help="Stop after so many records.")] = None,
    exit_at_end: Annotated[
        bool, typer.Option("--exit-at-end", "-e", help="Stop at what was the end when the command began.")
    ] = False,
    partitions: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, help="Only this partition; may be repeated.")
    ] = None,
    template: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            help="kcat's: %s value, %k key, %h headers, %T timestamp, %t topic, %p partition, %o offset.",
        ),
    ] = "%s\\n",
    as_json: Annotated[bool, typer.Option("--json", "-J", help="One JSON object per line.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
) -> None:
    """Print the records of a topic."""
    begin = parse_start(start)
    try:
        write = json_writer if as_json else text_writer(template)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--format") from None

    async def work(cluster: Cluster) -> None:
        wanted = await _partitions(cluster, topic, partitions)
        positions = await _positions(cluster, wanted, begin)
        ends = await list_offsets(cluster, dict.fromkeys(wanted, LATEST)) if exit_at_end else None
        await _print_records(Fetcher(cluster, positions), ends, count, write)

    with_cluster(bootstrap, timeout_ms, work)


async def _partitions(cluster: Cluster, topic: str, chosen: list[int] | None) -> list[TopicPartition]:
    there = await cluster.partitions(topic)
    for partition in chosen or []:
        if partition not in there:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic!r} has partitions 0 to {len(there) - 1}, not {partition}",
            )
    return [TopicPartition(topic, partition) for partition in chosen or there]


async def _positions(cluster: Cluster, partitions: list[TopicPartition], start: Start) -> dict[TopicPartition, int]:
    """The offset at which each partition begins."""
    if start.time_ms is None:
        return dict.fromkeys(partitions, start.offset)
    found = await list_offsets(cluster, dict.fromkeys(partitions, start.time_ms))
    missing = [partition for partition, offset in found.items() if offset == NO_OFFSET]
    if missing:
        # Nothing is as late as that time: what comes next will be.
        found.update(await list_offsets(cluster, dict.fromkeys(missing, LATEST)))
    if start.offset:
        first = await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
        found = {partition: max(first[partition], offset + start.offset) for partition, offset in found.items()}
    return found


async def _print_records(
    fetcher: Fetcher, ends: dict[TopicPartition, int] | None, count: int | None, write: Writer
) -> None:
    out = sys.stdout.buffer
    try:
        while True:
            if ends is not None:
                for partition in [one for one, position in fetcher.positions.items() if position >= ends[one]]:
                    fetcher.drop(partition)
                if not fetcher.positions:
                    return
            shown = _before(await fetcher.fetch(), ends)
            if count is not None:
                shown = shown[:count]
                count -= len(shown)
            if shown:
                write_all(out, b"".join(map(write, shown)))
            if count == 0:
                return
    finally:
        await fetcher.close()


def _before(found: list[ConsumerRecord], ends: dict[TopicPartition, int] | None) -> list[ConsumerRecord]:
    if ends is None:
        return found
    return [record for record in found if record.offset < ends[TopicPartition(record.topic, record.partition)]]
