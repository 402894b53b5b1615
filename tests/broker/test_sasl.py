"""Logins message by message: what is answered before, during and after one, and what closes the connection."""

import asyncio
import logging
import struct
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.apis import SERVED, served_versions
from ottla.broker.turns import MOST_WAITING
from ottla.client.admin import (
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    QuotaDefault,
    UserScramCredentialUpsertion,
)
from ottla.cluster.credential import ScramCredential, ScramMechanism
from ottla.net.sasl.scram import matches
from ottla.net.sasl.scram_client import ScramClient
from ottla.net.telling import MOST_TOLD
from ottla.sync import Admin
from ottla.testing import TestBroker
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.api.metadata import MetadataRequest
from ottla.wire.api.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.api.sasl_handshake import SaslHandshakeRequest
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.frame import decode_response, encode_request
from tests.broker.hostile_client import HostileClient
from tests.broker.sasl_client import TIMEOUT_S, ClosedError, SaslClient

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
PASSWORD = "wonder-4711"
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_carol="carols-password";'
    ),
    "connection.failed.authentication.delay.ms": "20",
}


def started(**settings: str) -> TestBroker:
    broker = TestBroker({**SETTINGS, **{name.replace("_", "."): value for name, value in settings.items()}}).start()
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion(user, mechanism, PASSWORD + user)
                for user in ("alice", "bob")
                for mechanism in ScramMechanism
            ]
        )
    return broker


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    """A broker with users alice and bob, whose passwords end with their names."""
    found = started()
    yield found
    found.close()


@pytest.fixture
def client(broker: TestBroker) -> Iterator[SaslClient]:
    with connected(broker) as found:
        yield found


def connected(broker: TestBroker, source: str | None = None) -> SaslClient:
    where = broker.endpoints["SASL_PLAINTEXT"]
    return SaslClient((where.host, where.port), source)


def all_requests() -> Iterator[tuple[int, int]]:
    """All keys and versions there are, and some that there are not."""
    for key in range(-1, 100):
        last = max(served_versions(key).last, 0) if key in SERVED else 3
        for version in range(-1, last + 3):
            yield key, version


def test_no_api_is_reached_before_a_login(broker: TestBroker) -> None:
    """Each key and version in a connection of its own, as the first request and after ApiVersions."""
    answered = set()

    def attempt(place: tuple[int, int], after_versions: bool) -> None:
        key, version = place
        with connected(broker) as one:
            if after_versions:
                assert one.call(ApiVersionsRequest(), 0).error_code == 0
            # A header of either kind, and zeros, which are empty values in most requests.
            one.send_frame(struct.pack(">hhih", key, version, 7, -1) + bytes(40))
            try:
                one.frame()
            except ClosedError:
                return
            answered.add(key)

    with ThreadPoolExecutor(8) as pool:
        for after_versions in (False, True):
            for _ in pool.map(attempt, list(all_requests()), [after_versions] * len(list(all_requests()))):
                pass
    assert answered == {API_VERSIONS, SASL_HANDSHAKE}


def test_no_api_is_reached_in_the_middle_of_a_login(broker: TestBroker) -> None:
    """What is answered says that it is not possible now, and the connection closes."""

    def attempt(place: tuple[int, int]) -> None:
        key, version = place
        with connected(broker) as one:
            assert one.handshake("SCRAM-SHA-256").error_code == 0
            one.send_frame(struct.pack(">hhih", key, version, 7, -1) + bytes(40))
            try:
                answer = one.frame()
            except ClosedError:
                return
            if key == SASL_AUTHENTICATE:
                assert one.is_closed()
                return
            assert key in SERVED
            assert version in served_versions(key)
            # Whatever it is, there is nothing in it but the error.
            assert len(answer) <= 60
            assert one.is_closed()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(attempt, list(all_requests())))


