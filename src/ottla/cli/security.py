"""How the commands are sure of the brokers, and prove who they are: options that all of them have."""

import inspect
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ottla.cli.passwords import PASSWORD_VARIABLE, login_password
from ottla.cli.people import bare_name
from ottla.cli.spread import Command, options_of, spread, take_options
from ottla.client.java_security import JAVA_NAMES, in_other_words, java_security
from ottla.config.jaas import parse_jaas
from ottla.config.load import parse_properties
from ottla.net.security import PLAINTEXT, Security, SecurityOptions
from ottla.wire.errors import KafkaError

STDIN_IS_DATA = ("produce",)
"""Commands whose standard input is records, of which none may be taken for a password."""

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

_FLAGS = {
    "security_protocol": "--security-protocol",
    "ssl_cafile": "--ca",
    "ssl_certfile": "--cert",
    "ssl_keyfile": "--key",
    "sasl_plain_username": "--username",
    "sasl_plain_password": PASSWORD_VARIABLE,
    "sasl_mechanism": "--sasl-mechanism",
}
"""What options of clients are called on the command line; others can be given in a file only."""

_NEVER_IN_A_FILE = {
    "bootstrap_servers": "--bootstrap",
    "request_timeout_ms": "--timeout-ms",
    "max_block_ms": "--timeout-ms",
    "delivery_timeout_ms": "--timeout-ms",
    "max_request_size": "the largest request",
}


_NOBODY_NAMED = ("sasl.jaas.config has no", "sasl.mechanism is missing")
"""What is said of a file that does not say who logs in, which the command line can do as well."""


def _names(given: Mapping[str, Any]) -> dict[str, str]:
    """What the options of clients are called by somebody who has given these: on the command line or in a file."""
    typed = {name for name in _OPTIONS if given.get(name) is not None}
    flags = {ours: flag for ours, flag in _FLAGS.items() if flag.removeprefix("--").replace("-", "_") in typed}
    if "command_config" in typed:
        return {**JAVA_NAMES, **flags, **_NEVER_IN_A_FILE}
    in_a_file = {ours: f"{theirs} in a file for --command-config" for ours, theirs in JAVA_NAMES.items()}
    # With a user a mechanism is chosen too.
    return {"and sasl_mechanism": "and --username", **in_a_file, **_FLAGS, **_NEVER_IN_A_FILE}


@dataclass(frozen=True)
class Chosen:
    """What a command was told about security."""

    security: Security = PLAINTEXT
    names: Mapping[str, str] = field(default_factory=lambda: _names({}))
    """What to call the options of clients in errors."""
    logged_in_as: str | None = None
    """The user of --username."""


_chosen: ContextVar[Chosen] = ContextVar("security", default=Chosen())  # noqa: B039 - nothing in it changes


def chosen() -> Chosen:
    """What the command that runs was told about security."""
    return _chosen.get()


def security_arguments() -> SecurityOptions:
    """The same as keyword arguments of a client."""
    security = chosen().security
    return cast(SecurityOptions, {one.name: getattr(security, one.name) for one in fields(security)})


def in_words_of_the_command(message: str) -> str:
    """What a client says, with its options called as they are in the command that runs."""
    return in_other_words(message, chosen().names)


def secure(app: typer.Typer) -> None:
    """Spread out the options of all commands, and give those with `--bootstrap` the options of security."""
    for command in app.registered_commands:
        if command.callback is not None:
            command.callback = _secured(spread(command.callback))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            secure(group.typer_instance)


def _secured(command: Command) -> Command:
    own = options_of(command)
    names = {one.name for one in own}
    if "bootstrap" not in names or _OPTIONS.keys() <= names:
        return command

    @wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in _OPTIONS}
        if arguments.get("data") is not None:
            _check_no_login(given)
            told = Chosen()
        else:
            security = security_from(**given, stdin_is_data=command.__name__ in STDIN_IS_DATA)
            told = Chosen(security, _names(given), given["username"])
        token = _chosen.set(told)
        try:
            command(**arguments)
        finally:
            _chosen.reset(token)

    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OPTIONS.items()
    ]
    take_options(run, [*own, *added])
    return run


def _check_no_login(given: Mapping[str, Any]) -> None:
    """A data folder is opened without a connection. A file may be named in the environment, for other commands."""
    for name, value in given.items():
        if value is not None and name != "command_config":
            option = "--" + name.replace("_", "-")
            raise typer.BadParameter(
                "it is for a broker that runs; leave it out where --data is given", param_hint=option
            )


def security_from(
    *,
    security_protocol: str | None = None,
    ca: Path | None = None,
    cert: Path | None = None,
    key: Path | None = None,
    username: str | None = None,
    sasl_mechanism: str | None = None,
    command_config: Path | None = None,
    stdin_is_data: bool = False,
) -> Security:
    """The security that options ask for; they go before what the file says.

    >>> security_from(ca=Path("ca.pem")).security_protocol
    'SSL'
    """
    given = {"ssl_cafile": ca, "ssl_certfile": cert, "ssl_keyfile": key}
    flags = {name: str(value) for name, value in given.items() if value is not None}
    if sasl_mechanism is not None:
        flags["sasl_mechanism"] = sasl_mechanism
    if security_protocol is not None:
        flags["security_protocol"] = security_protocol
    properties = {} if command_config is None else _read(command_config)
    if username is not None:
        bare_name(username, "--username")
        password = _password_in(properties, username) or login_password(username, stdin_is_data=stdin_is_data)
        properties |= {"sasl.username": username, "sasl.password": password}
        flags |= {"sasl_plain_username": username, "sasl_plain_password": password}
        flags.setdefault("sasl_mechanism", properties.setdefault("sasl.mechanism", "SCRAM-SHA-256"))
    options = {**_from_properties(properties, command_config), **flags}
    if options and "security_protocol" not in options:
        options["security_protocol"] = _protocol(options)
    try:
        return Security(**options)
    except (ValueError, TypeError) as error:
        typed = {"command_config": command_config, "username": username, "sasl_mechanism": sasl_mechanism}
        names = _names({**typed, "ca": ca, "cert": cert, "key": key, "security_protocol": security_protocol})
        raise typer.BadParameter(in_other_words(str(error), names)) from None


def _read(path: Path) -> dict[str, str]:
    try:
        return parse_properties(path.read_text(), path.name)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--command-config") from None
    except (ValueError, KafkaError) as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint="--command-config") from None


def _password_in(properties: dict[str, str], user: str) -> str | None:
    """The password that a file has for the user of --username; its own user is taken out of it."""
    if properties.get("sasl.mechanism", "").strip().upper() == "OAUTHBEARER":
        message = "sasl.mechanism in the file is OAUTHBEARER, whose token names the user; leave --username out"
        raise typer.BadParameter(message, param_hint="--username")
    try:
        jaas = properties.pop("sasl.jaas.config", "").strip()
        login = parse_jaas(jaas).options if jaas else {}
    except ValueError as error:
        message = f"sasl.jaas.config cannot be read: {error}"
        raise typer.BadParameter(message, param_hint="--command-config") from None
    named = login.get("username") or properties.get("sasl.username")
    return (login.get("password") or properties.get("sasl.password")) if named == user else None


def _from_properties(properties: Mapping[str, str], path: Path | None) -> dict[str, Any]:
    try:
        found = java_security(properties)
    except ValueError as error:
        hint = ", or give --username" if any(words in str(error) for words in _NOBODY_NAMED) else ""
        raise typer.BadParameter(f"{path}: {error}{hint}", param_hint="--command-config") from None
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
