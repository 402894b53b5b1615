"""Crowds that log in, or guess: they wait for themselves, and others are not disturbed."""

import asyncio
import logging
import struct
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress

import pytest

from ottla.broker.turns import MOST_WAITING
from ottla.client.admin import ClientQuotaEntity, QuotaDefault
from ottla.cluster.credential import ScramCredential
from ottla.net.sasl.scram import matches
from ottla.net.telling import MOST_TOLD
from ottla.sync import Admin
from ottla.testing import TestBroker
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.metadata import MetadataRequest
from ottla.wire.api.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.api.sasl_handshake import SaslHandshakeRequest
from ottla.wire.frame import decode_response, encode_request
from tests.broker.hostile_client import HostileClient
from tests.broker.sasl_client import TIMEOUT_S
from tests.broker.sasl_world import FAILED, PASSWORD, connected, started


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    """A broker with users alice and bob, whose passwords end with their names."""
    found = started()
    yield found
    found.close()


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
