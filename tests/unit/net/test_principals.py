"""From certificates to users, as Kafka does it."""

import datetime
import re

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.net.principals import PrincipalRules, subject_name
from ottla.wire.errors import KafkaError

KEY = ec.generate_private_key(ec.SECP256R1())
ISSUER = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")])


def certificate(name: x509.Name) -> bytes:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(ISSUER).public_key(KEY.public_key())
    builder = builder.serial_number(1 << 150).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


def named(*attributes: tuple[x509.ObjectIdentifier, str]) -> str:
    return subject_name(certificate(x509.Name([x509.NameAttribute(kind, value) for kind, value in attributes])))


def test_a_name_is_written_backwards_with_the_words_of_rfc_2253() -> None:
    written = named(
        (NameOID.DOMAIN_COMPONENT, "com"),
        (NameOID.COUNTRY_NAME, "DE"),
        (NameOID.STATE_OR_PROVINCE_NAME, "Berlin"),
        (NameOID.LOCALITY_NAME, "Mitte"),
        (NameOID.STREET_ADDRESS, "Unter den Linden"),
        (NameOID.ORGANIZATION_NAME, "Shop"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "Billing"),
        (NameOID.USER_ID, "a1"),
        (NameOID.COMMON_NAME, "älice"),
    )
    assert written == "CN=älice,UID=a1,OU=Billing,O=Shop,STREET=Unter den Linden,L=Mitte,ST=Berlin,C=DE,DC=com"


def test_what_rfc_2253_has_no_word_for_is_written_as_a_number_with_its_encoding() -> None:
    assert named((NameOID.EMAIL_ADDRESS, "a@b.c")) == "1.2.840.113549.1.9.1=#16056140622e63"
    assert named((NameOID.SERIAL_NUMBER, "17")) == "2.5.4.5=#13023137"


def test_signs_that_have_a_meaning_are_escaped() -> None:
    assert named((NameOID.ORGANIZATION_NAME, 'A, "B" + C; <D>\\ #=')) == 'O=A\\, \\"B\\" \\+ C\\; \\<D\\>\\\\ \\#\\='
    assert named((NameOID.COMMON_NAME, " padded  ")) == "CN=\\ padded\\ \\ "


def test_several_attributes_of_one_part_are_joined() -> None:
    part = x509.RelativeDistinguishedName(
        [x509.NameAttribute(NameOID.COMMON_NAME, "alice"), x509.NameAttribute(NameOID.USER_ID, "a1")]
    )
    written = subject_name(certificate(x509.Name([part])))
    assert sorted(written.split("+")) == ["CN=alice", "UID=a1"]


def test_a_certificate_without_a_name_has_an_empty_one() -> None:
    assert named() == ""


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=16))
def test_any_name_can_be_read_back(text: str) -> None:
    written = named((NameOID.COMMON_NAME, text))
    assert re.sub(r"\\(.)", r"\1", written) == f"CN={text}"


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("DEFAULT", "CN=alice,O=Shop", "CN=alice,O=Shop"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,O=Shop", "kafka"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L", "CN=Alice,OU=Sales,O=Shop", "alice@sales"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, DEFAULT", "cn=alice,O=Shop", "ALICE"),
        ("RULE:^CN=bob$/bob/,DEFAULT", "CN=alice", "CN=alice"),
        ("RULE:^CN=bob$/bob/", "CN=alice", None),
        (r"RULE:^CN=(.*?)\/host$/$1/", "CN=alice/host", "alice"),
        (r"RULE:^CN=(.*?)$/a\/$1/", "CN=alice", "a/alice"),
        ("RULE:^CN=a,OU=(b|c),.*$/$1/", "CN=a,OU=c,O=Shop", "c"),
        ("", "CN=alice", None),
    ],
)
def test_the_first_rule_that_fits_names_the_user(rules: str, name: str, user: str | None) -> None:
    assert PrincipalRules(rules).user(name) == user


@pytest.mark.parametrize("rules", ["RULE:^CN=(.*?)$", "RULE:^CN=($/x/", "RULE:^CN=.*$/$1/", "MINE", "DEFAULT,NONE"])
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(KafkaError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalRules(rules)
