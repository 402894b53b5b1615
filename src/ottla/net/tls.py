"""Contexts of TLS: what a client or a listener shows, whom it trusts, and which versions and ciphers it takes.

Contexts are made in threads, since files are read, and made anew when the files have changed.
"""

import asyncio
import logging
import ssl
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from ottla.net.pem import Pem, TlsSettingsError, load_authorities, load_identity, load_revoked
from ottla.net.security import Security
from ottla.net.tls_errors import is_not_tls
from ottla.ports.files import Stamp, file_stamp

GOOD_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2: those that keep their secrets if the key is stolen later, and notice what was tampered with. The ciphers
of TLS 1.3 are all of that kind."""

PROTOCOL_VERSION_ALERT = bytes([21, 3, 3, 0, 2, 2, 70])

CONTEXTS_KEPT = 32
"""Contexts that clients of one process share. Making one takes milliseconds, with all whom a system trusts many."""

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_TLS_1_3_CIPHERS = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"})
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}

log = logging.getLogger(__name__)


class Reloading:
    """A context that is made anew when the files behind it change.

    `make` runs in a thread. What it raises leaves the context as it is.
    """

    def __init__(self, make: Callable[[], ssl.SSLContext], sources: Iterable[Pem | None]) -> None:
        self._make = make
        self._paths = sorted({one.path for one in sources if one is not None and one.path is not None})
        self._stamps: list[Stamp | None] = []
        self._failed_at: list[Stamp | None] = []
        self._context: ssl.SSLContext | None = None
        self._lock = threading.Lock()

    @property
    def context(self) -> ssl.SSLContext:
        """The context as it is; there must have been a `refresh`."""
        assert self._context is not None, "no context was made yet"
        return self._context

    async def refresh(self) -> bool:
        """Make the context if there is none, or if a file has changed since; whether that was so.

        Files that were looked at in vain are not looked at again until they change.
        """
        return await asyncio.get_running_loop().run_in_executor(None, self._refresh)

    async def current(self) -> ssl.SSLContext:
        """The context as the files are now; if they have become useless, as they were before."""
        try:
            await self.refresh()
        except (TlsSettingsError, OSError) as error:
            if self._context is None:
                raise
            log.error("changed files of TLS are not used, those before them are: %s", error)
        return self.context

    def _refresh(self) -> bool:
        with self._lock:
            # Before they are read: what is written meanwhile is seen the next time.
            stamps = [file_stamp(path) for path in self._paths]
            if self._context is not None and stamps in (self._stamps, self._failed_at):
                return False
            try:
                self._context = self._make()
            except BaseException:
                self._failed_at = stamps
                raise
            self._stamps, self._failed_at = stamps, []
            return True


class _ClientSettings(NamedTuple):
    """What a client's context is made of, by the names of `Security`."""

    ssl_check_hostname: bool
    ssl_cafile: str | None
    ssl_certfile: str | None
    ssl_keyfile: str | None
    ssl_password: str | None
    ssl_crlfile: str | None
    ssl_ciphers: str | None

    def pem(self, name: str) -> Pem | None:
        """A file or text, if it was given."""
        value: str | None = getattr(self, name)
        return None if value is None else Pem(name, value)


def client_tls(security: Security) -> Reloading:
    """The context of a client, which those that are told the same share."""
    given = security.ssl_context
    if given is not None:
        return Reloading(lambda: given, ())
    return _kept(_ClientSettings(*(getattr(security, name) for name in _ClientSettings._fields)))


