"""How the commands are sure of the brokers, and prove who they are: options that all of them have."""

import inspect
import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, cast, get_type_hints

import typer

from ottla.client.java_security import java_security
from ottla.config.load import parse_properties
from ottla.net.security import PLAINTEXT, Security, SecurityOptions
from ottla.wire.errors import KafkaError

PASSWORD_VARIABLE = "OTTLA_PASSWORD"

_PANEL = "Security"
_OPTIONS: dict[str, Any] = {
    "security_protocol": Annotated[
        str | None,
        typer.Option(
            metavar="PROTOCOL",
            rich_help_panel=_PANEL,
            help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; SSL with --ca.",
        ),
    ],
    "ca": Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_PANEL,
            help="Whom to trust, as PEM; those whom the system trusts if not given.",
        ),
    ],
    "cert": Annotated[
        Path | None, typer.Option(metavar="FILE", rich_help_panel=_PANEL, help="One's own certificate, as PEM.")
    ],
    "key": Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=_PANEL, help="Its key; in the same file if not given."),
    ],
    "username": Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_PANEL,
            help=f"Log in; the password is in {PASSWORD_VARIABLE}, or asked for.",
        ),
    ],
    "sasl_mechanism": Annotated[
        str | None,
        typer.Option(metavar="MECHANISM", rich_help_panel=_PANEL, help="How to log in; SCRAM-SHA-256 if not given."),
    ],
    "command_config": Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="OTTLA_COMMAND_CONFIG",
            rich_help_panel=_PANEL,
            help="All of it in a file of properties, by the Java client's names.",
        ),
    ],
}

_chosen: ContextVar[Security] = ContextVar("security", default=PLAINTEXT)


def chosen_security() -> Security:
    """What the command that runs was told about security."""
    return _chosen.get()


def security_arguments() -> SecurityOptions:
    """The same as keyword arguments of a client."""
    chosen = chosen_security()
    return cast(SecurityOptions, {one.name: getattr(chosen, one.name) for one in fields(chosen)})


def secure(app: typer.Typer) -> None:
    """Give all commands that talk to a cluster, which are those with `--bootstrap`, the options of security."""
    for command in app.registered_commands:
        if command.callback is not None and "bootstrap" in inspect.signature(command.callback).parameters:
            command.callback = _secured(command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            secure(group.typer_instance)


def _secured(command: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(command)
    if _OPTIONS.keys() <= signature.parameters.keys():
        return command

    @wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in _OPTIONS}
        token = _chosen.set(security_from(**given))
        try:
            command(**arguments)
        finally:
            _chosen.reset(token)

    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OPTIONS.items()
    ]
    hints = get_type_hints(command, include_extras=True)
    own = [one.replace(annotation=hints[one.name]) for one in signature.parameters.values()]
    setattr(run, "__signature__", signature.replace(parameters=[*own, *added]))  # noqa: B010
    run.__annotations__ = {**hints, **_OPTIONS}
    return run


def security_from(
    *,
    security_protocol: str | None = None,
    ca: Path | None = None,
    cert: Path | None = None,
    key: Path | None = None,
    username: str | None = None,
    sasl_mechanism: str | None = None,
    command_config: Path | None = None,
) -> Security:
    """The security that options ask for; they go before what the file says.

    >>> security_from(ca=Path("ca.pem")).security_protocol
    'SSL'
    """
    options: dict[str, Any] = {} if command_config is None else _from_file(command_config)
    given = {"ssl_cafile": ca, "ssl_certfile": cert, "ssl_keyfile": key}
    options |= {name: str(value) for name, value in given.items() if value is not None}
    if username is not None:
        options |= {"sasl_plain_username": username, "sasl_plain_password": _password()}
        options.setdefault("sasl_mechanism", "SCRAM-SHA-256")
    if sasl_mechanism is not None:
        options["sasl_mechanism"] = sasl_mechanism
    if security_protocol is not None:
        options["security_protocol"] = security_protocol
    elif options and "security_protocol" not in options:
        options["security_protocol"] = _protocol(options)
    try:
        return Security(**options)
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(_in_words_of_the_command(str(error))) from None


def _from_file(path: Path) -> dict[str, Any]:
    try:
        found = java_security(parse_properties(path.read_text(), path.name))
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--command-config") from None
    except (ValueError, KafkaError) as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint="--command-config") from None
    set_there = {one.name: getattr(found, one.name) for one in fields(found)}
    return {name: value for name, value in set_there.items() if value != getattr(PLAINTEXT, name)}


def _protocol(options: dict[str, Any]) -> str:
    has_tls = any(name.startswith("ssl_") for name in options)
    if "sasl_plain_username" in options or "sasl_mechanism" in options:
        if not has_tls:
            message = "say whether the connection is encrypted: --security-protocol SASL_SSL, or SASL_PLAINTEXT"
            raise typer.BadParameter(message)
        return "SASL_SSL"
    return "SSL"


def _password() -> str:
    found = os.environ.get(PASSWORD_VARIABLE)
    if found is not None:
        return found
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"there is no terminal to ask for the password; set {PASSWORD_VARIABLE}")
    asked: str = typer.prompt("Password", hide_input=True, err=True)
    return asked


def _in_words_of_the_command(message: str) -> str:
    words = {
        "security_protocol": "--security-protocol",
        "ssl_cafile": "--ca",
        "ssl_certfile": "--cert",
        "ssl_keyfile": "--key",
        "sasl_plain_username": "--username",
        "sasl_plain_password": PASSWORD_VARIABLE,
        "sasl_mechanism": "--sasl-mechanism",
    }
    for ours, theirs in words.items():
        message = message.replace(ours, theirs)
    return message
