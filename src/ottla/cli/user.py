"""`ottla user`: who can log in with a password, on a broker that runs or in the data folder of one that does not."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.access import on_cluster
from ottla.cli.output import Json, Where, print_json, print_table, say, with_admin
from ottla.cli.passwords import new_password
from ottla.cli.people import bare_name
from ottla.cli.security import chosen
from ottla.client.admin import Admin, UserScramCredentialDeletion, UserScramCredentialUpsertion
from ottla.client.admin.users import mechanism_of
from ottla.client.errors import ResourceNotFoundError
from ottla.cluster.acl import ACLOperation
from ottla.cluster.credential import LEAST_ITERATIONS, MOST_ITERATIONS, ScramMechanism

app = typer.Typer(help="Users that log in with a password: SCRAM and PLAIN.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name, without the `User:`.")]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="The data folder of a broker that does not run, in place of --bootstrap."
    ),
]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option("--mechanism", metavar="MECHANISM", help="SCRAM-SHA-256 or SCRAM-SHA-512; repeatable."),
]


@app.command()
def add(
    name: Name,
    mechanism: Mechanisms = None,
    iterations: Annotated[
        int, typer.Option(min=LEAST_ITERATIONS, max=MOST_ITERATIONS, help="How often the password is hashed.")
    ] = LEAST_ITERATIONS,
    data: Data = None,
    *,
    where: Where,
) -> None:
    """Add a user, or give one another password: for SCRAM-SHA-256, if --mechanism does not say otherwise.

    The password is in OTTLA_PASSWORD, or asked for on a terminal, or a line of standard input; with --username the
    variable is for that login, and not for the new password.
    """
    mechanisms = _mechanisms(mechanism) or [ScramMechanism.SCRAM_SHA_256]
    if not name:
        raise typer.BadParameter("the name is empty", param_hint="NAME")
    password = new_password(bare_name(name, "NAME"), logged_in_as=chosen().logged_in_as)
    done = f"user {name} can log in with {', '.join(one.text for one in mechanisms)}"
    if data is not None:
        from ottla.cli import user_offline

        user_offline.add(data, name, password, mechanisms, iterations)
        say(done)
        return

    async def work(admin: Admin) -> None:
        await admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(name, one, password, iterations) for one in mechanisms]
        )
        say(done)

    with_admin(where, work, on_cluster(ACLOperation.ALTER))


@app.command("list")
def list_users(
    as_json: Json = False,
    data: Data = None,
    *,
    where: Where,
) -> None:
    """Show the users, and how they can log in."""
    if data is not None:
        from ottla.cli import user_offline

        _show(user_offline.described(data), as_json)
        return

    async def work(admin: Admin) -> None:
        found = await admin.describe_user_scram_credentials()
        _show({user: {one.mechanism: one.iterations for one in infos} for user, infos in found.items()}, as_json)

    with_admin(where, work, on_cluster(ACLOperation.DESCRIBE))


@app.command()
def delete(
    name: Name,
    mechanism: Mechanisms = None,
    data: Data = None,
    *,
    where: Where,
) -> None:
    """Take a user's password away, for some mechanisms or for all. Who is logged in stays so."""
    asked = _mechanisms(mechanism)
    done = f"user {name} can no longer log in{' with ' + ', '.join(one.text for one in asked) if asked else ''}"
    if data is not None:
        from ottla.cli import user_offline

        user_offline.delete(data, name, asked)
        say(done)
        return

    async def work(admin: Admin) -> None:
        try:
            found = (await admin.describe_user_scram_credentials([name]))[name]
        except ResourceNotFoundError:
            bare_name(name, "NAME")
            raise
        wanted = asked or [one.mechanism for one in found]
        await admin.alter_user_scram_credentials([UserScramCredentialDeletion(name, one) for one in wanted])
        say(done)

    with_admin(where, work, on_cluster(ACLOperation.ALTER))


def _mechanisms(names: list[str] | None) -> list[ScramMechanism]:
    if any(name.upper() == "PLAIN" for name in names or ()):
        message = "who logs in with PLAIN has the same password as with SCRAM; give SCRAM-SHA-256 or SCRAM-SHA-512"
        raise typer.BadParameter(message, param_hint="--mechanism")
    try:
        return list(dict.fromkeys(mechanism_of(name) for name in names or ()))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--mechanism") from None


def _show(users: dict[str, dict[ScramMechanism, int]], as_json: bool) -> None:
    rows = [(user, one.text, iterations) for user, found in sorted(users.items()) for one, iterations in found.items()]
    if as_json:
        print_json([{"user": user, "mechanism": text, "iterations": iterations} for user, text, iterations in rows])
    elif not rows:
        say("there are no users")
    else:
        print_table(["user", "mechanism", "iterations"], rows)