@lru_cache(maxsize=CONTEXTS_KEPT)
def _kept(settings: _ClientSettings) -> Reloading:
    sources = [settings.pem(name) for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile")]
    return Reloading(lambda: _client_context(settings), sources)


def _client_context(settings: _ClientSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.ssl_check_hostname
    _set_ciphers(context, settings.ssl_ciphers or GOOD_CIPHERS, "ssl_ciphers")
    if (authorities := settings.pem("ssl_cafile")) is not None:
        load_authorities(context, authorities)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if (certificate := settings.pem("ssl_certfile")) is not None:
        load_identity(context, certificate, settings.pem("ssl_keyfile"), settings.ssl_password)
    if (revoked := settings.pem("ssl_crlfile")) is not None:
        load_revoked(context, revoked)
    return context


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What a listener shows, whom it trusts, and how careful it is."""

    certificate: Pem
    key: Pem | None = None
    password: str | None = field(default=None, repr=False)
    authorities: Pem | None = None
    revoked: Pem | None = None
    client_auth: str = "none"
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    ciphers: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[Pem | None, ...]:
        """What may be files."""
        return self.certificate, self.key, self.authorities, self.revoked


def server_context(settings: ServerSettings) -> ssl.SSLContext:
    """The context of a listener; `TlsSettingsError` if a setting will not do."""
    context = _ServerContext(ssl.PROTOCOL_TLS_SERVER)
    _set_versions_and_ciphers(context, settings)
    # A client that comes back shows its certificate again. With TLS 1.2 it need not, since Python cannot forbid that;
    # but not in another context, and a changed list of what was revoked makes one.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    load_identity(context, settings.certificate, settings.key, settings.password)
    if settings.client_auth != "none":
        if settings.authorities is None:
            complaint = f"is {settings.client_auth}, but nobody is trusted; set ssl.truststore.location"
            raise TlsSettingsError("ssl.client.auth", complaint)
        load_authorities(context, settings.authorities)
        context.verify_mode = _CLIENT_AUTH[settings.client_auth]
        if settings.revoked is not None:
            load_revoked(context, settings.revoked)
    return context


def _set_versions_and_ciphers(context: ssl.SSLContext, settings: ServerSettings) -> None:
    versions = {_VERSIONS[name] for name in settings.protocols}
    older = [openssl_name(name) for name in settings.ciphers if name not in _TLS_1_3_CIPHERS]
    if settings.ciphers and not older:
        versions.discard(ssl.TLSVersion.TLSv1_2)
    elif settings.ciphers and len(older) == len(settings.ciphers):
        versions.discard(ssl.TLSVersion.TLSv1_3)
    if not versions:
        complaint = (
            f"none of {', '.join(settings.ciphers)} belongs to {', '.join(settings.protocols)}; name one that does"
        )
        raise TlsSettingsError("ssl.cipher.suites", complaint)
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    _set_ciphers(context, ":".join(older) or GOOD_CIPHERS, "ssl.cipher.suites")


def _set_ciphers(context: ssl.SSLContext, ciphers: str, setting: str) -> None:
    try:
        context.set_ciphers(ciphers)
    except ssl.SSLError:
        raise TlsSettingsError(setting, f"{ciphers!r} has no cipher of TLS 1.2 that is known here") from None


def openssl_name(cipher: str) -> str:
    """A cipher suite of TLS 1.2 as OpenSSL calls it, from what Java calls it; OpenSSL's own names as they are.

    >>> openssl_name("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
    'ECDHE-RSA-AES128-GCM-SHA256'
    >>> openssl_name("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"), openssl_name("ECDHE+AESGCM")
    ('ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE+AESGCM')
    """
    if "_WITH_" not in cipher:
        return cipher
    exchange, _, rest = cipher.removeprefix("TLS_").partition("_WITH_")
    rest = rest.replace("AES_", "AES").replace("POLY1305_SHA256", "POLY1305").replace("_CBC_", "_")
    return f"{'' if exchange == 'RSA' else exchange + '_'}{rest}".replace("_", "-")


class _Telling(ssl.SSLObject):
    """Keeps what OpenSSL has to tell the peer when a handshake fails: event loops throw it away."""

    outgoing: ssl.MemoryBIO

    def do_handshake(self) -> None:
        """Go on with the handshake."""
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            error.alert = self.outgoing.read()  # type: ignore[attr-defined]
            raise


class _ServerContext(ssl.SSLContext):
    sslobject_class = _Telling

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        """TLS between two buffers."""
        wrapped = super().wrap_bio(incoming, outgoing, *args, **kwargs)
        assert isinstance(wrapped, _Telling)
        wrapped.outgoing = outgoing
        return wrapped


def alert_of(error: BaseException) -> bytes:
    """What the peer should be told of a handshake that failed; perhaps nothing."""
    if is_not_tls(error):
        # OpenSSL has no words for those who would not understand them. But clients know these, as Java's say the same.
        return PROTOCOL_VERSION_ALERT
    found: bytes = getattr(error, "alert", b"")
    return found
