"""`ottla quota`: how much users, clients and addresses may use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from ottla.cli.access import on_cluster
from ottla.cli.output import Json, Where, print_json, print_table, say, with_admin
from ottla.cli.people import bare_name
from ottla.client.admin import Admin, ClientQuotaEntity, QuotaDefault
from ottla.client.java_security import in_other_words
from ottla.cluster.acl import ACLOperation
from ottla.cluster.quota import check_quota
from ottla.config.address import plain_host
from ottla.wire.errors import KafkaError

app = typer.Typer(help="Set, remove and list quotas of users, client ids and addresses.", no_args_is_help=True)

LIMITS = {
    "producer_byte_rate": ("produce", "--produce"),
    "consumer_byte_rate": ("fetch", "--fetch"),
    "request_percentage": ("request %", "--request-percentage"),
    "connection_creation_rate": ("connect", "--connection-rate"),
}
"""Kafka's names of limits, each with a heading and its option."""


@dataclass(frozen=True)
class Whom:
    """Options that say whom a quota is for."""

    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="A user, without the `User:`.")] = None
    client_id: Annotated[str | None, typer.Option("--client-id", metavar="ID", help="A client id.")] = None
    ip: Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="An address that clients come from.")] = None
    user_default: Annotated[bool, typer.Option("--user-default", help="All users that have no quota of their own.")] = (
        False
    )
    client_id_default: Annotated[bool, typer.Option("--client-id-default", help="All other client ids.")] = False
    ip_default: Annotated[bool, typer.Option("--ip-default", help="All other addresses.")] = False

    def entity(self) -> ClientQuotaEntity:
        """The same as quotas are kept for; a mistake in the command line if there is no such thing."""
        named = {
            "--user": (self.user, self.user_default),
            "--client-id": (self.client_id, self.client_id_default),
            "--ip": (self.ip, self.ip_default),
        }
        for option, (name, is_default) in named.items():
            if name is not None and is_default:
                raise typer.BadParameter(f"{option} and {option}-default are two different things; give one of them")
        if not any(name is not None or is_default for name, is_default in named.values()):
            raise typer.BadParameter("say whom it is for: --user, --client-id, both, or --ip; or --user-default ...")
        try:
            return ClientQuotaEntity(
                QuotaDefault.DEFAULT if self.user_default else self.user,
                QuotaDefault.DEFAULT if self.client_id_default else self.client_id,
                QuotaDefault.DEFAULT if self.ip_default else self.ip and plain_host(self.ip),
            )
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None


@app.command("set")
def set_quota(
    *,
    whom: Whom,
    produce: Annotated[float | None, typer.Option(metavar="BYTES", help="Bytes a second that it may write.")] = None,
    fetch: Annotated[float | None, typer.Option(metavar="BYTES", help="Bytes a second that it may read.")] = None,
    request_percentage: Annotated[
        float | None, typer.Option(metavar="PERCENT", help="Share of the broker's time that its requests may take.")
    ] = None,
    connection_rate: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Connections a second that an address may open.")
    ] = None,
    where: Where,
) -> None:
    """Set quotas; those that are not named stay as they are."""
    if whom.user is not None:
        bare_name(whom.user, "--user")
    entity = whom.entity()
    given = (produce, fetch, request_percentage, connection_rate)
    limits = {key: value for key, value in zip(LIMITS, given, strict=True) if value is not None}
    if not limits:
        raise typer.BadParameter("say what to limit: --produce, --fetch, --request-percentage or --connection-rate")
    _check(entity, limits)

    async def work(admin: Admin) -> None:
        await admin.alter_client_quotas({entity: limits})
        say(f"set {', '.join(limits)} of {entity}")

    with_admin(where, work, on_cluster(ACLOperation.ALTER_CONFIGS))


def _check(entity: ClientQuotaEntity, limits: Mapping[str, float]) -> None:
    for key, value in limits.items():
        try:
            check_quota(entity.parts, key, value)
        except KafkaError as error:
            flags = {key: flag for key, (_, flag) in LIMITS.items()}
            raise typer.BadParameter(in_other_words(error.message.replace(repr(key), key), flags)) from None


@app.command()
def remove(*, whom: Whom, where: Where) -> None:
    """Remove all quotas that are set for exactly this user, client id or address."""
    entity = whom.entity()

    async def work(admin: Admin) -> None:
        there = (await admin.describe_client_quotas(entity, strict=True)).get(entity, {})
        if there:
            await admin.alter_client_quotas({entity: dict.fromkeys(there)})
            say(f"removed {', '.join(there)} of {entity}")
            return
        if whom.user is not None:
            # Other tools may have set one of such a name, so that it is no mistake before it is looked for.
            bare_name(whom.user, "--user")
        say(f"there are no quotas of {entity}")

    with_admin(where, work, on_cluster(ACLOperation.ALTER_CONFIGS))


@app.command("list")
def list_quotas(*, as_json: Json = False, where: Where) -> None:
    """List all quotas."""

    async def work(admin: Admin) -> None:
        found = await admin.describe_client_quotas()
        if as_json:
            print_json([{"entity": dict(entity.parts), "quotas": limits} for entity, limits in found.items()])
        elif not found:
            say("there are no quotas")
        else:
            rows = [
                (entity, *(f"{limits[key]:,.10g}" if key in limits else "-" for key in LIMITS))
                for entity, limits in found.items()
            ]
            print_table(["of", *(f"{heading} #" for heading, _ in LIMITS.values())], rows)

    with_admin(where, work, on_cluster(ACLOperation.DESCRIBE_CONFIGS))
