"""`ottla acl`: rules of access, with the options that kafka-acls.sh has."""

from typing import Annotated

import typer

from ottla.cli.acl_rules import PatternType, People, Resources, Roles, filters_of, rules_of
from ottla.cli.output import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT_MS,
    Bootstrap,
    Json,
    TimeoutMs,
    print_json,
    print_table,
    say,
    with_admin,
)
from ottla.client.admin import ACL, Admin

app = typer.Typer(help="Add, remove and list rules of access: who may do what.", no_args_is_help=True)

Topic = Annotated[
    list[str] | None, typer.Option("--topic", metavar="NAME", help="A topic, or '*' for all; repeatable.")
]
Group = Annotated[list[str] | None, typer.Option("--group", metavar="ID", help="A group, or '*' for all; repeatable.")]
Cluster = Annotated[bool, typer.Option("--cluster", help="The cluster.")]
TransactionalId = Annotated[
    list[str] | None, typer.Option("--transactional-id", metavar="ID", help="A transactional id; repeatable.")
]
DelegationToken = Annotated[
    list[str] | None, typer.Option("--delegation-token", metavar="ID", help="A delegation token; repeatable.")
]
UserPrincipal = Annotated[
    list[str] | None, typer.Option("--user-principal", metavar="USER", help="A user as a resource; repeatable.")
]
Pattern = Annotated[
    PatternType,
    typer.Option(
        "--resource-pattern-type",
        help="`prefixed`: all whose names begin so. To choose among rules also `match` (all that concern the resource) "
        "and `any`.",
    ),
]
AllowPrincipal = Annotated[
    list[str] | None,
    typer.Option("--allow-principal", metavar="User:NAME", help="Who may; 'User:*' is everybody; repeatable."),
]
DenyPrincipal = Annotated[
    list[str] | None,
    typer.Option("--deny-principal", metavar="User:NAME", help="Who may not, whatever else is allowed; repeatable."),
]
AllowHost = Annotated[
    list[str] | None, typer.Option("--allow-host", metavar="IP", help="From where; any if not given; repeatable.")
]
DenyHost = Annotated[
    list[str] | None, typer.Option("--deny-host", metavar="IP", help="From where not; any if not given; repeatable.")
]
Operation = Annotated[
    list[str] | None, typer.Option("--operation", metavar="NAME", help="Read, Write, AlterConfigs ...; repeatable.")
]
Producer = Annotated[bool, typer.Option("--producer", help="All that a producer for --topic needs.")]
Consumer = Annotated[bool, typer.Option("--consumer", help="All that a consumer of --topic in --group needs.")]
Idempotent = Annotated[
    bool, typer.Option("--idempotent", help="With --producer: idempotent writes, which brokers before 2.8 ask for.")
]


@app.command()
def add(
    topic: Topic = None,
    group: Group = None,
    cluster: Cluster = False,
    transactional_id: TransactionalId = None,
    delegation_token: DelegationToken = None,
    user_principal: UserPrincipal = None,
    resource_pattern_type: Pattern = "literal",
    allow_principal: AllowPrincipal = None,
    deny_principal: DenyPrincipal = None,
    allow_host: AllowHost = None,
    deny_host: DenyHost = None,
    operation: Operation = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
) -> None:
    """Add rules. Without --operation they are about ALL operations."""
    rules = rules_of(
        Resources(*(topic, group, transactional_id, delegation_token, user_principal, cluster), resource_pattern_type),
        People(allow_principal, deny_principal, allow_host, deny_host),
        operation or [],
        Roles(producer, consumer, idempotent),
    )

    async def work(admin: Admin) -> None:
        await admin.create_acls(rules)
        for rule in rules:
            say(f"added: {_in_words(rule)}")

    with_admin(bootstrap, timeout_ms, work)


@app.command()
def remove(
    topic: Topic = None,
    group: Group = None,
    cluster: Cluster = False,
    transactional_id: TransactionalId = None,
    delegation_token: DelegationToken = None,
    user_principal: UserPrincipal = None,
    resource_pattern_type: Pattern = "literal",
    allow_principal: AllowPrincipal = None,
    deny_principal: DenyPrincipal = None,
    allow_host: AllowHost = None,
    deny_host: DenyHost = None,
    operation: Operation = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
) -> None:
    """Remove rules: those that the same options would have added. What is left open may be any."""
    resources = Resources(
        *(topic, group, transactional_id, delegation_token, user_principal, cluster), resource_pattern_type
    )
    people = People(allow_principal, deny_principal, allow_host, deny_host)
    if not resources.named() and not list(people.each()):
        raise typer.BadParameter("which rules? name a resource, such as --topic, or a principal")
    filters = filters_of(resources, people, operation or [], Roles(producer, consumer, idempotent))

    async def work(admin: Admin) -> None:
        removed = await admin.delete_acls(filters)
        for rule in dict.fromkeys(rule for rules in removed.values() for rule in rules):
            say(f"removed: {_in_words(rule)}")
        if not any(removed.values()):
            say("there are no such rules")

    with_admin(bootstrap, timeout_ms, work)


@app.command("list")
def list_rules(
    topic: Topic = None,
    group: Group = None,
    cluster: Cluster = False,
    transactional_id: TransactionalId = None,
    delegation_token: DelegationToken = None,
    user_principal: UserPrincipal = None,
    resource_pattern_type: Pattern = "literal",
    principal: Annotated[
        list[str] | None, typer.Option("--principal", metavar="User:NAME", help="Rules of these; repeatable.")
    ] = None,
    operation: Operation = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
) -> None:
    """Show rules: all of them, or those about certain resources or people."""
    resources = Resources(
        *(topic, group, transactional_id, delegation_token, user_principal, cluster), resource_pattern_type
    )
    filters = filters_of(resources, People(), operation or [], Roles(), principals=principal or [])

    async def work(admin: Admin) -> None:
        found = {rule for wanted in filters for rule in await admin.describe_acls(wanted)}
        rows = sorted(map(_row, found))
        if as_json:
            print_json([dict(zip(COLUMNS, row, strict=True)) for row in rows])
        else:
            print_table([column.replace("_", " ") for column in COLUMNS], rows)

    with_admin(bootstrap, timeout_ms, work)


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
