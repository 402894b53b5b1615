"""The names of certificates are written as Java writes them, so that rules and ACLs of Kafka's hold here too."""

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from ottla.net.principals import subject_name
from tests.unit.net.test_principals import certificate

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java to compare with")

SOURCE = Path(__file__).parent / "java" / "Names.java"

NAMES = [
    [(NameOID.COUNTRY_NAME, "DE"), (NameOID.ORGANIZATION_NAME, 'A, "B" + C; <D>\\ #='), (NameOID.COMMON_NAME, " x  ")],
    [(NameOID.COMMON_NAME, "älice€𐀀"), (NameOID.DOMAIN_COMPONENT, "com"), (NameOID.USER_ID, "u1")],
    [(NameOID.EMAIL_ADDRESS, "a@b.c"), (NameOID.SERIAL_NUMBER, "17"), (NameOID.TITLE, "Dr"), (NameOID.SURNAME, "X")],
    [(NameOID.COMMON_NAME, "#hash"), (NameOID.LOCALITY_NAME, "a=b"), (NameOID.STATE_OR_PROVINCE_NAME, " ")],
    [(NameOID.STREET_ADDRESS, "S 1"), (NameOID.ORGANIZATIONAL_UNIT_NAME, "a/b'c:d?e"), (NameOID.POSTAL_CODE, "1")],
]


def test_names_are_written_as_java_writes_them(tmp_path: Path) -> None:
    parts = [[x509.NameAttribute(kind, value) for kind, value in name] for name in NAMES]
    together = x509.Name([x509.RelativeDistinguishedName(parts[1]), x509.RelativeDistinguishedName(parts[0])])
    certificates = [certificate(name) for name in (*map(x509.Name, parts), together)]
    files = []
    for number, data in enumerate(certificates):
        files.append(str(tmp_path / f"{number}.der"))
        Path(files[-1]).write_bytes(data)
    done = subprocess.run(["java", str(SOURCE), *files], capture_output=True, check=True, timeout=120)
    assert [subject_name(data) for data in certificates] == done.stdout.decode().splitlines()
