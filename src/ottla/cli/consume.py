"""`ottla consume`: records of a topic to stdout."""

import sys
from typing import Annotated, NamedTuple

import typer

from ottla.cli.access import on_topics
from ottla.cli.formats import Writer, json_writer, text_writer
from ottla.cli.output import Where, with_consumer, write_all
from ottla.client.consumer import Consumer
from ottla.client.offsets import EARLIEST, LATEST
from ottla.client.types import ConsumerRecord, TopicPartition
from ottla.cluster.acl import ACLOperation
from ottla.wire.errors import ErrorCode, KafkaError

WAIT_MS = 200
"""How long to wait for records before looking whether the end is reached, which need not be a record."""


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
    *,
    where: Where,
) -> None:
    """Print the records of a topic."""
    begin = parse_start(start)
    try:
        write = json_writer if as_json else text_writer(template)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--format") from None

    async def work(consumer: Consumer) -> None:
        wanted = await _partitions(consumer, topic, partitions)
        offsets = await _offsets(consumer, wanted, begin)
        ends = await consumer.end_offsets(wanted) if exit_at_end else None
        consumer.assign(wanted)
        for partition, offset in offsets.items():
            consumer.seek(partition, offset)
        await _print_records(consumer, ends, count, write)

    with_consumer(where, work, on_topics(ACLOperation.READ, [topic]))


async def _partitions(consumer: Consumer, topic: str, chosen: list[int] | None) -> list[TopicPartition]:
    there = sorted(await consumer.partitions_for_topic(topic))
    for partition in chosen or []:
        if partition not in there:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic!r} has partitions 0 to {len(there) - 1}, not {partition}",
            )
    return [TopicPartition(topic, partition) for partition in chosen or there]


async def _offsets(consumer: Consumer, partitions: list[TopicPartition], start: Start) -> dict[TopicPartition, int]:
    """The offset at which each partition begins."""
    if start.time_ms is None:
        return dict.fromkeys(partitions, start.offset)
    if start.time_ms == EARLIEST:
        return await consumer.beginning_offsets(partitions)
    # Where nothing is as late as a time, what comes next will be.
    found = await consumer.end_offsets(partitions)
    if start.time_ms != LATEST:
        by_time = await consumer.offsets_for_times(dict.fromkeys(partitions, start.time_ms))
        found.update({partition: answer.offset for partition, answer in by_time.items() if answer is not None})
    if start.offset:
        first = await consumer.beginning_offsets(partitions)
        found = {partition: max(first[partition], offset + start.offset) for partition, offset in found.items()}
    return found


async def _print_records(
    consumer: Consumer, ends: dict[TopicPartition, int] | None, count: int | None, write: Writer
) -> None:
    out = sys.stdout.buffer
    while True:
        if ends is not None:
            unread = [one for one in consumer.assignment() if await consumer.position(one) < ends[one]]
            if not unread:
                return
            consumer.assign(unread)
        found = await consumer.getmany(timeout_ms=WAIT_MS, max_records=count)
        shown = _before([record for records in found.values() for record in records], ends)
        if count is not None:
            count -= len(shown)
        if shown:
            write_all(out, b"".join(map(write, shown)))
        if count == 0:
            return


def _before(found: list[ConsumerRecord], ends: dict[TopicPartition, int] | None) -> list[ConsumerRecord]:
    if ends is None:
        return found
    return [record for record in found if record.offset < ends[record.topic_partition]]
