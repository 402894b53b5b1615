"""Where offsets are reset to: which partitions, and how far; and offsets as a file."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import typer

from ottla.client.admin import Admin
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode, KafkaError

MS_PER_SECOND = 1000

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_SECONDS = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}


def parse_datetime(text: str) -> int:
    """Read a time in ISO 8601 as milliseconds; without a zone it is UTC.

    >>> parse_datetime("2024-05-01T12:00:00.250"), parse_datetime("2024-05-01T14:00:00+02:00")
    (1714564800250, 1714564800000)
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no time; write one such as 2024-05-01T12:00:00 (UTC) or 2024-05-01T14:00:00+02:00",
            param_hint="--to-datetime",
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * MS_PER_SECOND)


def parse_duration(text: str) -> int:
    """Read a duration in ISO 8601 as milliseconds.

    >>> parse_duration("P1DT2H"), parse_duration("PT0.5S")
    (93600000, 500)
    """
    match = _DURATION.fullmatch(text)
    found = {} if match is None else {unit: value for unit, value in match.groupdict().items() if value is not None}
    if not found:
        raise typer.BadParameter(
            f"{text!r} is no duration; write one such as P7D, PT1H30M or P1DT12H", param_hint="--by-duration"
        )
    return round(sum(float(value) * _SECONDS[unit] for unit, value in found.items()) * MS_PER_SECOND)


def parse_topic(text: str) -> tuple[str, list[int] | None]:
    """Read `TOPIC`, which means all its partitions, or `TOPIC:0,1`.

    >>> parse_topic("orders"), parse_topic("orders:0,2")
    (('orders', None), ('orders', [0, 2]))
    """
    name, colon, chosen = text.partition(":")
    indexes = chosen.split(",") if colon else []
    if not name or not all(index.isdecimal() for index in indexes):
        raise typer.BadParameter(f"{text!r} is neither TOPIC nor TOPIC:0,1,2", param_hint="--topic")
    return name, [int(index) for index in indexes] if colon else None


async def find_partitions(admin: Admin, topics: Iterable[tuple[str, list[int] | None]]) -> list[TopicPartition]:
    """The partitions that such words mean, each of which must exist."""
    found: list[TopicPartition] = []
    wanted = list(topics)
    described = await admin.describe_topics([name for name, _ in wanted])
    for name, chosen in wanted:
        there = [one.partition for one in described[name].partitions]
        for index in chosen or []:
            if index not in there:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"topic {name!r} has partitions 0 to {len(there) - 1}, not {index}",
                )
        found += [TopicPartition(name, index) for index in (there if chosen is None else chosen)]
    return sorted(set(found))


def read_offsets(text: str) -> dict[TopicPartition, int]:
    """Read lines of `topic,partition,offset`, as `--export` and Kafka's tools write them.

    >>> read_offsets('orders,0,15\\n"orders",1,20\\n')
    {TopicPartition(topic='orders', partition=0): 15, TopicPartition(topic='orders', partition=1): 20}
    """
    found: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if not row:
            continue
        if len(row) != 3 or not row[1].strip().isdecimal() or not row[2].strip().isdecimal():
            raise ValueError(f"line {number} is {','.join(row)!r}, and not topic,partition,offset")
        found[TopicPartition(row[0], int(row[1]))] = int(row[2])
    if not found:
        raise ValueError("there is no line in it")
    return found


def write_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    """What `read_offsets` reads."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows((*place, offset) for place, offset in offsets.items())
    return text.getvalue()


@dataclass(frozen=True, slots=True)
class Target:
    """Where offsets go. One of these is set; none means that they stay where they are."""

    time_ms: int | None = None
    """A time, or one of the ends."""
    shift_by: int | None = None
    offset: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None


class NewOffset(NamedTuple):
    """Where a partition goes: what was asked for, or the end of the partition that is nearest to it."""

    offset: int
    asked: int


async def find_offsets(
    admin: Admin,
    places: Iterable[TopicPartition],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    target: Target,
) -> dict[TopicPartition, NewOffset]:
    """The new offset of each partition, which is never outside what the partition has."""
    wanted = list(places)
    if target.time_ms is not None:
        at_time = await admin.list_offsets(dict.fromkeys(wanted, target.time_ms))
        found = {place: one.offset for place, one in at_time.items() if one is not None}
        # Nothing is as late as that time: what comes next will be.
        found |= await admin.end_offsets([place for place in wanted if place not in found])
        return {place: NewOffset(found[place], found[place]) for place in wanted}
    if target.offset is None and target.offsets is None:
        wanted = _with_offsets(wanted, committed, target.shift_by)
    if target.offset is not None:
        chosen = dict.fromkeys(wanted, target.offset)
    elif target.offsets is not None:
        chosen = {place: target.offsets[place] for place in wanted}
    else:
        chosen = {place: committed[place].offset + (target.shift_by or 0) for place in wanted}
    first = await admin.beginning_offsets(wanted)
    last = await admin.end_offsets(wanted)
    return {place: NewOffset(min(max(asked, first[place]), last[place]), asked) for place, asked in chosen.items()}


def _with_offsets(
    places: list[TopicPartition], committed: Mapping[TopicPartition, OffsetAndMetadata], shift_by: int | None
) -> list[TopicPartition]:
    missing = [place for place in places if place not in committed]
    if missing and shift_by is not None:
        names = ", ".join(f"{place.topic}-{place.partition}" for place in missing)
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"nothing is committed for {names}: there is nothing to shift from")
    return [place for place in places if place in committed]
