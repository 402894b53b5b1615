"""Keys and certificates: what is wrong with them is said, and what is in them is not."""

import ssl
from pathlib import Path

import pytest

from ottla.net.pem import Pem, TlsSettingsError, load_authorities, load_identity, load_revoked, normal_pem
from tests.certificates import Authority, Identity, written


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def identity(authority: Authority) -> Identity:
    return authority.issue("broker")


@pytest.fixture
def context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


def complaint(context: ssl.SSLContext, certificate: str, key: str | None = None, password: str | None = None) -> str:
    with pytest.raises(TlsSettingsError) as caught:
        load_identity(context, Pem("chain", certificate), None if key is None else Pem("key", key), password)
    return caught.value.message


def test_certificate_and_key_come_in_one_file_or_two_or_as_texts(
    context: ssl.SSLContext, identity: Identity, tmp_path: Path
) -> None:
    load_identity(context, Pem("store", written(tmp_path, "store.pem", identity.store)), None, None)
    chain, key = written(tmp_path, "chain.pem", identity.chain), written(tmp_path, "key.pem", identity.key)
    load_identity(context, Pem("chain", chain), Pem("key", key), None)
    load_identity(context, Pem("chain", identity.chain.decode()), Pem("key", identity.key.decode()), None)


def test_texts_in_one_line_as_properties_have_them_are_read(
    context: ssl.SSLContext, identity: Identity, authority: Authority
) -> None:
    def one_line(data: bytes) -> str:
        return data.decode().replace("\n", " ")

    load_identity(context, Pem("chain", one_line(identity.chain)), Pem("key", one_line(identity.key)), None)
    load_authorities(context, Pem("ca", one_line(authority.pem)))
    assert len(context.get_ca_certs()) == 1


def test_normal_text_stays_as_it_is(identity: Identity) -> None:
    assert normal_pem(identity.store.decode()) == identity.store.decode()


def test_an_encrypted_key_needs_its_password(context: ssl.SSLContext, identity: Identity, tmp_path: Path) -> None:
    chain = written(tmp_path, "chain.pem", identity.chain)
    key = written(tmp_path, "key.pem", identity.encrypted_key("right"))
    load_identity(context, Pem("chain", chain), Pem("key", key), "right")
    assert "has an encrypted key; give its password too" in complaint(context, chain, key)
    said = complaint(context, chain, key, "wrong-secret")
    assert "has a key that this password does not open" in said
    assert "wrong-secret" not in said


def test_what_is_wrong_with_files_is_said(
    context: ssl.SSLContext, identity: Identity, authority: Authority, tmp_path: Path
) -> None:
    chain = written(tmp_path, "chain.pem", identity.chain)
    other = written(tmp_path, "other.pem", authority.issue("other").key)
    assert "cannot be read: no such file" in complaint(context, str(tmp_path / "none.pem"))
    assert complaint(context, chain, other).startswith(f"key: {other!r} has a key that does not belong")
    assert "has no PRIVATE KEY" in complaint(context, chain)
    assert "has no CERTIFICATE" in complaint(context, other)
    cut = written(tmp_path, "cut.pem", identity.chain.replace(b"MII", b"AAA") + identity.key)
    assert "cannot be loaded" in complaint(context, cut)


@pytest.mark.parametrize("beginning", [b"\xfe\xed\xfe\xed\0\0\0\2", b"\x30\x82\x0a\x10\x02\x01\x03"])
def test_a_store_that_only_java_reads_is_answered_with_how_to_convert_it(
    context: ssl.SSLContext, beginning: bytes, tmp_path: Path
) -> None:
    said = complaint(context, written(tmp_path, "store.jks", beginning + bytes(100)))
    assert "is no PEM file" in said
    assert "keytool -importkeystore" in said
    assert "openssl pkcs12" in said


def test_a_list_of_revoked_certificates_must_be_one(
    context: ssl.SSLContext, authority: Authority, identity: Identity, tmp_path: Path
) -> None:
    load_revoked(context, Pem("crl", authority.revoked(identity).decode()))
    assert context.verify_flags & ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    with pytest.raises(TlsSettingsError, match="has no X509 CRL"):
        load_revoked(context, Pem("crl", authority.pem.decode()))


def test_errors_about_texts_do_not_show_them(context: ssl.SSLContext, authority: Authority, identity: Identity) -> None:
    said = complaint(context, identity.chain.decode(), authority.issue("other").key.decode())
    assert "BEGIN" not in said
    assert said.startswith("key: the text has a key")
    assert "BEGIN" not in repr(Pem("key", identity.key.decode()))
