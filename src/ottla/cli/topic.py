"""`ottla topic`: create, list, describe, alter and delete topics."""

import base64
from collections.abc import Iterable
from typing import Annotated, Any
from uuid import UUID

import typer

from ottla.cli.access import on_topics
from ottla.cli.output import Json, Where, parse_settings, print_json, print_table, say, told, with_admin
from ottla.client.admin import ACLOperation, Admin, ConfigResource, ConfigSource, NewTopic, TopicDescription
from ottla.wire.errors import ErrorCode, KafkaError

app = typer.Typer(help="Create, list, describe, alter and delete topics.", no_args_is_help=True)

Names = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="One or more topics.")]
Configs = Annotated[
    list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A topic config; may be repeated.")
]


@app.command()
def create(
    names: Names,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, show_default="the broker's", help="How many partitions.")
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", "-r", min=1, show_default="the broker's", help="How many replicas."),
    ] = None,
    config: Configs = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="A topic that exists is fine.")] = False,
    *,
    where: Where,
) -> None:
    """Create topics."""
    configs = parse_settings(config or [], "--config")

    async def work(admin: Admin) -> None:
        for name in names:
            try:
                new = NewTopic(name, partitions or -1, replication_factor or -1, topic_configs=configs)
                await admin.create_topics([new])
                say(f"created {name}")
            except KafkaError as error:
                if not if_not_exists or error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
                say(f"{name} exists")

    with_admin(where, work, on_topics(ACLOperation.CREATE, names))


@app.command("list")
def list_topics(
    internal: Annotated[bool, typer.Option("--internal", help="Internal topics too.")] = False,
    as_json: Json = False,
    *,
    where: Where,
) -> None:
    """List topics."""

    async def work(admin: Admin) -> None:
        topics = [one for one in (await admin.describe_topics()).values() if internal or not one.is_internal]
        if as_json:
            print_json([_summary(topic) for topic in topics])
        else:
            rows = [(topic.name, len(topic.partitions), topic.replication_factor) for topic in topics]
            print_table(["topic", "partitions #", "replicas #"], rows)

    with_admin(where, work)


@app.command()
def describe(
    names: Names,
    as_json: Json = False,
    *,
    where: Where,
) -> None:
    """Show partitions, replicas and the configs that were set."""

    async def work(admin: Admin) -> None:
        shown: list[dict[str, Any]] = []
        for topic in (await admin.describe_topics(names)).values():
            configs = await _set_configs(admin, topic.name)
            if as_json:
                shown.append(_summary(topic) | {"configs": configs, "partition_details": _partitions(topic)})
                continue
            settings = "  ".join(f"{name}={value}" for name, value in (configs or {}).items())
            title = f"{topic.name}  id {_id_text(topic.topic_id) or 'none'}"
            rows = [
                (one["partition"], one["leader"], one["leader_epoch"], *(_ids(one[key]) for key in _REPLICA_KEYS))
                for one in _partitions(topic)
            ]
            columns = ["partition #", "leader #", "epoch #", "replicas", "in sync", "offline"]
            print_table(columns, rows, title=f"{title}  {settings}".rstrip())
        if as_json:
            print_json(shown)

    with_admin(where, work, on_topics(ACLOperation.DESCRIBE, names))


@app.command()
def alter(
    name: Annotated[str, typer.Argument(metavar="TOPIC")],
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="Grow to so many partitions.")
    ] = None,
    config: Configs = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option("--delete-config", metavar="NAME", help="A config to put back to its default; may be repeated."),
    ] = None,
    *,
    where: Where,
) -> None:
    """Add partitions, set configs, put configs back to their defaults."""
    changes: dict[str, str | None] = dict(parse_settings(config or [], "--config"))
    changes.update(dict.fromkeys(delete_config or []))
    if partitions is None and not changes:
        raise typer.BadParameter("nothing to alter: give --partitions, --config or --delete-config")

    async def work(admin: Admin) -> None:
        if changes:
            await admin.alter_configs([ConfigResource("topic", name, changes)])
        if partitions is not None:
            await admin.create_partitions({name: partitions})
        say(f"altered {name}")

    needs = [on_topics(ACLOperation.ALTER_CONFIGS, [name])] if changes else []
    if partitions is not None:
        needs.append(on_topics(ACLOperation.ALTER, [name]))
    with_admin(where, work, *needs)


@app.command()
def delete(
    names: Names,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A topic that does not exist is fine.")] = False,
    *,
    where: Where,
) -> None:
    """Delete topics with all their records."""

    async def work(admin: Admin) -> None:
        for name in names:
            try:
                await admin.delete_topics([name])
                say(f"deleted {name}")
            except KafkaError as error:
                if not if_exists or error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                say(f"{name} does not exist")

    with_admin(where, work, on_topics(ACLOperation.DELETE, names))


_REPLICA_KEYS = ("replicas", "isr", "offline_replicas")


def _summary(topic: TopicDescription) -> dict[str, Any]:
    return {
        "name": topic.name,
        "topic_id": _id_text(topic.topic_id),
        "partitions": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "is_internal": topic.is_internal,
    }


def _partitions(topic: TopicDescription) -> list[dict[str, Any]]:
    return [
        {
            "partition": one.partition,
            "leader": -1 if one.leader is None else one.leader,
            "leader_epoch": one.leader_epoch,
            "replicas": one.replicas,
            "isr": one.in_sync_replicas,
            "offline_replicas": one.offline_replicas,
        }
        for one in topic.partitions
    ]


def _id_text(topic_id: UUID | None) -> str | None:
    """A topic id as Kafka's tools print it."""
    return None if topic_id is None else base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def _ids(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes))


async def _set_configs(admin: Admin, name: str) -> dict[str, str | None] | None:
    """The configs that were set; None for somebody who may see the topic, but not its configs."""
    resource = ConfigResource("topic", name)
    try:
        entries = (await admin.describe_configs([resource]))[resource]
    except KafkaError as error:
        if error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            say(f"no configs: {told(error, on_topics(ACLOperation.DESCRIBE_CONFIGS, [name]))}")
            return None
        # Brokers before 0.11 cannot tell.
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return {}
    return {entry.name: entry.value for entry in entries.values() if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG}
