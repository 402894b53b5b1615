"""SCRAM, both sides: the vectors of RFC 7677, and all that must fail."""

from base64 import b64decode, b64encode

import pytest

from ottla.cluster.credential import ScramCredential, ScramMechanism
from ottla.net.sasl.errors import SaslError
from ottla.net.sasl.scram import base64, combined, hash_of, keyed, make_credential, salted_password
from ottla.net.sasl.scram_client import ScramClient
from ottla.net.sasl.scram_server import ScramServer

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


def kept(password: str = "pencil", mechanism: ScramMechanism = SHA_256, iterations: int = 4096) -> ScramCredential:
    return make_credential(mechanism, password, SALT, iterations)


def server_of(credential: ScramCredential, nonce: str = SERVER_NONCE) -> ScramServer:
    return ScramServer(credential.mechanism, lambda user: credential, nonce)


def log_in(client: ScramClient, server: ScramServer) -> None:
    final = client.answer(server.answer(client.first()))
    assert final is not None
    assert client.answer(server.answer(final)) is None


def test_the_example_of_the_standard_comes_out_word_for_word() -> None:
    client, server = ScramClient(SHA_256, "user", "pencil", CLIENT_NONCE), server_of(kept())
    first = server.answer(client.first())
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = client.answer(first)
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    last = server.answer(final)
    assert last == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert client.answer(last) is None
    assert (server.user, server.complete) == ("user", True)


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("user", ["alice", "a=b,c", "Jürgen", "n=admin,r="])
def test_any_name_and_password_get_through(mechanism: ScramMechanism, user: str) -> None:
    password = "pä ss,w=ord\N{SNOWMAN}"
    server = server_of(kept(password, mechanism, 5000))
    log_in(ScramClient(mechanism, user, password, "c"), server)
    assert (server.user, server.complete) == (user, True)


def test_a_wrong_password_is_refused_and_so_is_one_of_another_mechanism() -> None:
    server = server_of(kept())
    with pytest.raises(SaslError, match="password is wrong"):
        log_in(ScramClient(SHA_256, "user", "pencils", "c"), server)
    assert not server.complete
    with pytest.raises(SaslError):
        log_in(ScramClient(SHA_256, "user", "pencil", "c"), server_of(kept(mechanism=SHA_512)))


def test_what_one_connection_said_is_worth_nothing_on_another() -> None:
    client, server = ScramClient(SHA_256, "user", "pencil", CLIENT_NONCE), server_of(kept())
    final = client.answer(server.answer(client.first()))
    assert final is not None
    other = server_of(kept(), nonce="another")
    other.answer(client.first())
    with pytest.raises(SaslError, match="nonce"):
        other.answer(final)
    assert not other.complete


def test_librdkafkas_way_to_write_nonces_is_taken() -> None:
    """Up to 2.6 it repeats its own part; the proof covers what it wrote."""
    client, server = ScramClient(SHA_256, "user", "pencil", "c"), server_of(kept())
    first = server.answer(client.first())
    twice = ScramClient(SHA_256, "user", "pencil", "c")
    final = twice.answer(first)
    assert final is not None
    with pytest.raises(SaslError, match="password is wrong"):
        server.answer(final.replace(b"r=c", b"r=cc", 1))
    salted = salted_password(SHA_256, "pencil", SALT, 4096)
    client_key = keyed(SHA_256, salted, b"Client Key")
    without_proof = f"c=biws,r=cc{SERVER_NONCE}"
    said = f"n=user,r=c,{first.decode()},{without_proof}".encode()
    proof = combined(client_key, keyed(SHA_256, hash_of(SHA_256, client_key), said))
    server.answer(f"{without_proof},p={base64(proof)}".encode())
    assert server.complete


def test_a_proof_for_one_user_does_not_open_another() -> None:
    passwords = {"alice": kept("one"), "bob": kept("other")}
    server = ScramServer(SHA_256, passwords.__getitem__, SERVER_NONCE)
    alice = ScramClient(SHA_256, "alice", "one", CLIENT_NONCE)
    first = server.answer(alice.first().replace(b"n=alice", b"n=bob"))
    final = alice.answer(first)
    assert final is not None
    with pytest.raises(SaslError, match="password is wrong"):
        server.answer(final)


