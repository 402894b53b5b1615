"""`ottla config`: describe, set and delete the configs of topics and brokers."""

from typing import Annotated

import typer

from ottla.cli.access import Need, on_cluster, on_topics
from ottla.cli.output import Json, Where, parse_settings, print_json, print_table, say, with_admin
from ottla.client.admin import ACLOperation, Admin, ConfigEntry, ConfigResource, ConfigResourceType

app = typer.Typer(help="Describe, set and delete configs of topics and brokers.", no_args_is_help=True)

Topic = Annotated[str | None, typer.Option("--topic", "-t", metavar="NAME", help="Configs of this topic.")]
Broker = Annotated[
    str | None, typer.Option("--broker", metavar="ID", help="Configs of this broker; `all` for all brokers together.")
]


@app.command()
def describe(
    topic: Topic = None,
    broker: Broker = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="Defaults too.")] = False,
    as_json: Json = False,
    *,
    where: Where,
) -> None:
    """Show configs with their values and where these come from."""
    resource = _resource(topic, broker)

    async def work(admin: Admin) -> None:
        found = (await admin.describe_configs([resource], include_documentation=True))[resource]
        shown = [entry for entry in found.values() if every or not entry.is_default]
        if as_json:
            print_json([_as_json(entry) for entry in shown])
        else:
            rows = [(entry.name, _value(entry), _source(entry), entry.documentation) for entry in shown]
            print_table(["config", "value", "source", "meaning"], rows)

    with_admin(where, work, _need(ACLOperation.DESCRIBE_CONFIGS, resource))


@app.command("set")
def set_configs(
    settings: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...")],
    topic: Topic = None,
    broker: Broker = None,
    *,
    where: Where,
) -> None:
    """Set configs. Those that are not named stay as they are."""
    _alter(_resource(topic, broker), dict(parse_settings(settings, "NAME=VALUE")), where)


@app.command("delete")
def delete_configs(
    names: Annotated[list[str], typer.Argument(metavar="NAME...")],
    topic: Topic = None,
    broker: Broker = None,
    *,
    where: Where,
) -> None:
    """Put configs back to their defaults."""
    _alter(_resource(topic, broker), dict.fromkeys(names), where)


def _alter(resource: ConfigResource, changes: dict[str, str | None], where: Where) -> None:
    async def work(admin: Admin) -> None:
        await admin.alter_configs([ConfigResource(resource.resource_type, resource.name, changes)])
        say(f"altered {', '.join(changes)} of {resource.resource_type.name.lower()} {resource.name or 'default'}")

    with_admin(where, work, _need(ACLOperation.ALTER_CONFIGS, resource))


def _resource(topic: str | None, broker: str | None) -> ConfigResource:
    if (topic is None) == (broker is None):
        raise typer.BadParameter("give either --topic NAME or --broker ID")
    if topic is not None:
        return ConfigResource(ConfigResourceType.TOPIC, topic)
    assert broker is not None
    if broker != "all" and not broker.isdecimal():
        raise typer.BadParameter(f"{broker!r} is no broker id; give a number, or `all`", param_hint="--broker")
    return ConfigResource(ConfigResourceType.BROKER, "" if broker == "all" else broker)


def _need(operation: ACLOperation, resource: ConfigResource) -> Need:
    of_topic = resource.resource_type is ConfigResourceType.TOPIC
    return on_topics(operation, [resource.name]) if of_topic else on_cluster(operation)


def _as_json(entry: ConfigEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": _source(entry),
        "read_only": entry.is_read_only,
        "is_sensitive": entry.is_sensitive,
        "documentation": entry.documentation,
    }


def _source(entry: ConfigEntry) -> str:
    """`DYNAMIC_TOPIC_CONFIG` as `dynamic topic`."""
    return entry.source.name.removesuffix("_CONFIG").replace("_", " ").lower()


def _value(entry: ConfigEntry) -> str | None:
    return "(hidden)" if entry.is_sensitive else entry.value
