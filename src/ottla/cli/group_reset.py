"""`ottla group reset`: offsets of a group that nobody is in."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.access import on_groups, on_topics
from ottla.cli.ending import fail
from ottla.cli.group_options import Name, Topics
from ottla.cli.group_places import (
    NewOffset,
    Target,
    find_offsets,
    find_partitions,
    parse_datetime,
    parse_duration,
    parse_topic,
    read_offsets,
    write_offsets,
)
from ottla.cli.group_show import NONE
from ottla.cli.output import Json, Where, print_json, print_table, say, with_admin
from ottla.client.admin import ACLOperation, Admin, GroupDescription
from ottla.client.offsets import EARLIEST, LATEST
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.ports import SystemClock
from ottla.wire.errors import ErrorCode, KafkaError


def reset(
    name: Name,
    topics: Topics = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All that the group has committed offsets for.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="The first record that is there.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="The end: only what comes from now on.")] = False,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            "--to-datetime",
            metavar="TIME",
            help="The first record at or after a time: 2024-05-01T14:00:00+02:00, or 2024-05-01T12:00:00, which is "
            "UTC as it names no zone.",
        ),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option(
            "--by-duration",
            metavar="DURATION",
            help="The first record of the last PT1H (an hour), PT1H30M, P7D (days), P1DT12H and so on.",
        ),
    ] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", metavar="N", help="So many records on, or back if negative.")
    ] = None,
    to_offset: Annotated[int | None, typer.Option("--to-offset", min=0, help="This offset.")] = None,
    to_current: Annotated[bool, typer.Option("--to-current", help="Where it is; of use with --export.")] = False,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from-file", metavar="CSV", exists=True, dir_okay=False, help="topic,partition,offset per line."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be.")] = False,
    export: Annotated[
        bool, typer.Option("--export", help="Only print the offsets as CSV, which --from-file reads.")
    ] = False,
    as_json: Json = False,
    *,
    where: Where,
) -> None:
    """Set the offsets of a group that has no members."""
    targets = [
        *([Target(EARLIEST)] if to_earliest else []),
        *([Target(LATEST)] if to_latest else []),
        # Negative times mean something else to a broker.
        *([Target(max(0, parse_datetime(to_datetime)))] if to_datetime is not None else []),
        *([Target(max(0, SystemClock().now_ms() - parse_duration(by_duration)))] if by_duration is not None else []),
        *([Target(shift_by=shift_by)] if shift_by is not None else []),
        *([Target(offset=to_offset)] if to_offset is not None else []),
        *([Target()] if to_current else []),
        *([Target(offsets=_read_file(from_file))] if from_file is not None else []),
    ]
    if len(targets) != 1:
        raise typer.BadParameter(
            f"give {'only ' if targets else ''}one of --to-earliest, --to-latest, --to-datetime, --by-duration, "
            "--shift-by, --to-offset, --to-current, --from-file"
        )
    (target,) = targets
    chosen = [parse_topic(topic) for topic in topics or []]
    if from_file is None and bool(chosen) == all_topics:
        raise typer.BadParameter("give either --topic or --all-topics")

    async def work(admin: Admin) -> None:
        only_show = dry_run or export
        group = await _find(admin, name)
        if group is not None and not only_show:
            _refuse_active(group)
        committed = await admin.list_consumer_group_offsets(name)
        places = await _places(admin, name, chosen, all_topics, committed, target)
        found = await find_offsets(admin, places, committed, target)
        for place, one in found.items():
            if one.offset != one.asked:
                where = "beyond the end" if one.asked > one.offset else "before the start"
                say(f"{place.topic}-{place.partition}: {one.asked} is {where}, {one.offset} taken")
        if group is None:
            say(f"group {name!r} is new")
        offsets = {place: one.offset for place, one in found.items()}
        if not only_show:
            await admin.alter_consumer_group_offsets(name, offsets)
        if export:
            typer.echo(write_offsets(offsets), nl=False)
            return
        _print_offsets(found, committed, as_json=as_json)
        count = f"{len(offsets)} offset{'' if len(offsets) == 1 else 's'}"
        say(f"would set {count} of {name}" if dry_run else f"set {count} of {name}")

    read_topics = on_topics(ACLOperation.READ, [topic for topic, _ in chosen])
    with_admin(where, work, on_groups(ACLOperation.READ, [name]), read_topics)


def _read_file(path: Path) -> dict[TopicPartition, int]:
    try:
        return read_offsets(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint="--from-file") from None


async def _find(admin: Admin, name: str) -> GroupDescription | None:
    try:
        return (await admin.describe_consumer_groups([name]))[name]
    except KafkaError as error:
        # A group can be given offsets before it is first used.
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return None


def _refuse_active(group: GroupDescription) -> None:
    if group.is_active:
        count = len(group.members)
        members = f"{count} member{'' if count == 1 else 's'}"
        fail(f"group {group.group_id!r} is {group.state} with {members}, who would not notice: stop them first")


async def _places(
    admin: Admin,
    name: str,
    chosen: list[tuple[str, list[int] | None]],
    all_topics: bool,
    committed: dict[TopicPartition, OffsetAndMetadata],
    target: Target,
) -> list[TopicPartition]:
    if all_topics:
        places = list(committed)
        if not places:
            fail(f"group {name!r} has no offsets; name the topics with --topic")
        return places
    if target.offsets is None:
        return await find_partitions(admin, chosen)
    listed: dict[str, list[int] | None] = {}
    for place in target.offsets:
        listed[place.topic] = [*(listed.get(place.topic) or []), place.partition]
    places = await find_partitions(admin, listed.items())
    wanted = set(await find_partitions(admin, chosen)) if chosen else set(places)
    return [place for place in places if place in wanted]


def _print_offsets(
    offsets: dict[TopicPartition, NewOffset], committed: dict[TopicPartition, OffsetAndMetadata], *, as_json: bool
) -> None:
    before = {place: committed[place].offset if place in committed else None for place in offsets}
    if as_json:
        print_json(
            [
                {
                    "topic": place.topic,
                    "partition": place.partition,
                    "before": before[place],
                    "asked": one.asked,
                    "offset": one.offset,
                }
                for place, one in offsets.items()
            ]
        )
        return
    rows = [(*place, NONE if before[place] is None else before[place], one.offset) for place, one in offsets.items()]
    print_table(["topic", "partition #", "before #", "offset #"], rows)