def test_a_request_in_the_middle_of_a_login_is_told_that_it_is_out_of_place(client: SaslClient) -> None:
    client.handshake("PLAIN")
    assert client.call(ListGroupsRequest(), 4).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.is_closed()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_after_a_login_everything_is_open(client: SaslClient, mechanism: str) -> None:
    assert client.call(ApiVersionsRequest(), 0).error_code == 0
    answer = (
        client.plain("alice", PASSWORD + "alice")
        if mechanism == "PLAIN"
        else client.scram("alice", PASSWORD + "alice", mechanism)
    )
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
    assert client.call(MetadataRequest(topics=[]), 12).brokers
    # A second login right away is refused, and does no harm.
    assert client.authenticate(b"").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.handshake(mechanism).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.call(MetadataRequest(topics=[]), 12).brokers


def test_passwords_of_the_settings_count_for_plain(client: SaslClient) -> None:
    assert client.plain("carol", "carols-password").error_code == 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_all_versions_of_the_messages_are_answered(client: SaslClient, version: int) -> None:
    assert client.plain("alice", PASSWORD + "alice", version).error_code == 0


def test_a_mechanism_that_is_not_on_offer_is_refused_with_those_that_are(client: SaslClient) -> None:
    answer = client.handshake("GSSAPI")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert client.is_closed()


@pytest.mark.parametrize(
    "token", [b"", b"\0", b"\0alice", b"\0alice\0", b"root\0alice\0" + PASSWORD.encode(), b"\xff\xff"]
)
def test_what_makes_no_sense_is_a_failed_login(client: SaslClient, token: bytes) -> None:
    client.handshake("PLAIN")
    assert client.authenticate(token).error_code == FAILED
    assert client.is_closed()


def test_bare_messages_follow_the_first_version_of_the_handshake(client: SaslClient) -> None:
    assert client.handshake("SCRAM-SHA-512", version=0).error_code == 0
    mine = ScramClient(ScramMechanism.SCRAM_SHA_512, "bob", PASSWORD + "bob", "n")
    client.send_frame(mine.first())
    final = mine.answer(client.frame())
    assert final is not None
    client.send_frame(final)
    assert mine.answer(client.frame()) is None
    assert client.call(MetadataRequest(topics=[]), 1).brokers


def test_bare_messages_that_fail_get_no_answer(client: SaslClient) -> None:
    assert client.handshake("PLAIN", version=0).error_code == 0
    client.send_frame(b"\0bob\0wrong")
    assert client.is_closed()


