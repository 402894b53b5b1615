"""What must not be seen from outside of the door, and some ways to come in that must not work."""

import asyncio
import json
import logging
import time
import traceback
import urllib.request
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm
from typer.testing import CliRunner

from ottla.cli.main import app
from ottla.client.admin import (
    ConfigResource,
    ConfigResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from ottla.client.java_security import java_security
from ottla.client.oauth import ClientCredentials
from ottla.config.broker import BrokerConfig
from ottla.errors import KafkaError
from ottla.metrics.logs import JsonFormatter
from ottla.net.sasl.scram import keyed, make_credential, salted_password
from ottla.net.sasl.scram_client import ScramClient
from ottla.net.security import Security
from ottla.sync import Admin
from ottla.testing import TestBroker
from ottla.wire.api.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.wire.api.metadata import MetadataRequest
from ottla.wire.api.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.errors import ErrorCode
from tests.broker.sasl_client import ClosedError, SaslClient
from tests.certificates import Authority, Identity, written

PASSWORD, CAROLS, WRONG, NEXT = (f"{word}-4711-secret" for word in ("wonder", "jabberwock", "hunter", "vorpal"))
KEY_PASSWORD, CLIENT_SECRET, TYPED = (f"{word}-0815-secret" for word in ("cheshire", "queen", "typed-as-name"))
KEY, OTHER_KEY = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
SALT = b"pepper-and-salt!"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED


def token(key: ec.EllipticCurvePrivateKey = KEY, user: str = "alice", seconds: int = 300) -> str:
    now = int(time.time())
    return jwt.encode({"sub": user, "iat": now - 60, "exp": now + seconds}, key, "ES256", {"kid": "one"})


class House(NamedTuple):
    """A broker with a door of every kind."""

    broker: TestBroker
    settings: dict[str, str]
    identity: Identity
    ca: str

    def address(self, listener: str = "SASL_PLAINTEXT") -> str:
        return str(self.broker.endpoints[listener])

    def client(self) -> SaslClient:
        where = self.broker.endpoints["SASL_PLAINTEXT"]
        return SaslClient((where.host, where.port))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder, authority = tmp_path_factory.mktemp("door"), Authority()
    identity = authority.issue("localhost")
    keys = {"keys": [{**json.loads(ECAlgorithm.to_jwk(KEY.public_key())), "kid": "one"}]}
    names = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL")
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_carol="{CAROLS}";'
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in names),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": Path(written(folder, "keys", json.dumps(keys).encode())).as_uri(),
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
        "connection.failed.authentication.delay.ms": "1",
        "connections.max.reauth.ms": "60000",
        "ssl.keystore.certificate.chain": identity.chain.decode(),
        "ssl.keystore.key": identity.encrypted_key(KEY_PASSWORD).decode(),
        "ssl.key.password": KEY_PASSWORD,
        "ottla.metrics.listen": "127.0.0.1:0",
    }
    with TestBroker(settings) as broker:
        yield House(broker, settings, identity, written(folder, "ca.pem", authority.pem))


def add_users(house: House) -> None:
    with Admin(house.address("PLAINTEXT")) as admin:
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion(user, one, PASSWORD if user == "alice" else NEXT, salt=SALT)
                for user in ("alice", "bob")
                for one in ScramMechanism
            ]
        )


# Secrets.


def secrets(house: House, tokens: list[str]) -> list[str]:
    """All that nobody may see, in every form in which it might be shown."""
    found = [PASSWORD, CAROLS, WRONG, NEXT, KEY_PASSWORD, CLIENT_SECRET, TYPED, *tokens]
    found += [one.rpartition(".")[2] for one in tokens]
    found += house.settings["ssl.keystore.key"].splitlines()[1:-1] + house.identity.key.decode().splitlines()[1:-1]
    for mechanism in ScramMechanism:
        salted = salted_password(mechanism, PASSWORD, SALT, 4096)
        kept = make_credential(mechanism, PASSWORD, SALT, 4096)
        for raw in (salted, kept.stored_key, kept.server_key, keyed(mechanism, salted, b"Client Key")):
            found += [b64encode(raw).decode(), raw.hex(), repr(raw)[2:-1]]
    return found


