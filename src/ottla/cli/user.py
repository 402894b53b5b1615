"""`ottla user`: who can log in with a password, on a broker that runs or in the data folder of one that does not."""

import os
import sys
from pathlib import Path
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
from ottla.cli.security import PASSWORD_VARIABLE, chosen_security
from ottla.client.admin import Admin, UserScramCredentialDeletion, UserScramCredentialUpsertion
from ottla.client.admin.users import mechanism_of
from ottla.cluster.credential import LEAST_ITERATIONS, MOST_ITERATIONS, ScramMechanism

app = typer.Typer(help="Users that log in with a password: SCRAM and PLAIN.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME")]
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
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
) -> None:
    """Add a user, or give one another password: from OTTLA_PASSWORD, from standard input, or from a prompt."""
    mechanisms = _mechanisms(mechanism) or [ScramMechanism.SCRAM_SHA_256]
    if not name:
        raise typer.BadParameter("the name is empty", param_hint="NAME")
    password = _new_password(name)
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

    with_admin(bootstrap, timeout_ms, work)


@app.command("list")
def list_users(
    as_json: Json = False,
    data: Data = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
) -> None:
    """Show the users, and how they can log in."""
    if data is not None:
        from ottla.cli import user_offline

        _show(user_offline.described(data), as_json)
        return

    async def work(admin: Admin) -> None:
        found = await admin.describe_user_scram_credentials()
        _show({user: {one.mechanism: one.iterations for one in infos} for user, infos in found.items()}, as_json)

    with_admin(bootstrap, timeout_ms, work)


@app.command()
def delete(
    name: Name,
    mechanism: Mechanisms = None,
    data: Data = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS,
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
        found = (await admin.describe_user_scram_credentials([name]))[name]
        wanted = asked or [one.mechanism for one in found]
        await admin.alter_user_scram_credentials([UserScramCredentialDeletion(name, one) for one in wanted])
        say(done)

    with_admin(bootstrap, timeout_ms, work)


def _mechanisms(names: list[str] | None) -> list[ScramMechanism]:
    try:
        return list(dict.fromkeys(mechanism_of(name) for name in names or ()))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--mechanism") from None


def _new_password(name: str) -> str:
    """The password, which is never an argument: those can be seen by everybody on the machine."""
    found = os.environ.get(PASSWORD_VARIABLE)
    # Where the command logs in by itself, the variable may be for that.
    if found is None or found == chosen_security().sasl_plain_password:
        if sys.stdin.isatty():
            found = typer.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)
        else:
            found = sys.stdin.readline().rstrip("\r\n")
    else:
        # Standard input may be a pipe that never ends, so nobody looks whether there is another password in it.
        typer.echo(f"the password of {name} is the one in {PASSWORD_VARIABLE}", err=True)
    assert found is not None
    if not found:
        raise typer.BadParameter(f"the password is empty; set {PASSWORD_VARIABLE}, or write it to standard input")
    return found


def _show(users: dict[str, dict[ScramMechanism, int]], as_json: bool) -> None:
    rows = [(user, one.text, iterations) for user, found in sorted(users.items()) for one, iterations in found.items()]
    if as_json:
        print_json([{"user": user, "mechanism": text, "iterations": iterations} for user, text, iterations in rows])
    else:
        print_table(["user", "mechanism", "iterations"], rows)