def test_an_unknown_user_and_a_wrong_password_are_told_alike(broker: TestBroker) -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        answers: list[tuple[Any, ...]] = []
        for user in ("alice", "nobody"):
            with connected(broker) as one:
                if mechanism == "PLAIN":
                    answer = one.plain(user, "wrong")
                else:
                    one.handshake(mechanism)
                    first = one.authenticate(f"n,,n={user},r=n".encode())
                    assert first.error_code == 0
                    nonce, salt, iterations = first.auth_bytes.split(b",")
                    size = 32 if mechanism == "SCRAM-SHA-256" else 64
                    answer = one.authenticate(b"c=biws,%b,p=%b" % (nonce, b64encode(bytes(size))))
                    answers.append((len(salt), iterations, b""))
                assert one.is_closed()
                answers.append((answer.error_code, answer.error_message, answer.auth_bytes))
        assert answers[: len(answers) // 2] == answers[len(answers) // 2 :]


def test_a_salt_does_not_change_from_one_attempt_to_the_next(broker: TestBroker) -> None:
    for user in ("alice", "nobody"):
        salts = set()
        for _ in range(2):
            with connected(broker) as one:
                one.handshake("SCRAM-SHA-256")
                salts.add(one.authenticate(f"n,,n={user},r=n".encode()).auth_bytes.split(b",")[1])
        assert len(salts) == 1


def test_a_recorded_login_cannot_be_played_again(broker: TestBroker) -> None:
    mine = ScramClient(ScramMechanism.SCRAM_SHA_256, "alice", PASSWORD + "alice", "n")
    with connected(broker) as one:
        one.handshake("SCRAM-SHA-256")
        final = mine.answer(one.authenticate(mine.first()).auth_bytes)
        assert final is not None
        assert one.authenticate(final).error_code == 0
    with connected(broker) as other:
        other.handshake("SCRAM-SHA-256")
        assert other.authenticate(mine.first()).error_code == 0
        assert other.authenticate(final).error_code == FAILED
        assert other.is_closed()


def test_a_login_cannot_be_begun_as_one_and_ended_as_another(broker: TestBroker) -> None:
    alice = ScramClient(ScramMechanism.SCRAM_SHA_256, "alice", PASSWORD + "alice", "n")
    with connected(broker) as one:
        one.handshake("SCRAM-SHA-256")
        final = alice.answer(one.authenticate(b"n,,n=bob,r=n").auth_bytes)
        assert final is not None
        assert one.authenticate(final).error_code == FAILED


def test_a_login_cannot_go_on_in_a_weaker_mechanism(client: SaslClient) -> None:
    client.handshake("SCRAM-SHA-512")
    client.authenticate(b"n,,n=alice,r=n")
    assert client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.is_closed()


def test_a_login_is_over_after_one_failure_whatever_was_sent_along(client: SaslClient) -> None:
    client.handshake("PLAIN")
    client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    client.send(SaslAuthenticateRequest(auth_bytes=f"\0alice\0{PASSWORD}alice".encode()), 2)
    client.send(MetadataRequest(topics=[]), 12)
    client.frame()
    assert client.is_closed()


def test_a_stranger_cannot_have_the_broker_keep_much(client: SaslClient) -> None:
    client.socket.sendall(struct.pack(">i", 600_000))
    assert client.is_closed()


def test_structured_logs_have_what_a_stranger_calls_itself(
    client: SaslClient, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.call(ApiVersionsRequest(), 0).error_code == 0
    client.socket.sendall(struct.pack(">i", -1))
    assert client.is_closed()
    (told,) = [record for record in caplog.records if "closing the connection" in record.getMessage()]
    assert (vars(told)["client_id"], vars(told)["principal"]) == ("raw", "User:ANONYMOUS")


def test_a_listener_may_take_less_of_strangers() -> None:
    settings = {**SETTINGS, "listener.name.sasl_plaintext.sasl.server.max.receive.size": "100"}
    with TestBroker(settings) as broker, connected(broker) as one:
        assert one.handshake("PLAIN").error_code == 0
        one.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + b"x" * 100), 2)
        assert one.is_closed()


def test_who_has_logged_in_may_send_more(client: SaslClient) -> None:
    client.plain("alice", PASSWORD + "alice")
    assert client.call(ListGroupsRequest(states_filter=["x" * 30_000] * 30), 4).error_code == 0


