"""What a client can be told about security: how to be sure of the brokers, and how to prove who it is itself."""

import inspect
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ParamSpec, TypedDict, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Whether a connection is encrypted, and whether names and passwords are asked for."""

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""How to log in."""


class SecurityOptions(TypedDict, total=False):
    """The fields of `Security`, as keyword arguments of the clients."""

    security_protocol: str
    ssl_context: ssl.SSLContext | None
    ssl_check_hostname: bool
    ssl_cafile: str | None
    ssl_certfile: str | None
    ssl_keyfile: str | None
    ssl_password: str | None
    ssl_crlfile: str | None
    ssl_ciphers: str | None
    sasl_mechanism: str | None
    sasl_plain_username: str | None
    sasl_plain_password: str | None
    sasl_oauth_token_provider: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """How to be sure of the brokers, and how to prove who one is. The names are those of other Python clients.

    >>> Security(security_protocol="SSL", ssl_cafile="ca.pem").uses_tls
    True
    >>> Security(ssl_cafile="ca.pem")
    Traceback (most recent call last):
    ValueError: ssl_cafile is set, but security_protocol is 'PLAINTEXT'; set security_protocol to 'SSL' or 'SASL_SSL'
    """

    security_protocol: str = "PLAINTEXT"
    ssl_context: ssl.SSLContext | None = None
    """A context of one's own, in place of all the other `ssl_` options."""
    ssl_check_hostname: bool = True
    ssl_cafile: str | None = None
    """Whom to trust; those whom the system trusts if not set. This and the next ones are files, or PEM texts."""
    ssl_certfile: str | None = field(default=None, repr=False)
    """The client's own certificate, with those of the authorities between it and one that brokers trust."""
    ssl_keyfile: str | None = field(default=None, repr=False)
    """The certificate's key, if it is not in the same file."""
    ssl_password: str | None = field(default=None, repr=False)
    """What the key is encrypted with."""
    ssl_crlfile: str | None = None
    """Certificates that were revoked."""
    ssl_ciphers: str | None = None
    """Cipher suites of TLS 1.2, as OpenSSL writes them."""
    sasl_mechanism: str | None = None
    """How to log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."""
    sasl_plain_username: str | None = None
    """Who to log in as, with PLAIN and SCRAM alike."""
    sasl_plain_password: str | None = field(default=None, repr=False)
    sasl_oauth_token_provider: Any = field(default=None, repr=False)
    """What gives a token for OAUTHBEARER: a function, or an object with a method `token`, either of which may be a
    coroutine function. It is called for every connection, and again before a session ends."""

    def __post_init__(self) -> None:
        protocol: Any = self.security_protocol
        if not isinstance(protocol, str) or protocol.upper() not in PROTOCOLS:
            raise ValueError(f"security_protocol is {protocol!r}; it must be one of {', '.join(PROTOCOLS)}")
        object.__setattr__(self, "security_protocol", protocol.upper())
        given = [name for name in _SSL_TEXTS if getattr(self, name) is not None]
        for name in given:
            if not isinstance(getattr(self, name), str):
                kind = type(getattr(self, name)).__name__
                raise TypeError(f"{name} is of type {kind}; give a str")
        if self.ssl_context is not None:
            if not isinstance(self.ssl_context, ssl.SSLContext):
                raise TypeError(f"ssl_context is of type {type(self.ssl_context).__name__}; give an ssl.SSLContext")
            if given:
                raise ValueError(f"ssl_context and {given[0]} are both set; load it into the context instead")
            given = ["ssl_context"]
        if given and not self.uses_tls:
            others = "'SASL_SSL'" if self.uses_sasl else "'SSL' or 'SASL_SSL'"
            raise ValueError(
                f"{given[0]} is set, but security_protocol is {protocol!r}; set security_protocol to {others}"
            )
        if self.ssl_keyfile is not None and self.ssl_certfile is None:
            raise ValueError("ssl_keyfile is set without ssl_certfile; give the certificate that belongs to the key")
        self._check_login()

    def _check_login(self) -> None:
        given = {name: getattr(self, name) for name in (*_SASL_TEXTS, _PROVIDER) if getattr(self, name) is not None}
        if not self.uses_sasl:
            for name in given:
                raise ValueError(
                    f"{name} is set, but security_protocol is {self.security_protocol!r}; "
                    "set security_protocol to 'SASL_SSL', or to 'SASL_PLAINTEXT' where nobody listens"
                )
            return
        for name in _SASL_TEXTS:
            if not isinstance(given.get(name, ""), str):
                raise TypeError(f"{name} is of type {type(given[name]).__name__}; give a str")
        if self.sasl_mechanism is None or self.sasl_mechanism.upper() not in MECHANISMS:
            raise ValueError(f"sasl_mechanism is {self.sasl_mechanism!r}; it must be one of {', '.join(MECHANISMS)}")
        object.__setattr__(self, "sasl_mechanism", self.sasl_mechanism.upper())
        needed = (_PROVIDER,) if self.sasl_mechanism == "OAUTHBEARER" else _SASL_TEXTS[:2]
        for name in needed:
            if not given.get(name):
                raise ValueError(f"{name} is not set; {self.sasl_mechanism} needs {' and '.join(needed)}")

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether to log in."""
        return self.security_protocol.startswith("SASL")


# The user first: the mechanism may be one that was not asked for, but follows from there being a user.
_SASL_TEXTS = ("sasl_plain_username", "sasl_plain_password", "sasl_mechanism")
_PROVIDER = "sasl_oauth_token_provider"
_SSL_TEXTS = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_crlfile", "ssl_ciphers")

PLAINTEXT = Security()
"""No security at all."""


def security_of(options: SecurityOptions, client: str) -> Security:
    """The security that keyword arguments of a client ask for; TypeError, as Python's own, for one that there is not.

    >>> security_of({"security_protocol": "ssl"}, "Producer").security_protocol
    'SSL'
    >>> security_of({"ssl_ca": "ca.pem"}, "Producer")
    Traceback (most recent call last):
    TypeError: Producer() got an unexpected keyword argument 'ssl_ca'
    """
    for name in options:
        if name not in SecurityOptions.__annotations__:
            raise TypeError(f"{client}() got an unexpected keyword argument {name!r}")
    return Security(**options)


def takes_security(function: Callable[P, T]) -> Callable[P, T]:
    """Have `help` and `inspect.signature` show the options that a function's `**security` stands for.

    >>> def connect(address: str, **security: object) -> None: ...
    >>> list(inspect.signature(takes_security(connect)).parameters)[:3]
    ['address', 'security_protocol', 'ssl_context']
    """
    signature = inspect.signature(function)
    kinds = SecurityOptions.__annotations__
    options = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=kinds[one.name])
        for one in fields(Security)
    ]
    named = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    cast(Any, function).__signature__ = signature.replace(parameters=[*named, *options])
    return function
