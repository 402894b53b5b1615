"""`ottla group`: list, describe and delete groups, and reset their offsets."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live

from ottla.cli import group_show
from ottla.cli.group_places import (
    Target,
    find_offsets,
    find_partitions,
    parse_datetime,
    parse_duration,
    parse_topic,
    read_offsets,
    write_offsets,
)
from ottla.cli.output import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT_MS,
    Bootstrap,
    Json,
    TimeoutMs,
    fail,
    make_console,
    print_json,
    print_table,
    say,
    with_cluster,
)
from ottla.client.cluster import Cluster, TopicPartition
from ottla.client.groups import GroupAdmin, GroupOffset
from ottla.client.offsets import EARLIEST, LATEST
from ottla.ports import SystemClock
from ottla.wire.errors import ErrorCode, KafkaError

REDRAW_S = 1.0

app = typer.Typer(help="List, describe and delete groups, and reset their offsets.", no_args_is_help=True)

Names = Annotated[list[str], typer.Argument(metavar="GROUP...", help="One or more groups.")]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC[:0,1]", help="A topic, or some of its partitions; may be repeated."),
]


@app.command("list")
def list_groups(
    states: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help="Only those in this state; may be repeated.")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only classic, or only consumer groups.")
    ] = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
) -> None:
    """List groups."""

    async def work(cluster: Cluster) -> None:
        groups = await GroupAdmin(cluster).list_groups(states or [], types or [])
        rows = [(one.group_id, one.group_type, one.protocol_type, one.group_state) for one in groups]
        keys = ("group", "type", "protocol_type", "state")
        if as_json:
            print_json([dict(zip(keys, row, strict=True)) for row in rows])
        else:
            print_table(["group", "type", "protocol type", "state"], rows)

    with_cluster(bootstrap, timeout_ms, work)


@app.command()
def describe(
    names: Names,
    members: Annotated[bool, typer.Option("--members", "-m", help="Members with what they are assigned.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Draw again each second until interrupted.")] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
) -> None:
    """Show how far groups have read, how much is left, and who reads it."""

    async def look(cluster: Cluster) -> list[group_show.Shown]:
        return [await group_show.look(cluster, name) for name in names]

    def screen(shown: list[group_show.Shown]) -> Group:
        return Group(*[group_show.screen(one, members=members) for one in shown])

    def show(shown: list[group_show.Shown]) -> None:
        if as_json:
            print_json([group_show.as_json(one) for one in shown])
        else:
            make_console().print(screen(shown))

    async def work(cluster: Cluster) -> None:
        if watch and not as_json and make_console().is_terminal:
            with Live(screen(await look(cluster)), console=make_console(), auto_refresh=False) as live:
                while True:
                    await asyncio.sleep(REDRAW_S)
                    live.update(screen(await look(cluster)), refresh=True)
        show(await look(cluster))
        while watch:
            await asyncio.sleep(REDRAW_S)
            show(await look(cluster))

    with_cluster(bootstrap, timeout_ms, work)


@app.command()
def reset(
    name: Annotated[str, typer.Argument(metavar="GROUP")],
    topics: Topics = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All that the group has committed offsets for.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="The first record that is there.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="The end: only what comes from now on.")] = False,
    to_datetime: Annotated[
        str | None, typer.Option("--to-datetime", metavar="TIME", help="The first record at or after a time.")
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option("--by-duration", metavar="PT1H", help="The first record of the last hour, say.")
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
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
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
            "give one of --to-earliest, --to-latest, --to-datetime, --by-duration, --shift-by, --to-offset, "
            "--to-current, --from-file"
        )
    (target,) = targets
    chosen = [parse_topic(topic) for topic in topics or []]
    if from_file is None and bool(chosen) == all_topics:
        raise typer.BadParameter("give either --topic or --all-topics")

    async def work(cluster: Cluster) -> None:
        admin = GroupAdmin(cluster)
        only_show = dry_run or export
        if not only_show:
            await _refuse_active(admin, name)
        committed = await admin.committed(name)
        places = await _places(cluster, name, chosen, all_topics, committed, target)
        offsets = await find_offsets(cluster, places, committed, target)
        if not only_show:
            await admin.commit(name, offsets)
        if export:
            typer.echo(write_offsets(offsets), nl=False)
            return
        _print_offsets(offsets, committed, as_json=as_json)
        count = f"{len(offsets)} offset{'' if len(offsets) == 1 else 's'}"
        say(f"would set {count} of {name}" if dry_run else f"set {count} of {name}")

    with_cluster(bootstrap, timeout_ms, work)


@app.command()
def delete(
    names: Names,
    topics: Topics = None,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A group that does not exist is fine.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
) -> None:
    """Delete groups that have no members; or, with --topic, only their offsets in topics that nobody reads."""
    chosen = [parse_topic(topic) for topic in topics or []]

    async def work(cluster: Cluster) -> None:
        admin = GroupAdmin(cluster)
        places = await find_partitions(cluster, chosen)
        for name in names:
            try:
                if chosen:
                    await admin.delete_offsets(name, places)
                else:
                    await admin.delete(name)
                say(f"deleted offsets of {name}" if chosen else f"deleted {name}")
            except KafkaError as error:
                if not if_exists or error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                    raise
                say(f"{name} does not exist")

    with_cluster(bootstrap, timeout_ms, work)


def _read_file(path: Path) -> dict[TopicPartition, int]:
    try:
        return read_offsets(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint="--from-file") from None


async def _refuse_active(admin: GroupAdmin, name: str) -> None:
    try:
        group = await admin.describe(name)
    except KafkaError as error:
        # A group can be given offsets before it is first used.
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return
    if group.is_active:
        count = len(group.members)
        members = f"{count} member{'' if count == 1 else 's'}"
        fail(f"group {name!r} is {group.state} with {members}, who would not notice: stop them first")


async def _places(
    cluster: Cluster,
    name: str,
    chosen: list[tuple[str, list[int] | None]],
    all_topics: bool,
    committed: dict[TopicPartition, GroupOffset],
    target: Target,
) -> list[TopicPartition]:
    if all_topics:
        places = list(committed)
        if not places:
            fail(f"group {name!r} has no offsets; name the topics with --topic")
        return places
    if target.offsets is None:
        return await find_partitions(cluster, chosen)
    listed: dict[str, list[int] | None] = {}
    for place in target.offsets:
        listed[place.topic] = [*(listed.get(place.topic) or []), place.partition]
    places = await find_partitions(cluster, listed.items())
    wanted = set(await find_partitions(cluster, chosen)) if chosen else set(places)
    return [place for place in places if place in wanted]


def _print_offsets(
    offsets: dict[TopicPartition, int], committed: dict[TopicPartition, GroupOffset], *, as_json: bool
) -> None:
    before = {place: committed[place].offset if place in committed else None for place in offsets}
    if as_json:
        print_json(
            [
                {"topic": place.topic, "partition": place.partition, "before": before[place], "offset": offset}
                for place, offset in offsets.items()
            ]
        )
        return
    rows = [
        (*place, group_show.NONE if before[place] is None else before[place], offset)
        for place, offset in offsets.items()
    ]
    print_table(["topic", "partition #", "before #", "offset #"], rows)