def test_a_thousand_bad_logins_leave_others_undisturbed() -> None:
    broker = started(connection_failed_authentication_delay_ms="100")
    where = broker.endpoints["SASL_PLAINTEXT"]
    handshake, login = (
        b"".join(encode_request(request, version, correlation_id=1, client_id="guess"))
        for request, version in (
            (SaslHandshakeRequest(mechanism="PLAIN"), 1),
            (SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess"), 1),
        )
    )
    failed = 0

    async def guess(turn: asyncio.Semaphore) -> None:
        nonlocal failed
        async with turn:
            reader, writer = await asyncio.open_connection(where.host, where.port)
            writer.write(handshake + login)
            data = await reader.read()
            assert struct.pack(">h", FAILED) in data
            failed += 1
            writer.close()
            await writer.wait_closed()

    async def attack() -> None:
        turn = asyncio.Semaphore(200)
        await asyncio.gather(*[guess(turn) for _ in range(1000)])

    slowest_s, calls = 0.0, 0
    with connected(broker) as other, ThreadPoolExecutor(1) as pool:
        other.plain("bob", PASSWORD + "bob")
        attacked = pool.submit(asyncio.run, attack())
        while not attacked.done():
            began = time.monotonic()
            assert other.call(MetadataRequest(topics=[]), 12).brokers
            slowest_s, calls = max(slowest_s, time.monotonic() - began), calls + 1
        attacked.result()
        assert failed == 1000
        # They share one process and its interpreter's lock here, so it is not as fast as it could be.
        assert calls > 100
        assert slowest_s < 1
    broker.close()


def test_whoever_leaves_before_his_password_is_checked_gives_up_his_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or strangers could fill the line, without even staying connected, and nobody else would get in for a while."""
    go_on = threading.Event()
    checked: list[str] = []

    def slow(credential: ScramCredential, password: str) -> bool:
        assert go_on.wait(TIMEOUT_S)
        checked.append(password)
        return matches(credential, password)

    monkeypatch.setattr("ottla.broker.users.matches", slow)
    with closing(started()) as broker, connected(broker) as honest:
        with ExitStack() as strangers:
            for number in range(50):
                stranger = strangers.enter_context(connected(broker))
                stranger.handshake("PLAIN")
                stranger.send(SaslAuthenticateRequest(auth_bytes=f"\0alice\0guess {number}".encode()), 2)
        # What is sent later is answered later, so by now all of them are known to have left.
        with connected(broker) as last:
            assert last.call(ApiVersionsRequest(), 0).error_code == 0
        go_on.set()
        assert honest.plain("alice", PASSWORD + "alice").error_code == 0
    assert len(checked) <= 3


@pytest.mark.skipif(sys.platform != "linux", reason="only one address of loopback is there")
def test_a_crowd_that_guesses_is_not_waited_for_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even by somebody who logs in for the first time, by PLAIN too, from another address."""
    turn = threading.Semaphore(0)
    checked: list[str] = []

    def slow(credential: ScramCredential, password: str) -> bool:
        assert turn.acquire(timeout=TIMEOUT_S)
        checked.append(password)
        return matches(credential, password)

    monkeypatch.setattr("ottla.broker.users.matches", slow)
    with closing(started()) as broker, ExitStack() as strangers, connected(broker, "127.0.0.9") as honest:
        crowd = [strangers.enter_context(connected(broker)) for _ in range(50)]
        for stranger in crowd:
            stranger.handshake("PLAIN")
            stranger.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess"), 2)
        assert honest.handshake("PLAIN").error_code == 0
        honest.send(SaslAuthenticateRequest(auth_bytes=f"\0alice\0{PASSWORD}alice".encode()), 2)
        # What is sent later is answered later, so by now all of them stand in line.
        with connected(broker) as last:
            assert last.call(ApiVersionsRequest(), 0).error_code == 0
        # One that was being checked, one that is next, and then it is the other address's turn.
        turn.release(3)
        assert decode_response(SaslAuthenticateResponse, 2, honest.frame())[1].error_code == 0
        assert len(checked) == 3
        turn.release(len(crowd))
        for stranger in crowd:
            assert decode_response(SaslAuthenticateResponse, 2, stranger.frame())[1].error_code == FAILED


@pytest.mark.parametrize("version", [0, 1])
def test_one_too_many_in_the_line_is_closed_without_an_answer(
    version: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing was checked, so there is nothing to answer; and clients come again only after a disconnect."""
    go_on = threading.Event()

    def slow(credential: ScramCredential, password: str) -> bool:
        assert go_on.wait(TIMEOUT_S)
        return matches(credential, password)

    monkeypatch.setattr("ottla.broker.users.matches", slow)
    login = f"\0alice\0{PASSWORD}alice".encode()
    with closing(started()) as broker, ExitStack() as clients:
        crowd = [clients.enter_context(connected(broker)) for _ in range(MOST_WAITING + 1)]
        for one in crowd:
            one.handshake("PLAIN")
            one.send(SaslAuthenticateRequest(auth_bytes=login), 2)
        with connected(broker) as last:
            # What is sent later is answered later, so by now all of them stand in line.
            assert last.call(ApiVersionsRequest(), 0).error_code == 0
            last.handshake("PLAIN", version)
            if version:
                last.send(SaslAuthenticateRequest(auth_bytes=login), 2)
            else:
                last.send_frame(login)
            assert last.is_closed()
        go_on.set()
        for one in crowd:
            assert decode_response(SaslAuthenticateResponse, 2, one.frame())[1].error_code == 0
    told = [one for one in caplog.messages if "its login was not looked at" in one]
    assert len(told) == 1
    assert "a login from" not in caplog.text


def test_many_who_log_in_at_once_from_one_address_all_get_in_after_one_check(monkeypatch: pytest.MonkeyPatch) -> None:
    someone_was_too_many = threading.Event()
    checked: list[str] = []

    def slow(credential: ScramCredential, password: str) -> bool:
        assert someone_was_too_many.wait(TIMEOUT_S)
        checked.append(password)
        return matches(credential, password)

    monkeypatch.setattr("ottla.broker.users.matches", slow)
    handshake, login = (
        b"".join(encode_request(request, version, correlation_id=1, client_id="honest"))
        for request, version in (
            (SaslHandshakeRequest(mechanism="PLAIN"), 1),
            (SaslAuthenticateRequest(auth_bytes=f"\0alice\0{PASSWORD}alice".encode()), 1),
        )
    )

    async def log_in(host: str, port: int) -> int:
        tries = 0
        while True:
            tries += 1
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(handshake + login)
            answer = b""
            try:
                for _ in range(2):
                    (size,) = struct.unpack(">i", await reader.readexactly(4))
                    answer = await reader.readexactly(size)
            except (asyncio.IncompleteReadError, ConnectionResetError):
                someone_was_too_many.set()
                continue
            finally:
                writer.close()
                with suppress(ConnectionResetError):
                    await writer.wait_closed()
            assert decode_response(SaslAuthenticateResponse, 1, answer)[1].error_code == 0
            return tries

    async def crowd(host: str, port: int) -> list[int]:
        async with asyncio.timeout(TIMEOUT_S):
            return await asyncio.gather(*[log_in(host, port) for _ in range(300)])

    with closing(started()) as broker:
        where = broker.endpoints["SASL_PLAINTEXT"]
        tries = asyncio.run(crowd(where.host, where.port))
    assert max(tries) > 1
    assert checked == [PASSWORD + "alice"]


def test_strangers_do_not_use_up_a_quota_that_others_log_in_on() -> None:
    with closing(started()) as broker, connected(broker) as stranger, connected(broker) as honest:
        with Admin(broker.bootstrap_servers) as admin:
            admin.alter_client_quotas({ClientQuotaEntity(user=QuotaDefault.DEFAULT): {"request_percentage": 0.000001}})
        assert [stranger.call(ApiVersionsRequest(), 2).throttle_time_ms for _ in range(20)] == [0] * 20
        assert honest.plain("alice", PASSWORD + "alice").error_code == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_hostile_strangers_disturb_neither_a_client_nor_the_broker(
    broker: TestBroker, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    where = broker.endpoints["SASL_PLAINTEXT"]
    attackers = [
        HostileClient((where.host, where.port), seed * 100 + number, 2.0, least_closed=35) for number in range(3)
    ]
    slowest_s, calls = 0.0, 0
    with caplog.at_level(logging.ERROR), connected(broker) as good:
        good.scram("bob", PASSWORD + "bob")
        for attacker in attackers:
            attacker.start()
        while any(attacker.is_alive() for attacker in attackers):
            began = time.monotonic()
            assert good.call(MetadataRequest(topics=[]), 12).brokers
            slowest_s, calls = max(slowest_s, time.monotonic() - began), calls + 1
    assert sum(one.sent for one in attackers) > 100
    assert calls > 100
    assert slowest_s < 5
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []


def test_those_who_do_not_even_log_in_are_told_of_but_not_without_end(
    broker: TestBroker, caplog: pytest.LogCaptureFixture
) -> None:
    def knock(_: int) -> None:
        with connected(broker) as one:
            one.send(MetadataRequest(topics=[]), 12)
            assert one.is_closed()

    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(knock, range(100)))
    seconds = time.monotonic() - began + 1
    told = [record for record in caplog.records if "Metadata before a login" in record.getMessage()]
    assert 0 < len(told) <= MOST_TOLD * seconds
    assert len(told) < 100


def test_a_failed_login_is_answered_late(broker: TestBroker) -> None:
    slow = started(connection_failed_authentication_delay_ms="300")
    try:
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            with connected(slow) as one:
                began = time.monotonic()
                answer = one.plain("alice", "wrong") if mechanism == "PLAIN" else one.scram("alice", "wrong", mechanism)
                assert answer.error_code == FAILED
                assert time.monotonic() - began >= 0.29
    finally:
        slow.close()


@pytest.mark.parametrize("has_last_word", [True, False])
def test_a_refused_token_is_told_once_and_late_also_if_its_bearer_leaves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, has_last_word: bool
) -> None:
    (tmp_path / "keys.json").write_text('{"keys": []}')
    settings = {
        **SETTINGS,
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "keys.json").as_uri(),
        "connection.failed.authentication.delay.ms": "300",
    }
    head = b64encode(b'{"alg":"ES256","kid":"made-up"}').decode().rstrip("=")
    with TestBroker(settings) as broker, connected(broker) as one:
        assert one.handshake("OAUTHBEARER").error_code == 0
        began = time.monotonic()
        refusal = one.authenticate(f"n,,\1auth=Bearer {head}.e30.AAAA\1\1".encode())
        assert time.monotonic() - began > 0.25
        assert refusal.auth_bytes == b'{"status":"invalid_token"}'
        if has_last_word:
            assert one.authenticate(b"\1").error_code == FAILED
    assert caplog.text.count("no key 'made-up' is known") == 1


def test_a_listener_without_sasl_knows_no_logins(broker: TestBroker) -> None:
    with SaslClient((broker.host, broker.port)) as one:
        assert one.handshake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert one.authenticate(b"\0alice\0x").error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert one.call(MetadataRequest(topics=[]), 12).brokers


def test_what_is_logged_names_peer_and_mechanism_and_no_secret(
    broker: TestBroker, caplog: pytest.LogCaptureFixture
) -> None:
    secrets = ["hunter2-typed-as-name", "hunter2-typed-as-password", PASSWORD]
    with caplog.at_level(logging.DEBUG):
        for user, password in (("alice", secrets[1]), (secrets[0], "x"), ("alice", PASSWORD + "alice")):
            with connected(broker) as one:
                one.plain(user, password)
                peer = "{}:{}".format(*one.socket.getsockname())
                if password != PASSWORD + "alice":
                    assert one.is_closed()
                    claim = "'alice'" if user == "alice" else "nobody who is known"
                    assert f"{peer} as {claim} with PLAIN" in caplog.text
            with connected(broker) as one:
                one.scram(user, password)
    assert "User:alice logged in" in caplog.text
    for record in caplog.records:
        for secret in secrets:
            assert secret not in record.getMessage()
            assert secret not in repr(vars(record))


def test_passwords_in_the_settings_are_not_shown(broker: TestBroker) -> None:
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    resource = ConfigResource(ConfigResourceType.BROKER, "1")
    with Admin(broker.bootstrap_servers) as admin:
        found = admin.describe_configs([resource])[resource]
    assert "carols-password" not in repr(found)
    assert (found[name].value, found[name].is_sensitive) == (None, True)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"listener.name.sasl_plaintext.plain.sasl.jaas.config": 'X required user_a="secret-4711"'}, "semicolon"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "sasl.oauthbearer.jwks.endpoint.url"),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "'GSSAPI' is not among"),
    ],
)
def test_a_broker_that_could_not_check_logins_does_not_start(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint) as refused, TestBroker({**SETTINGS, **settings}):
        pass
    assert "secret-4711" not in str(refused.value)


# Sessions.


@pytest.fixture(scope="module")
def short() -> Iterator[TestBroker]:
    """A broker whose sessions last one second and a half."""
    found = started(connections_max_reauth_ms="1500")
    yield found
    found.close()


def until_next_login(client: SaslClient) -> None:
    """Wait until it is allowed to log in again."""
    deadline = time.monotonic() + 10
    while client.handshake("SCRAM-SHA-256").error_code == ErrorCode.ILLEGAL_SASL_STATE:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_session_goes_on_with_another_login(short: TestBroker) -> None:
    with connected(short) as one:
        assert one.scram("alice", PASSWORD + "alice").session_lifetime_ms == pytest.approx(1500, abs=20)
        ends = time.monotonic() + 1.5
        until_next_login(one)
        mine = ScramClient(ScramMechanism.SCRAM_SHA_256, "alice", PASSWORD + "alice", "n")
        final = mine.answer(one.authenticate(mine.first()).auth_bytes)
        assert final is not None
        assert one.authenticate(final).session_lifetime_ms == pytest.approx(1500, abs=20)
        while time.monotonic() < ends + 0.2:
            assert one.call(MetadataRequest(topics=[]), 12).brokers
            time.sleep(0.1)


def test_a_session_that_is_over_ends_with_the_next_request(short: TestBroker) -> None:
    with connected(short) as one:
        lifetime_ms = one.scram("alice", PASSWORD + "alice").session_lifetime_ms
        assert one.call(MetadataRequest(topics=[]), 12).brokers
        time.sleep(lifetime_ms / 1000 + 0.05)
        one.send(MetadataRequest(topics=[]), 12)
        assert one.is_closed()


def test_a_login_is_still_possible_when_the_session_is_over(short: TestBroker) -> None:
    with connected(short) as one:
        lifetime_ms = one.scram("alice", PASSWORD + "alice").session_lifetime_ms
        time.sleep(lifetime_ms / 1000 + 0.05)
        assert one.scram("alice", PASSWORD + "alice").error_code == 0
        assert one.call(MetadataRequest(topics=[]), 12).brokers


@pytest.mark.parametrize(
    ("user", "password", "mechanism"),
    [
        ("bob", PASSWORD + "bob", "SCRAM-SHA-256"),
        ("alice", "wrong", "SCRAM-SHA-256"),
        ("alice", PASSWORD + "alice", "SCRAM-SHA-512"),
    ],
)
def test_a_second_login_must_be_the_same_users_in_the_same_way(
    short: TestBroker, user: str, password: str, mechanism: str
) -> None:
    with connected(short) as one:
        one.scram("alice", PASSWORD + "alice")
        time.sleep(1.05)
        one.handshake(mechanism)
        found = ScramMechanism.named(mechanism)
        assert found is not None
        mine = ScramClient(found, user, password, "n")
        answer = one.authenticate(mine.first())
        if not answer.error_code:
            final = mine.answer(answer.auth_bytes)
            assert final is not None
            answer = one.authenticate(final)
        assert answer.error_code == FAILED
        assert one.is_closed()


def test_nothing_else_is_answered_while_a_client_logs_in_again(short: TestBroker) -> None:
    with connected(short) as one:
        one.scram("alice", PASSWORD + "alice")
        until_next_login(one)
        assert one.call(ListGroupsRequest(), 4).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert one.is_closed()
