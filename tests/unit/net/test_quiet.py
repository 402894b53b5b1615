"""Pauses that a broker asks for, since a quota was used up: nothing is asked meanwhile, and nothing is lost."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.net import Connection, ConnectionLostError, Reply, RequestTimedOutError
from ottla.ports import SystemChance
from ottla.wire.api.metadata import MetadataRequest, MetadataResponse
from ottla.wire.api.produce import ProduceRequest
from ottla.wire.frame import encode_response

from .loops import LoopFactory, each_loop, run
from .peers import listening, metadata, offering

pytestmark = each_loop

PAUSE_MS = 300


@pytest.mark.parametrize(("fetch", "pauses"), [(8, True), (7, False)], ids=["new broker", "old broker"])
def test_a_broker_that_asks_for_a_pause_is_asked_nothing_meanwhile(
    loop_factory: LoopFactory, fetch: int, pauses: bool
) -> None:
    """Old ones, from before Kafka 2.0, have waited by themselves before they answer."""
    arrived: list[float] = []

    def then(key: int, version: int, correlation_id: int) -> Reply:
        arrived.append(asyncio.get_running_loop().time())
        pause_ms = PAUSE_MS if len(arrived) == 1 else 0
        return encode_response(MetadataResponse(throttle_time_ms=pause_ms), version, correlation_id=correlation_id)

    async def story() -> None:
        async with listening(offering({1: fetch, 3: 9, 18: 3}, then)) as listener:
            connection = await Connection.open(*listener.address)
            assert not connection.is_quiet
            await connection.request(MetadataRequest())
            answered_at = asyncio.get_running_loop().time()
            assert connection.is_quiet is pauses
            await connection.request(MetadataRequest())
            assert (arrived[1] - answered_at >= PAUSE_MS / 1000 - 0.01) is pauses
            assert not connection.is_quiet
            await connection.close()

    run(loop_factory, story())


def test_what_a_broker_was_asked_before_a_pause_has_that_much_longer(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        second_may_answer = asyncio.Event()
        asked_for: list[int] = []

        def then(key: int, version: int, correlation_id: int) -> Reply:
            asked_for.append(correlation_id)
            if len(asked_for) == 1:
                return encode_response(
                    MetadataResponse(throttle_time_ms=60_000), version, correlation_id=correlation_id
                )

            async def later() -> Any:
                await second_may_answer.wait()
                return encode_response(MetadataResponse(), version, correlation_id=correlation_id)

            return later()

        async with listening(offering({1: 8, 3: 9, 18: 3}, then)) as listener:
            connection = await Connection.open(*listener.address, timeout_ms=10_000)
            asked = [asyncio.ensure_future(connection.request(MetadataRequest())) for _ in range(2)]
            await asked[0]
            (waited_for,) = connection._pending.values()
            assert waited_for.deadline - asyncio.get_running_loop().time() > 55
            second_may_answer.set()
            assert isinstance(await asked[1], MetadataResponse)
            waiting = asyncio.ensure_future(connection.request(MetadataRequest()))
            await asyncio.sleep(0)
            await connection.close()
            with pytest.raises(ConnectionLostError):
                await waiting

    run(loop_factory, story())


@pytest.mark.parametrize("given_ms", [50, None])
def test_a_pause_that_is_longer_than_a_request_may_take_times_it_out(
    given_ms: int | None, loop_factory: LoopFactory
) -> None:
    answered: list[int] = []

    def then(key: int, version: int, correlation_id: int) -> Reply:
        answered.append(key)
        return encode_response(MetadataResponse(throttle_time_ms=2**31 - 1), version, correlation_id=correlation_id)

    async def story() -> None:
        async with listening(offering({0: 8, 1: 8, 3: 9, 18: 3}, then)) as listener:
            connection = await Connection.open(*listener.address, timeout_ms=60_000 if given_ms else 2_000)
            await connection.request(MetadataRequest())
            connection._timeout_ms = 60_000 if given_ms else 50
            asked_at = asyncio.get_running_loop().time()
            with pytest.raises(RequestTimedOutError, match="could not be asked in 50 ms: it wants to be left alone"):
                await connection.request(MetadataRequest(), timeout_ms=given_ms)
            if given_ms is None:
                with pytest.raises(RequestTimedOutError, match="have the quota raised"):
                    await connection.tell(ProduceRequest(acks=0))
            assert asyncio.get_running_loop().time() - asked_at < 30
            # It is the broker's wish, and no reason to leave it.
            assert not connection.closed
            assert connection.is_quiet
            assert answered == [3]
            await connection.close()

    run(loop_factory, story())


def test_pauses_that_overlap_are_no_longer_than_the_last_of_them(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        pauses_ms = [60_000, 40_000, 65_000]
        last_may_answer = asyncio.Event()

        def then(key: int, version: int, correlation_id: int) -> Reply:
            if pauses_ms:
                response = MetadataResponse(throttle_time_ms=pauses_ms.pop(0))
                return encode_response(response, version, correlation_id=correlation_id)

            async def later() -> Any:
                await last_may_answer.wait()
                return encode_response(MetadataResponse(), version, correlation_id=correlation_id)

            return later()

        async with listening(offering({1: 8, 3: 9, 18: 3}, then)) as listener:
            connection = await Connection.open(*listener.address, timeout_ms=10_000)
            asked = [asyncio.ensure_future(connection.request(MetadataRequest())) for _ in range(4)]
            await asyncio.gather(*asked[:3])
            (waited_for,) = connection._pending.values()
            assert 65 < waited_for.deadline - asyncio.get_running_loop().time() <= 76
            last_may_answer.set()
            await asked[3]
            await connection.close()

    run(loop_factory, story())


def test_a_login_that_falls_into_a_pause_has_that_much_longer(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience_s: list[float] = []

    async def story() -> None:
        async def log_in(ask: Callable[[object], Any], *_: object) -> int:
            asked = ask(MetadataRequest())
            (login,) = connection._pending.values()
            patience_s.append(login.deadline - asyncio.get_running_loop().time())
            await asked
            return 0

        monkeypatch.setattr("ottla.net.connection.log_in", log_in)
        async with listening(offering({1: 8, 3: 9, 18: 3}, metadata)) as listener:
            connection = await Connection.open(*listener.address, timeout_ms=10_000)
            await connection._log_in_again(SystemChance())
            connection._keep_quiet(60.0)
            await connection._log_in_again(SystemChance())
            await connection.close()

    run(loop_factory, story())
    assert patience_s == pytest.approx([10, 70], abs=5)
