"""`ottla acl`: rules of access, with the options that kafka-acls.sh has."""

from typing import Annotated

import typer

from ottla.cli.access import on_cluster
from ottla.cli.acl_rules import People, Resources, Roles, filters_of, rules_of
from ottla.cli.output import Json, Where, print_json, print_table, say, with_admin
from ottla.client.admin import ACL, ACLOperation, Admin

app = typer.Typer(help="Add, remove and list rules of access: who may do what.", no_args_is_help=True)

Operation = Annotated[
    list[str] | None, typer.Option("--operation", metavar="NAME", help="Read, Write, AlterConfigs ...; repeatable.")
]


@app.command()
def add(*, resources: Resources, people: People, operation: Operation = None, roles: Roles, where: Where) -> None:
    """Add rules. Without --operation they are about ALL operations."""
    rules = rules_of(resources, people, operation or [], roles)

    async def work(admin: Admin) -> None:
        await admin.create_acls(rules)
        for rule in rules:
            say(f"added: {_in_words(rule)}")

    with_admin(where, work, on_cluster(ACLOperation.ALTER))


@app.command()
def remove(*, resources: Resources, people: People, operation: Operation = None, roles: Roles, where: Where) -> None:
    """Remove rules: those that the same options would have added.

    Where no resource, principal or operation is given, any will do; without --allow-host only rules for all hosts do.
    """
    if not resources.named() and not list(people.each()):
        raise typer.BadParameter("which rules? name a resource, such as --topic, or a principal")
    filters = filters_of(resources, people, operation or [], roles)

    async def work(admin: Admin) -> None:
        removed = await admin.delete_acls(filters)
        for rule in dict.fromkeys(rule for rules in removed.values() for rule in rules):
            say(f"removed: {_in_words(rule)}")
        if not any(removed.values()):
            say("there are no such rules")

    with_admin(where, work, on_cluster(ACLOperation.ALTER))


@app.command("list")
def list_rules(
    *,
    resources: Resources,
    principal: Annotated[
        list[str] | None, typer.Option("--principal", metavar="User:NAME", help="Rules of these; repeatable.")
    ] = None,
    operation: Operation = None,
    as_json: Json = False,
    where: Where,
) -> None:
    """Show rules: all of them, or those about certain resources or people."""
    filters = filters_of(resources, People(), operation or [], Roles(), principals=principal or [])

    async def work(admin: Admin) -> None:
        found = {rule for wanted in filters for rule in await admin.describe_acls(wanted)}
        rows = sorted(map(_row, found))
        if as_json:
            print_json([dict(zip(COLUMNS, row, strict=True)) for row in rows])
        elif not rows:
            say("there are no such rules")
        else:
            print_table([column.replace("_", " ") for column in COLUMNS], rows)

    with_admin(where, work, on_cluster(ACLOperation.DESCRIBE))


COLUMNS = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")


def _row(rule: ACL) -> tuple[str, ...]:
    pattern = rule.resource_pattern
    return (
        *(pattern.resource_type.name, pattern.resource_name, pattern.pattern_type.name),
        *(rule.principal, rule.host, rule.operation.name, rule.permission_type.name),
    )


def _in_words(rule: ACL) -> str:
    kind, name, pattern, principal, host, operation, permission = _row(rule)
    what = f"{kind.lower().replace('_', ' ')} {name!r}"
    if pattern == "PREFIXED":
        what = f"each {kind.lower().replace('_', ' ')} whose name begins with {name!r}"
    return f"{permission} {operation} on {what} to {principal}" + ("" if host == "*" else f" from {host}")