@pytest.mark.parametrize(
    "first",
    [
        b"p=tls-unique,,n=user,r=c",
        b"n,a=root,n=user,r=c",
        b"n,,m=ext,n=user,r=c",
        b"n,,n=user,r=c,m=ext",
        b"n,,n=user,r=c,tokenauth=true",
        b"n,,n=us=er,r=c",
        b"n,,n=,r=c",
        b"n,,n=user,r=",
        b"n,,n=user,r=\x01",
        b"n,,n=user",
        b"n,,r=c,n=user",
        b"n,,",
        b"n",
        b"",
        b"\xff\xfe",
    ],
)
def test_first_messages_that_ask_for_more_or_less_than_there_is_are_refused(first: bytes) -> None:
    server = server_of(kept())
    with pytest.raises(SaslError):
        server.answer(first)
    assert not server.complete


def test_every_cut_and_every_flipped_bit_of_a_final_message_is_refused() -> None:
    client = ScramClient(SHA_256, "user", "pencil", CLIENT_NONCE)
    first = server_of(kept()).answer(client.first())
    final = client.answer(first)
    assert final is not None
    spoilt = [final[:length] for length in range(len(final))]
    spoilt += [bytes([*final[:at], final[at] ^ 1, *final[at + 1 :]]) for at in range(len(final))]
    for message in spoilt:
        server = server_of(kept())
        server.answer(client.first())
        # The last character of base64 has bits that mean nothing; the decoder may take either.
        try:
            server.answer(message)
        except SaslError:
            assert not server.complete
        else:
            assert b64decode(message.rpartition(b"p=")[2]) == b64decode(final.rpartition(b"p=")[2])


def test_a_final_message_that_changes_the_channel_binding_is_refused() -> None:
    client = ScramClient(SHA_256, "user", "pencil", CLIENT_NONCE)
    server = server_of(kept())
    final = client.answer(server.answer(client.first().replace(b"n,,", b"y,,")))
    assert final is not None
    with pytest.raises(SaslError, match="channel binding"):
        server.answer(final)


def test_nothing_more_is_taken_after_the_end() -> None:
    client, server = ScramClient(SHA_256, "user", "pencil", "c"), server_of(kept())
    log_in(client, server)
    with pytest.raises(SaslError):
        server.answer(client.first())
    with pytest.raises(SaslError):
        client.answer(b"v=" + b64encode(bytes(32)))


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (b"r=other,s=c2FsdA==,i=4096", "another exchange"),
        (b"r=c,s=c2FsdA==,i=4096", "another exchange"),
        (b"r=cs,s=c2FsdA==,i=4095", "iterations"),
        (b"r=cs,s=c2FsdA==,i=1", "iterations"),
        (b"r=cs,s=c2FsdA==,i=1000001", "iterations"),
        (b"r=cs,s=c2FsdA==,i=99999999999999999999", "iterations"),
        (b"r=cs,s=c2FsdA==,i=-4096", "iterations"),
        (b"r=cs,s=???,i=4096", "base64"),
        (b"m=x,r=cs,s=c2FsdA==,i=4096", "lacks"),
        (b"r=cs,s=c2FsdA==,i=4096,m=x", "extension"),
        (b"", "lacks"),
    ],
)
def test_a_client_does_not_follow_a_broker_that_weakens_the_exchange(said: bytes, complaint: str) -> None:
    with pytest.raises(SaslError, match=complaint):
        ScramClient(SHA_256, "user", "pencil", "c").answer(said)


@pytest.mark.parametrize("said", [b"v=" + b64encode(bytes(32)), b"v=", b"e=other-error", b"", b"ok"])
def test_a_client_does_not_take_a_broker_that_cannot_prove_that_it_knows_the_password(said: bytes) -> None:
    client, server = ScramClient(SHA_256, "user", "pencil", "c"), server_of(kept())
    final = client.answer(server.answer(client.first()))
    assert final is not None
    with pytest.raises(SaslError):
        client.answer(said)


def test_credentials_and_clients_do_not_show_their_secrets() -> None:
    client = ScramClient(SHA_256, "user", "pencil", "c")
    credential = kept()
    for shown in (repr(client), repr(credential), str(credential)):
        assert "pencil" not in shown
        assert "stored" not in shown
        assert repr(credential.stored_key) not in shown
