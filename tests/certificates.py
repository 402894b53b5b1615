"""Authorities that live for a test, and what they sign: certificates, good and bad, and lists of revoked ones."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOURS = datetime.timedelta(hours=1)
LOCAL = ("localhost", "127.0.0.1")


@dataclass
class Identity:
    """A certificate and its key."""

    certificate: x509.Certificate
    private_key: ec.EllipticCurvePrivateKey

    @cached_property
    def chain(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key(self) -> bytes:
        return self.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def encrypted_key(self, password: str) -> bytes:
        encryption = BestAvailableEncryption(password.encode())
        return self.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)

    @property
    def store(self) -> bytes:
        """Key and certificate in one, as Kafka's key stores of type PEM are."""
        return self.key + self.chain


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "Test Authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name([(NameOID.COMMON_NAME, name)])
        self.certificate = (
            _builder(self._name, self._name, self._key, -HOURS, HOURS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(
                x509.KeyUsage(True, False, False, False, False, True, True, False, False),
                critical=True,
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(self, name: str, *, hosts: Sequence[str] = LOCAL, expired: bool = False, unit: str = "") -> Identity:
        """A certificate, for a broker or a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [(NameOID.ORGANIZATION_NAME, "Shop"), (NameOID.COMMON_NAME, name)]
        if unit:
            subject.insert(1, (NameOID.ORGANIZATIONAL_UNIT_NAME, unit))
        start, end = (-3 * HOURS, -2 * HOURS) if expired else (-HOURS, HOURS)
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            _builder(_name(subject), self._name, key, start, end)
            .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Identity(certificate, key)

    def revoked(self, *identities: Identity) -> bytes:
        """The list of those that were revoked."""
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._name)
        builder = builder.last_update(now - HOURS).next_update(now + HOURS)
        for identity in identities:
            entry = x509.RevokedCertificateBuilder().serial_number(identity.certificate.serial_number)
            builder = builder.add_revoked_certificate(entry.revocation_date(now - HOURS).build())
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)


def written(folder: Path, name: str, data: bytes) -> str:
    """A file, put in place at once as those who renew certificates do."""
    path = folder / name
    fresh = folder / (name + ".new")
    fresh.write_bytes(data)
    fresh.replace(path)
    return str(path)


def _name(attributes: list[tuple[x509.ObjectIdentifier, str]]) -> x509.Name:
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in attributes])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    start: datetime.timedelta,
    end: datetime.timedelta,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now + start).not_valid_after(now + end)