class Everything(logging.Handler):
    """All that is logged by anybody, in both forms of the log and with all that comes with it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self._forms = (logging.Formatter(), JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += [repr(vars(record)), *(form.format(record) for form in self._forms)]


def failure(action: Callable[[], object]) -> list[str]:
    """What an action says that has to fail."""
    with pytest.raises((KafkaError, ValueError, TypeError)) as caught:
        action()
    error = caught.value
    return [str(error), repr(error), "".join(traceback.format_exception(error))]


def options(house: House, mechanism: str, **others: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        given = others.pop("token", None) or token()
        found["sasl_oauth_token_provider"] = lambda: given
    else:
        found |= {"sasl_plain_username": "alice", "sasl_plain_password": PASSWORD}
    return {**found, **{name: value for name, value in others.items() if name != "token"}}


def log_in(house: House, listener: str = "SASL_PLAINTEXT", **security: Any) -> None:
    with Admin(house.address(listener), **security) as admin:
        admin.list_topics()


def logins(house: House, bad_token: str) -> list[str]:
    """Logins in every way, right and wrong; what was said of it to those who tried."""
    said: list[str] = []
    for mechanism in MECHANISMS:
        log_in(house, **options(house, mechanism))
        log_in(house, "SASL_SSL", **options(house, mechanism, security_protocol="SASL_SSL", ssl_cafile=house.ca))
        wrong = {"token": bad_token} if mechanism == "OAUTHBEARER" else {"sasl_plain_password": WRONG}
        said += failure(lambda: log_in(house, **options(house, mechanism, **wrong)))  # noqa: B023
        if mechanism != "OAUTHBEARER":
            unknown = options(house, mechanism, sasl_plain_username=TYPED)
            said += failure(lambda: log_in(house, **unknown))  # noqa: B023
    log_in(house, **options(house, "PLAIN", sasl_plain_username="carol", sasl_plain_password=CAROLS))
    for message in (f"{TYPED}\0alice\0{PASSWORD}", f"\0{PASSWORD}", f"\0\0{PASSWORD}", f"\0{TYPED}\0{PASSWORD}\0x"):
        with house.client() as client:
            client.handshake("PLAIN")
            said.append(repr(client.authenticate(message.encode())))
    for message in (f"n,,\1auth=Bearer {bad_token[:-40]}\1\1", f"n,a=bob,\1auth=Bearer {token()}\1\1", f"{TYPED}\1"):
        with house.client() as client:
            client.handshake("OAUTHBEARER")
            said.append(repr(client.authenticate(message.encode())))
    with house.client() as client:
        said.append(repr(client.handshake("GSSAPI")))
    with house.client() as client:
        client.handshake("SCRAM-SHA-256")
        # In the middle of a login, and bytes that are no request: the password is in the frame.
        client.send_frame(b"\0\x03" + PASSWORD.encode())
        assert client.is_closed()
    with house.client() as client:
        client.send_frame(f"\0alice\0{PASSWORD}".encode())
        assert client.is_closed()
    return said


def changes(house: House) -> list[str]:
    """Users and settings altered, well and badly; what was said of it."""
    said: list[str] = []
    salted = salted_password(ScramMechanism.SCRAM_SHA_256, PASSWORD, SALT, 4096)
    with Admin(house.address("PLAINTEXT")) as admin:
        said.append(repr(admin.describe_user_scram_credentials()))
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("dave", "SCRAM-SHA-256", NEXT)])
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("dave", "SCRAM-SHA-256")])
        said += failure(
            lambda: admin.alter_user_scram_credentials([UserScramCredentialUpsertion("", "SCRAM-SHA-256", NEXT)])
        )
        said += failure(
            lambda: admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion("dave", "SCRAM-SHA-256", NEXT, iterations=1)]
            )
        )
        broker = ConfigResource(ConfigResourceType.BROKER, "1")
        said.append(repr(admin.describe_configs([broker], include_synonyms=True)))
        for name, value in (
            ("ssl.key.password", WRONG),
            ("ssl.keystore.key", house.identity.key.decode()[:100] + WRONG),
            ("no.such.config", WRONG),
        ):
            resource = ConfigResource(ConfigResourceType.BROKER, "1", {name: value})
            if name != "no.such.config":
                said += failure(lambda: admin.alter_configs([resource]))  # noqa: B023
    with SaslClient((house.broker.host, house.broker.port)) as client:
        for iterations, size in ((1, 32), (4096, 5), (1 << 30, 32)):
            change = ScramCredentialUpsertion(
                name="eve", mechanism=1, iterations=iterations, salt=SALT, salted_password=salted[:size]
            )
            request = AlterUserScramCredentialsRequest(upsertions=[change])
            said.append(repr(client.call(request, 0)))
    return said


def shown(house: House) -> list[str]:
    """What is shown of things that hold secrets."""
    store = house.identity.key.decode()
    jaas = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="{PASSWORD}";'
    java = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas}
    things: list[Any] = [
        Security(
            **options(house, "PLAIN", security_protocol="SASL_SSL"),
            ssl_keyfile=store,
            ssl_password=KEY_PASSWORD,
            ssl_certfile=store,
        ),
        java_security({**java, "ssl.key.password": KEY_PASSWORD}),
        ClientCredentials(token_endpoint_url="http://localhost/token", client_id="client", client_secret=CLIENT_SECRET),
        UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", PASSWORD),
        make_credential(ScramMechanism.SCRAM_SHA_256, PASSWORD, SALT, 4096),
        BrokerConfig(house.settings),
    ]
    said = failure(lambda: java_security({**java, "sasl.jaas.config": jaas.replace("required", "")}))
    said += failure(lambda: Security(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_plain_password=WRONG))
    for name, value in (("ssl.keystore.key", WRONG), ("ssl.key.password", WRONG)):
        said += failure(lambda: _start({**house.settings, name: value}))  # noqa: B023
    return [text for thing in things for text in (repr(thing), str(thing))] + said


def _start(settings: dict[str, str]) -> None:
    with TestBroker(settings):
        pass


def commands(house: House) -> list[str]:
    """What commands print."""
    common = ["-b", house.address(), "--security-protocol", "SASL_PLAINTEXT", "--username", "alice"]
    said = []
    for arguments, password in (
        (["topic", "list", *common], WRONG),
        (["user", "list", *common, "--json"], PASSWORD),
        (["user", "add", "frank", "-b", house.address("PLAINTEXT")], NEXT),
        (["user", "delete", "frank", "-b", house.address("PLAINTEXT")], NEXT),
        (["user", "add", "frank", "-b", "localhost:1", "--timeout-ms", "200"], NEXT),
        (["config", "describe", "--broker", "1", "-b", house.address("PLAINTEXT")], ""),
    ):
        done = CliRunner().invoke(app, arguments, env={"OTTLA_PASSWORD": password} if password else None)
        said += [done.output, str(done.exception)]
    assert "frank" in "".join(said)
    return said


def test_no_secret_is_seen_whatever_goes_right_or_wrong(house: House) -> None:
    everything, root = Everything(), logging.getLogger()
    level = root.level
    root.addHandler(everything)
    root.setLevel(logging.DEBUG)
    bad_token = token(OTHER_KEY)
    try:
        add_users(house)
        said = logins(house, bad_token) + changes(house) + shown(house) + commands(house)
        with urllib.request.urlopen(f"http://{house.broker.metrics_address}/metrics", timeout=10) as page:
            metrics = page.read().decode()
    finally:
        root.removeHandler(everything)
        root.setLevel(level)
    log = "\n".join(everything.lines)
    # Each of the places was really looked at.
    assert "a login from" in log
    assert "AlterUserScramCredentials" in log
    assert 'event="authentication_failed"' in metrics
    hidden = secrets(house, [bad_token])
    assert len(hidden) > 30
    # A client may be told what it took for its name.
    said = [text.replace(TYPED, "") for text in said]
    seen = {
        place: [text for text in texts if any(secret in text for secret in hidden)]
        for place, texts in (("log", everything.lines), ("metrics", [metrics]), ("what was said", said))
    }
    assert seen == {"log": [], "metrics": [], "what was said": []}


def test_no_password_and_no_token_is_written_to_the_disk(house: House) -> None:
    add_users(house)
    given = token()
    log_in(house, **options(house, "OAUTHBEARER", token=given))
    log_in(house, **options(house, "PLAIN"))
    files = [path for path in Path(house.broker.folder).rglob("*") if path.is_file()]
    data = b"".join(path.read_bytes() for path in files)
    assert b"alice" in data
    for secret in (PASSWORD, NEXT, CAROLS, given, given.rpartition(".")[2]):
        assert secret.encode() not in data


# Ways in.


@pytest.fixture
def users(house: House) -> House:
    add_users(house)
    return house


def is_outside(client: SaslClient) -> bool:
    """Whether a client is not served, but closed."""
    try:
        client.call(MetadataRequest(topics=None), 12)
    except (ClosedError, ConnectionError):
        return True
    return False


def test_a_broker_does_not_take_its_own_words_for_a_login(users: House) -> None:
    """What a broker says in one exchange is no proof in another: reflection."""
    mechanism = ScramMechanism.SCRAM_SHA_256
    with users.client() as one, users.client() as other:
        one.handshake("SCRAM-SHA-256")
        mine = ScramClient(mechanism, "bob", NEXT, "nonce")
        last = one.authenticate(mine.answer(one.authenticate(mine.first()).auth_bytes) or b"")
        signature = last.auth_bytes.removeprefix(b"v=")
        other.handshake("SCRAM-SHA-256")
        challenge = other.authenticate(b"n,,n=bob,r=nonce").auth_bytes
        nonce = bytes(challenge).partition(b",")[0]
        assert other.authenticate(b"c=biws," + nonce + b",p=" + signature).error_code == FAILED


@pytest.mark.parametrize("mechanism", [one.text for one in ScramMechanism])
def test_what_is_kept_of_a_password_does_not_open_the_door(users: House, mechanism: str) -> None:
    """Somebody who stole the stored key cannot make a proof of it."""
    scram = ScramMechanism.named(mechanism)
    assert scram is not None
    kept = make_credential(scram, PASSWORD, SALT, 4096)
    for stolen in (kept.stored_key, kept.server_key):
        with users.client() as client:
            client.handshake(mechanism)
            bare = "n=alice,r=nonce"
            challenge = bytes(client.authenticate(f"n,,{bare}".encode()).auth_bytes).decode()
            without_proof = f"c=biws,{challenge.partition(',')[0]}"
            signature = keyed(scram, kept.stored_key, f"{bare},{challenge},{without_proof}".encode())
            proof = b64encode(bytes(a ^ b for a, b in zip(stolen, signature, strict=True))).decode()
            assert client.authenticate(f"{without_proof},p={proof}".encode()).error_code == FAILED
            assert client.is_closed()


def test_the_exchange_of_one_mechanism_does_not_end_in_another(users: House) -> None:
    with users.client() as client:
        client.handshake("SCRAM-SHA-512")
        mine = ScramClient(ScramMechanism.SCRAM_SHA_512, "alice", PASSWORD, "nonce")
        final = mine.answer(client.authenticate(mine.first()).auth_bytes)
        client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + PASSWORD.encode()), 2)
        client.send(SaslAuthenticateRequest(auth_bytes=final or b""), 2)
        first = client.frame()
        assert FAILED.to_bytes(2, "big") in first
        assert client.is_closed()


def test_every_cut_of_a_login_leaves_the_client_outside(users: House) -> None:
    """Whatever is missing at the end, what follows is not answered."""
    messages = {
        "PLAIN": f"\0alice\0{PASSWORD}".encode(),
        "OAUTHBEARER": f"n,,\1auth=Bearer {token()}\1\1".encode(),
    }
    for mechanism, message in messages.items():
        for end in range(len(message)):
            with users.client() as client:
                client.handshake(mechanism)
                answer = client.authenticate(message[:end])
                assert answer.error_code == FAILED or answer.auth_bytes, f"{mechanism}, {end} bytes"
                assert is_outside(client)


@pytest.mark.parametrize("mechanism", list(ScramMechanism), ids=lambda mechanism: mechanism.text)
def test_every_cut_of_a_login_with_scram_leaves_the_client_outside(users: House, mechanism: ScramMechanism) -> None:
    """The last message too: a proof that lacks its end is none. A first message may be one of a shorter nonce."""

    def begun(client: SaslClient) -> bytes:
        client.handshake(mechanism.text)
        mine = ScramClient(mechanism, "alice", PASSWORD, "nonce")
        final = mine.answer(client.authenticate(mine.first()).auth_bytes)
        assert final is not None
        return final

    first = ScramClient(mechanism, "alice", PASSWORD, "nonce").first()
    for end in range(len(first)):
        with users.client() as client:
            client.handshake(mechanism.text)
            answer = client.authenticate(first[:end])
            assert answer.error_code == FAILED or answer.auth_bytes.startswith(b"r="), f"{end} bytes"
            assert is_outside(client)
    with users.client() as client:
        whole = begun(client)
        assert client.authenticate(whole).error_code == 0
    for end in range(len(whole)):
        with users.client() as client:
            assert client.authenticate(begun(client)[:end]).error_code == FAILED, f"{end} bytes"
            assert is_outside(client)


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ("PLAIN", f"bob\0alice\0{PASSWORD}"),
        ("PLAIN", f"alice\0bob\0{PASSWORD}"),
        ("PLAIN", f"\0alice\0{NEXT}"),
        ("PLAIN", f"\0ALICE\0{PASSWORD}"),
        ("PLAIN", f"\0alice \0{PASSWORD}"),
        ("PLAIN", f"\0alice\0{CAROLS}"),
        ("PLAIN", f"\0carol\0{PASSWORD}"),
        ("OAUTHBEARER", "n,a=bob,\1auth=Bearer {token}\1\1"),
        ("OAUTHBEARER", "n,a=bob,\1auth=Bearer {token}\1auth=Bearer {token}\1\1"),
    ],
)
def test_nobody_comes_in_as_somebody_else(users: House, mechanism: str, message: str) -> None:
    with users.client() as client:
        client.handshake(mechanism)
        answer = client.authenticate(message.replace("{token}", token()).encode())
        assert answer.error_code == FAILED or b"invalid" in bytes(answer.auth_bytes)
        assert is_outside(client)


def test_a_token_is_good_for_nobody_after_its_end_and_for_no_other_key(users: House) -> None:
    now = int(time.time())
    claims = {"sub": "alice", "iat": now - 60, "exp": now + 300}
    public = KEY.public_key()
    point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    bad = {
        "expired": token(seconds=-40),
        "another key": token(OTHER_KEY),
        "nobody's": jwt.encode(claims, "", "none", {"kid": "one"}),
        # The oldest trick: the public key, taken for a shared secret.
        "the public key as a secret": jwt.encode(claims, point, "HS256", {"kid": "one"}),
        "no end": jwt.encode({"sub": "alice", "iat": now}, KEY, "ES256", {"kid": "one"}),
        "nobody": jwt.encode({**claims, "sub": ""}, KEY, "ES256", {"kid": "one"}),
        "its own key": jwt.encode(
            claims, OTHER_KEY, "ES256", {"kid": "one", "jwk": json.loads(ECAlgorithm.to_jwk(OTHER_KEY.public_key()))}
        ),
        "a key from elsewhere": jwt.encode(claims, OTHER_KEY, "ES256", {"kid": "two", "jku": "http://localhost:1/"}),
    }
    for what, one in bad.items():
        with users.client() as client:
            client.handshake("OAUTHBEARER")
            refusal = client.authenticate(f"n,,\1auth=Bearer {one}\1\1".encode())
            assert refusal.auth_bytes == b'{"status":"invalid_token"}', what
            assert client.authenticate(b"\1").error_code == FAILED, what
            assert client.is_closed()


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 20_000 + b"]" * 20_000,
        b'{"alg":' * 6_000,
        b'{"alg":' + b"9" * 40_000 + b"}",
        b'{"alg":"ES256","kid":["one"]}',
        b'{"alg":["ES256"],"kid":"one"}',
        b'{"alg":"ES256","kid":"\\ud800"}',
        b'{"alg":"ES256","kid":"one","b64":false,"crit":["b64"]}',
        b'{"alg":"ES256","kid":"one"}'.replace(b'"', b'\0"'),
        b"[]",
        b"\0",
    ],
    ids=lambda header: repr(header[:30]),
)
def test_a_token_made_to_break_its_reader_is_refused_as_any_other(
    users: House, header: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    made = ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in (header, b"{}", b"x" * 64))
    with users.client() as client:
        client.handshake("OAUTHBEARER")
        refusal = client.authenticate(f"n,,\1auth=Bearer {made}\1\1".encode())
        assert refusal.auth_bytes == b'{"status":"invalid_token"}'
        assert client.authenticate(b"\1").error_code == FAILED
        assert client.is_closed()
    assert [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR] == []


def test_a_stranger_cannot_talk_a_client_down_to_a_weaker_mechanism(users: House) -> None:
    """Where somebody on the way offers nothing but PLAIN, a client that was told to use SCRAM sends no password."""
    heard: list[bytes] = []
    visits: list[asyncio.Task[None]] = []

    async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await asyncio.open_connection(users.broker.host, users.broker.ports["SASL_PLAINTEXT"])

        async def forth() -> None:
            while data := await reader.read(65536):
                heard.append(data)
                upstream[1].write(data)
            upstream[1].close()

        async def back() -> None:
            while data := await upstream[0].read(65536):
                if b"SCRAM-SHA-256" in data:
                    # UNSUPPORTED_SASL_MECHANISM, and one mechanism.
                    answer = data[4:8] + b"\0\x21" + b"\0\0\0\1" + b"\0\5PLAIN"
                    data = len(answer).to_bytes(4, "big") + answer
                writer.write(data)
            writer.close()

        await asyncio.gather(forth(), back())
        await asyncio.gather(writer.wait_closed(), upstream[1].wait_closed(), return_exceptions=True)

    async def story() -> list[str]:
        def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            visits.append(asyncio.ensure_future(between(reader, writer)))

        server = await asyncio.start_server(visited, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        said = await asyncio.to_thread(failure, lambda: _log_in_at(f"127.0.0.1:{port}"))
        server.close()
        await asyncio.gather(*visits)
        return said

    said = asyncio.run(story())
    assert "PLAIN" in said[0]
    assert heard
    assert not [data for data in heard if PASSWORD.encode() in data]


def _log_in_at(address: str) -> None:
    security: dict[str, Any] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }
    with Admin(address, request_timeout_ms=5_000, **security) as admin:
        admin.list_topics()
