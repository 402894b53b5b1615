"""Users by their names, and the principals that brokers take them for."""

import ssl
from pathlib import Path

import typer

from ottla.net.principals import subject_name
from ottla.net.security import Security

KIND = "User:"
NOBODY = "User:ANONYMOUS"
END_OF_CERTIFICATE = "-----END CERTIFICATE-----"


def bare_name(name: str, option: str) -> str:
    """A user's name, which is not that of its principal.

    >>> bare_name("alice", "--user")
    'alice'
    >>> try:
    ...     bare_name("User:alice", "--user")
    ... except typer.BadParameter as error:
    ...     print(error.message)
    'User:alice' is how rules of access call the user 'alice'; write 'alice' here
    """
    if name.startswith(KIND):
        bare = name.removeprefix(KIND)
        message = f"{name!r} is how rules of access call the user {bare!r}; write {bare!r} here"
        raise typer.BadParameter(message, param_hint=option)
    return name


def principal_of(security: Security) -> str | None:
    """Who a broker most likely takes a client for; None if only it can say, as of somebody who shows a token.

    >>> principal_of(Security(security_protocol="SSL")), principal_of(Security())
    ('User:ANONYMOUS', 'User:ANONYMOUS')
    """
    if security.uses_sasl:
        return KIND + security.sasl_plain_username if security.sasl_plain_username else None
    if security.uses_tls and security.ssl_certfile is not None:
        return _subject(security.ssl_certfile)
    return NOBODY


def _subject(certificate: str) -> str | None:
    """The subject of a certificate, which is the principal unless the broker has rules that shorten it."""
    try:
        text = certificate if END_OF_CERTIFICATE in certificate else Path(certificate).read_text("latin-1")
        begin = text.index("-----BEGIN CERTIFICATE-----")
        first = text[begin : text.index(END_OF_CERTIFICATE, begin) + len(END_OF_CERTIFICATE)]
        return KIND + subject_name(ssl.PEM_cert_to_DER_cert(first))
    except (OSError, ValueError, IndexError):
        return None
