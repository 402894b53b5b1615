"""GetTelemetrySubscriptions and PushTelemetry: who may push what, and when."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker import telemetry
from ottla.wire.api.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.api.push_telemetry import PushTelemetryRequest
from ottla.wire.errors import ErrorCode

from .small_broker import SmallBroker

INTERVAL_MS = 60_000
NO_ID = bytes(16)
ZSTD = 4


class _Clock:
    def __init__(self) -> None:
        self.time_ms = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic(self) -> float:
        return self.time_ms / 1000


class _World:
    def __init__(self, small: SmallBroker) -> None:
        self.small = small
        self.clock = _Clock()
        small.broker.telemetry._clock = self.clock

    def ask(self, instance_id: bytes = NO_ID) -> GetTelemetrySubscriptionsResponse:
        answer = self.small.ask(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)
        assert isinstance(answer, GetTelemetrySubscriptionsResponse)
        return answer

    def push(
        self,
        instance_id: bytes,
        subscription_id: int,
        *,
        terminating: bool = False,
        compression: int = ZSTD,
        metrics: bytes = b"metrics",
    ) -> ErrorCode:
        request = PushTelemetryRequest(
            client_instance_id=instance_id,
            subscription_id=subscription_id,
            terminating=terminating,
            compression_type=compression,
            metrics=metrics,
        )
        return ErrorCode(self.small.ask(request, 0).error_code)

    def wait(self, milliseconds: int) -> None:
        self.clock.time_ms += milliseconds


@pytest.fixture
def world(tmp_path: Path) -> Iterator[_World]:
    settings = {
        "ottla.telemetry.metrics": "org.apache.kafka.producer.,org.apache.kafka.consumer.",
        "ottla.telemetry.interval.ms": str(INTERVAL_MS),
        "telemetry.max.bytes": "1000",
    }
    with SmallBroker(tmp_path, settings) as small:
        yield _World(small)


def test_a_client_gets_an_id_and_learns_what_is_wanted(world: _World) -> None:
    answer = world.ask()
    assert answer.error_code == ErrorCode.NONE
    assert answer.client_instance_id != NO_ID
    assert answer.push_interval_ms == INTERVAL_MS
    assert answer.requested_metrics == ["org.apache.kafka.producer.", "org.apache.kafka.consumer."]
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    assert answer.telemetry_max_bytes == 1000
    assert answer.delta_temporality
    assert world.ask().client_instance_id != answer.client_instance_id


def test_a_client_that_has_an_id_keeps_it(world: _World) -> None:
    mine = b"my own id, 16 by"
    assert world.ask(mine).client_instance_id == mine


def test_whoever_asks_too_early_waits(world: _World) -> None:
    mine = world.ask().client_instance_id
    assert world.ask(mine).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    world.wait(INTERVAL_MS)
    assert world.ask(mine).error_code == ErrorCode.NONE


def test_the_first_push_may_come_at_once_and_the_next_after_the_interval(world: _World) -> None:
    told = world.ask()
    mine, subscription = told.client_instance_id, told.subscription_id
    assert world.push(mine, subscription) is ErrorCode.NONE
    assert world.push(mine, subscription) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    world.wait(INTERVAL_MS)
    assert world.push(mine, subscription) is ErrorCode.NONE


def test_the_last_push_comes_when_it_comes_and_nothing_after_it(world: _World) -> None:
    told = world.ask()
    mine, subscription = told.client_instance_id, told.subscription_id
    assert world.push(mine, subscription) is ErrorCode.NONE
    assert world.push(mine, subscription, terminating=True) is ErrorCode.NONE
    world.wait(INTERVAL_MS)
    assert world.push(mine, subscription) is ErrorCode.INVALID_REQUEST


def test_a_push_for_what_is_not_wanted_any_more_is_refused_and_the_client_may_ask_at_once(world: _World) -> None:
    told = world.ask()
    mine = told.client_instance_id
    assert world.push(mine, told.subscription_id + 1) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert world.ask(mine).error_code == ErrorCode.NONE


def test_a_change_of_what_is_wanted_reaches_clients_with_their_next_push(world: _World) -> None:
    told = world.ask()
    mine = told.client_instance_id
    broker = world.small.broker
    broker.reconfigure(broker.config.with_dynamic(own={"ottla.telemetry.metrics": "*"}))
    assert world.push(mine, told.subscription_id) is not ErrorCode.NONE
    again = world.ask(mine)
    assert again.requested_metrics == ["*"]
    assert again.subscription_id != told.subscription_id


def test_pushes_that_are_too_large_or_compressed_in_unknown_ways_are_refused(world: _World) -> None:
    told = world.ask()
    mine, subscription = told.client_instance_id, told.subscription_id
    assert world.push(mine, subscription, metrics=bytes(1001)) is ErrorCode.TELEMETRY_TOO_LARGE
    world.wait(INTERVAL_MS)
    assert world.push(mine, subscription, compression=9) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    world.wait(INTERVAL_MS)
    assert world.push(mine, subscription, compression=0, metrics=bytes(1000)) is ErrorCode.NONE
    assert world.small.broker.telemetry.bytes_pushed == 1000


@pytest.mark.parametrize("reserved", [bytes(16), bytes(15) + b"\1"])
def test_nobody_pushes_without_an_id(world: _World, reserved: bytes) -> None:
    assert world.push(reserved, 0) is ErrorCode.INVALID_REQUEST


def test_made_up_ids_take_no_more_than_the_places_there_are(world: _World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "MOST_CLIENTS", 10)
    for number in range(100):
        world.push(number.to_bytes(16, "big"), number)
        world.ask()
    assert len(world.small.broker.telemetry) == 10
