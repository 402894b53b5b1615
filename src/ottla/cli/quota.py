"""`ottla quota`: how much users, clients and addresses may use."""

from typing import Annotated

import typer

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
from ottla.client.admin import Admin, ClientQuotaEntity, QuotaDefault

app = typer.Typer(help="Set, remove and list quotas of users, client ids and addresses.", no_args_is_help=True)

User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="A user, without the `User:`.")]
ClientId = Annotated[str | None, typer.Option("--client-id", metavar="ID", help="A client id.")]
Address = Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="An address that clients come from.")]
UserDefault = Annotated[bool, typer.Option("--user-default", help="All users that have no quota of their own.")]
ClientIdDefault = Annotated[bool, typer.Option("--client-id-default", help="All other client ids.")]
AddressDefault = Annotated[bool, typer.Option("--ip-default", help="All other addresses.")]
NAMES = {
    "producer_byte_rate": "produce",
    "consumer_byte_rate": "fetch",
    "request_percentage": "request %",
    "connection_creation_rate": "connect",
}


@app.command("set")
def set_quota(
    user: User = None,
    client_id: ClientId = None,
    ip: Address = None,
    user_default: UserDefault = False,
    client_id_default: ClientIdDefault = False,
    ip_default: AddressDefault = False,
    produce: Annotated[float | None, typer.Option(metavar="BYTES", help="Bytes a second that it may write.")] = None,
    fetch: Annotated[float | None, typer.Option(metavar="BYTES", help="Bytes a second that it may read.")] = None,
    request_percentage: Annotated[
        float | None, typer.Option(metavar="PERCENT", help="Share of the broker's time that its requests may take.")
    ] = None,
    connection_rate: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Connections a second that an address may open.")
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
) -> None:
    """Set quotas; those that are not named stay as they are."""
    entity = _entity(user, client_id, ip, user_default, client_id_default, ip_default)
    given = (produce, fetch, request_percentage, connection_rate)
    limits = {key: value for key, value in zip(NAMES, given, strict=True) if value is not None}
    if not limits:
        raise typer.BadParameter("say what to limit: --produce, --fetch, --request-percentage or --connection-rate")

    async def work(admin: Admin) -> None:
        await admin.alter_client_quotas({entity: limits})
        say(f"set {', '.join(limits)} of {_named(entity)}")

    with_admin(bootstrap, timeout_ms, work)


@app.command()
def remove(
    user: User = None,
    client_id: ClientId = None,
    ip: Address = None,
    user_default: UserDefault = False,
    client_id_default: ClientIdDefault = False,
    ip_default: AddressDefault = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
) -> None:
    """Remove all quotas that are set for exactly this user, client id or address."""
    entity = _entity(user, client_id, ip, user_default, client_id_default, ip_default)

    async def work(admin: Admin) -> None:
        there = (await admin.describe_client_quotas(entity, strict=True)).get(entity, {})
        if not there:
            say(f"there are no quotas of {_named(entity)}")
            return
        await admin.alter_client_quotas({entity: dict.fromkeys(there)})
        say(f"removed {', '.join(there)} of {_named(entity)}")

    with_admin(bootstrap, timeout_ms, work)


@app.command("list")
def list_quotas(
    as_json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS
) -> None:
    """List all quotas."""

    async def work(admin: Admin) -> None:
        found = await admin.describe_client_quotas()
        if as_json:
            print_json([{"entity": dict(entity.parts), "quotas": limits} for entity, limits in found.items()])
        elif not found:
            say("there are no quotas")
        else:
            rows = [
                (_named(entity), *(f"{limits[key]:,.10g}" if key in limits else "-" for key in NAMES))
                for entity, limits in found.items()
            ]
            print_table(["of", *(f"{name} #" for name in NAMES.values())], rows)

    with_admin(bootstrap, timeout_ms, work)


def _entity(
    user: str | None,
    client_id: str | None,
    ip: str | None,
    user_default: bool,
    client_id_default: bool,
    ip_default: bool,
) -> ClientQuotaEntity:
    for name, is_default, option in (
        (user, user_default, "--user"),
        (client_id, client_id_default, "--client-id"),
        (ip, ip_default, "--ip"),
    ):
        if name is not None and is_default:
            raise typer.BadParameter(f"{option} and {option}-default are two different things; give one of them")
    try:
        return ClientQuotaEntity(
            QuotaDefault.DEFAULT if user_default else user,
            QuotaDefault.DEFAULT if client_id_default else client_id,
            QuotaDefault.DEFAULT if ip_default else ip,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _named(entity: ClientQuotaEntity) -> str:
    return ", ".join(f"{kind} {'(default)' if name is None else repr(name)}" for kind, name in entity.parts)
