"""`ottla group`: list, describe and delete groups, and reset their offsets."""

from typing import Annotated

import typer

from ottla.cli import group_show, group_watch
from ottla.cli.access import on_groups, on_topics
from ottla.cli.ending import FAILED, complain
from ottla.cli.group_options import STATES, TYPES, Names, Topics, one_of
from ottla.cli.group_places import find_partitions, parse_topic
from ottla.cli.group_reset import reset
from ottla.cli.output import Json, Where, make_console, print_json, print_table, say, with_admin
from ottla.client.admin import ACLOperation, Admin
from ottla.ports import SystemClock
from ottla.wire.errors import ErrorCode, KafkaError

app = typer.Typer(help="List, describe and delete groups, and reset their offsets.", no_args_is_help=True)


@app.command("list")
def list_groups(
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            parser=one_of(STATES),
            help=f"Only those in this state; may be repeated. One of {', '.join(STATES)}.",
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="TYPE", parser=one_of(TYPES), help=f"Only those of this type: {' or '.join(TYPES)}."
        ),
    ] = None,
    as_json: Json = False,
    *,
    where: Where,
) -> None:
    """List groups."""

    async def work(admin: Admin) -> None:
        groups = await admin.list_groups(states_filter=states or [], types_filter=types or [])
        rows = [(one.group_id, one.group_type, one.protocol_type, one.state) for one in groups]
        keys = ("group", "type", "protocol_type", "state")
        if as_json:
            print_json([dict(zip(keys, row, strict=True)) for row in rows])
        elif not rows:
            say("there are no such groups" if states or types else "there are no groups")
        else:
            print_table(["group", "type", "protocol type", "state"], rows)

    with_admin(where, work)


@app.command()
def describe(
    names: Names,
    members: Annotated[bool, typer.Option("--members", "-m", help="Members with what they are assigned.")] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", "-w", help="Draw again each second until interrupted, whatever happens to broker and groups."
        ),
    ] = False,
    as_json: Json = False,
    *,
    where: Where,
) -> None:
    """Show how far groups have read, how much is left, and who reads it."""

    def show(looked: group_show.Looked) -> None:
        if as_json:
            print_json([group_show.as_json(one) for one in looked.shown])
        else:
            console = make_console()
            console.print(group_show.screen(looked, console, members=members))

    def show_again(sight: group_watch.Sight) -> None:
        show(sight.looked)
        if not as_json:
            typer.echo(sight.status)

    async def work(admin: Admin) -> None:
        if watch:
            sights = group_watch.watch(lambda: group_show.look(admin, names), SystemClock())
            if not as_json and make_console().is_terminal:
                await group_watch.draw(sights, make_console(), members=members)
            else:
                await group_watch.follow(sights, show_again)
            return
        looked = await group_show.look(admin, names)
        if looked.shown:
            show(looked)
        for name in looked.missing:
            complain(f"GROUP_ID_NOT_FOUND: there is no group {name!r}")
        if looked.missing:
            raise typer.Exit(FAILED)

    with_admin(where, work, on_groups(ACLOperation.DESCRIBE, names), on_topics(ACLOperation.DESCRIBE))


app.command()(reset)


@app.command()
def delete(
    names: Names,
    topics: Topics = None,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A group that does not exist is fine.")] = False,
    *,
    where: Where,
) -> None:
    """Delete groups that have no members; or, with --topic, only their offsets in topics that nobody reads."""
    chosen = [parse_topic(topic) for topic in topics or []]

    async def work(admin: Admin) -> None:
        places = await find_partitions(admin, chosen)
        for name in names:
            try:
                if chosen:
                    await admin.delete_consumer_group_offsets(name, places)
                else:
                    await admin.delete_consumer_groups([name])
                say(f"deleted offsets of {name}" if chosen else f"deleted {name}")
            except KafkaError as error:
                if not if_exists or error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                    raise
                say(f"{name} does not exist")

    read_topics = on_topics(ACLOperation.READ, [topic for topic, _ in chosen])
    with_admin(where, work, on_groups(ACLOperation.DELETE, names), read_topics)
