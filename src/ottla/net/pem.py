"""Keys, certificates and revocation lists in PEM, into contexts of TLS. It reads files, so it runs in threads."""

import re
import ssl
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, NoReturn

from ottla.config.tls import CONVERT
from ottla.ports.files import private_file, read_file
from ottla.wire.errors import ErrorCode, KafkaError

_BEGIN = "-----BEGIN "
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE_LENGTH = 64
_STORES = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce", b"\x30\x82", b"\x30\x80")
"""How stores of Java and PKCS12 begin, and certificates that are not PEM."""


class TlsSettingsError(KafkaError):
    """A file, or another setting of TLS, is not there or not as it should be.

    >>> print(TlsSettingsError("ssl_cafile", "'ca.pem' is not there; name a file that is"))
    INVALID_CONFIG: ssl_cafile: 'ca.pem' is not there; name a file that is
    """

    def __init__(self, name: str, complaint: str) -> None:
        super().__init__(ErrorCode.INVALID_CONFIG, f"{name}: {complaint}")


class Pem(NamedTuple):
    """A path, or the PEM itself, and the setting that gives it."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"Pem({self.name}, {self.shown})"

    @property
    def path(self) -> str | None:
        """The file, if it is one."""
        return None if _BEGIN in self.value else self.value

    @property
    def shown(self) -> str:
        """How errors speak of it: never with what is in it."""
        if self.path is None:
            return "the text"
        # What is meant for a path may be a key whose first line was forgotten.
        return "the file that it names" if self.name.endswith("keystore.key") else repr(self.path)

    def refuse(self, complaint: str) -> NoReturn:
        """Raise `TlsSettingsError`."""
        raise TlsSettingsError(self.name, f"{self.shown} {complaint}") from None

    def text(self, kind: str, otherwise: str = "") -> str:
        """What is in it, once it is sure that there is a block of that kind; `otherwise` says where else it may be."""
        found = normal_pem(self.value) if self.path is None else self._read(self.path)
        if kind not in {"PRIVATE KEY" if name.endswith("PRIVATE KEY") else name for name, _ in _BLOCK.findall(found)}:
            self.refuse(f"has no {kind}; it must have a part that begins with '{_BEGIN}{kind}-----'{otherwise}")
        return found

    def _read(self, path: str) -> str:
        try:
            data = read_file(path)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            self.refuse(f"cannot be read: {reason}; name a file that this process may read")
        if data.startswith(_STORES):
            self.refuse(f"is no PEM file; {CONVERT}")
        return data.decode("latin-1")

    def at_path(self) -> AbstractContextManager[str]:
        """A path at which OpenSSL finds it."""
        return nullcontext(self.path) if self.path is not None else private_file(normal_pem(self.value).encode())


def normal_pem(text: str) -> str:
    """PEM with the line breaks that OpenSSL wants; in files of properties it often comes in one line.

    >>> print(normal_pem("-----BEGIN X----- QUJD REVG -----END X-----"), end="")
    -----BEGIN X-----
    QUJDREVG
    -----END X-----
    """

    def block(match: re.Match[str]) -> str:
        kind, body = match.groups()
        if ":" in body:
            # The headers of an old encrypted key, which need their own lines.
            return match[0] + "\n"
        packed = "".join(body.replace("\\n", "").split())
        lines = [packed[start : start + _LINE_LENGTH] for start in range(0, len(packed), _LINE_LENGTH)]
        return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])

    return "".join(block(match) for match in _BLOCK.finditer(text))


def load_identity(context: ssl.SSLContext, certificate: Pem, key: Pem | None, password: str | None) -> None:
    """Have a context show a certificate; the key is in the same file unless it is given."""
    certificate.text("CERTIFICATE")
    holder = key or certificate
    of_client = certificate.name.startswith("ssl_")
    elsewhere = f", or the key be given as {'ssl_keyfile' if of_client else 'ssl.keystore.key'}"
    holder.text("PRIVATE KEY", elsewhere if key is None else "")

    def secret() -> str:
        if password is None:
            option = "ssl_password" if of_client else "ssl.key.password"
            holder.refuse(f"has an encrypted key; give its password too, as {option}")
        return password

    with certificate.at_path() as certificate_path, holder.at_path() as key_path:
        try:
            context.load_cert_chain(certificate_path, key_path, password=secret)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                holder.refuse("has a key that does not belong to the certificate; give the two that belong together")
            if password is not None and error.reason in _NOT_DECRYPTED:
                holder.refuse("has a key that this password does not open; give the right one")
            certificate.refuse(f"cannot be loaded: {error.reason or error}; see whether it is whole")


_NOT_DECRYPTED = ("BAD_DECRYPT", "UNSUPPORTED", "BAD_PASSWORD_READ", "INTERRUPTED_OR_CANCELLED", None)


def load_authorities(context: ssl.SSLContext, authorities: Pem) -> None:
    """Have a context trust these authorities."""
    text = authorities.text("CERTIFICATE")
    certificates = [match[0] for match in _BLOCK.finditer(text) if match[1] == "CERTIFICATE"]
    try:
        context.load_verify_locations(cadata="\n".join(certificates))
    except ssl.SSLError as error:
        authorities.refuse(f"cannot be loaded: {error.reason or error}; see whether it is whole")


def load_revoked(context: ssl.SSLContext, revoked: Pem) -> None:
    """Have a context refuse certificates that these lists name, and those whose authority has no list here."""
    revoked.text("X509 CRL")
    with revoked.at_path() as path:
        try:
            context.load_verify_locations(path)
        except ssl.SSLError as error:
            revoked.refuse(f"cannot be loaded: {error.reason or error}; see whether it is whole")
    context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
