"""Counters: the compiled ones and their twins agree, errors are found wherever a response has them."""

import time
from dataclasses import dataclass
from sys import getrefcount
from types import ModuleType
from typing import Any

import pytest

from ottla.metrics import _counting_twin
from ottla.metrics.bounds import BOUNDS_S
from ottla.metrics.clients import OTHERS, ClientCounters, Clients
from ottla.metrics.counting import Metrics
from ottla.metrics.errors import error_paths
from ottla.native import load_compiled
from ottla.wire.api import MODULES, response
from ottla.wire.api.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.wire.api.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ottla.wire.errors import ErrorCode
from ottla.wire.schema import schema_of

_compiled = load_compiled("ottla.metrics._counting")


@pytest.fixture(
    params=[
        pytest.param(_counting_twin, id="twin"),
        pytest.param(
            _compiled, id="compiled", marks=pytest.mark.skipif(_compiled is None, reason="there is no compiled module")
        ),
    ]
)
def tallies(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


class _Connection:
    def __init__(self, principal: str = "User:alice") -> None:
        self.principal = principal
        self.client: ClientCounters | None = None


def _produce_response(*codes: ErrorCode) -> ProduceResponse:
    parts = [PartitionProduceResponse(index=index, error_code=code) for index, code in enumerate(codes)]
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=parts)])


def _tally(tallies: Any) -> tuple[Any, Any, Any]:
    """A tally whose clock stands still at 0, so that a request took as long before as it began."""
    api = tallies.ApiTally(0)
    paths = error_paths(schema_of(ProduceResponse))
    return tallies.Tally([api], lambda key: paths, lambda: 0.0), api, tallies.ClientTally("User:alice", "app")


def _metrics() -> tuple[Metrics, ClientCounters]:
    metrics = Metrics(lambda: 1.0)
    return metrics, metrics.clients.enter(_Connection(), "app")


def test_what_took_as_long_as_a_bound_is_in_its_bucket(tallies: ModuleType) -> None:
    times = [0.0, *BOUNDS_S, 1e9]
    tally, api, client = _tally(tallies)
    for took in times:
        tally.answered(0, client, 1, None, None, -took)
    assert api.buckets == [2] + [1] * (len(BOUNDS_S) - 1) + [1]
    assert api.seconds == pytest.approx(sum(times))
    assert client.requests == client.bytes_in == len(times)


def test_each_error_in_a_response_counts(tallies: ModuleType) -> None:
    tally, api, client = _tally(tallies)
    gone, full = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR
    responses = [_produce_response(gone, ErrorCode.NONE, full, gone), _produce_response(ErrorCode.NONE), None]
    for each in responses:
        tally.answered(0, client, 10, each, [b"12345"], -0.5)
    assert api.errors == {3: 2, 56: 1}
    assert (client.errors, client.bytes_in, client.bytes_out) == (3, 30, 15)


def test_bytes_of_all_buffers_are_counted_and_none_where_there_is_no_reply() -> None:
    metrics, client = _metrics()
    metrics.answered(0, client, 10, _produce_response(), [b"abc", memoryview(b"defg")], 0.5)
    metrics.answered(0, client, 10, _produce_response(), [b"abc"], 0.5)
    metrics.answered(0, client, 10, None, None, 0.5)
    assert metrics.apis[0].seconds == 1.5
    assert (client.bytes_in, client.bytes_out, client.errors) == (30, 10, 0)


def test_a_response_is_kept_no_longer_than_it_takes_to_count_it(tallies: ModuleType) -> None:
    tally, _, client = _tally(tallies)
    response = _produce_response(ErrorCode.KAFKA_STORAGE_ERROR)
    before = getrefcount(response)
    tally.answered(0, client, 10, response, [b""], 0.0)
    assert (client.requests, client.errors, getrefcount(response)) == (1, 1, before)


def test_errors_are_found_in_whatever_class_has_such_fields(tallies: ModuleType) -> None:
    @dataclass(slots=True)
    class Other:
        before: int
        responses: list[TopicProduceResponse]

    tally, api, client = _tally(tallies)
    known = _produce_response(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    for each in (known, Other(7, known.responses), known):
        tally.answered(0, client, 10, each, [b""], 0.0)
    assert api.errors == {6: 3}


def test_seconds_are_those_of_the_clock_that_was_given(tallies: ModuleType) -> None:
    api, client = tallies.ApiTally(0), tallies.ClientTally("User:alice", "app")
    for clock in (time.monotonic, lambda: time.monotonic() + 100):
        tallies.Tally([api], lambda key: (), clock).answered(0, client, 1, None, None, time.monotonic())
    assert 100 <= api.seconds < 101


def test_what_cannot_be_counted_is_refused_and_counts_nothing(tallies: ModuleType) -> None:
    tally, api, client = _tally(tallies)
    for api_key in (-1, 1):
        with pytest.raises(IndexError):
            tally.answered(api_key, client, 10, None, None, 0.0)
    assert (sum(api.buckets), client.requests) == (0, 0)


def test_errors_of_a_message_and_of_its_parts_are_both_found() -> None:
    metrics, client = _metrics()
    part = FetchableTopicResponse(partitions=[PartitionData(error_code=1)])
    metrics.answered(1, client, 1, FetchResponse(error_code=70, responses=[part]), [b""], 0.0)
    assert metrics.apis[1].errors == {70: 1, 1: 1}


@pytest.mark.parametrize("key", MODULES)
def test_a_default_response_of_any_api_can_be_counted_and_has_no_errors(key: int) -> None:
    metrics, client = _metrics()
    metrics.answered(key, client, 1, response(key)(), [b""], 0.0)
    assert metrics.apis[key].errors == {}
    assert [api.api_key for api in metrics.apis if api.used] == [key]


def test_connections_count_for_the_client_id_of_their_last_request() -> None:
    clients = Clients()
    connection = _Connection()
    first = clients.enter(connection, "first")
    assert clients.enter(connection, "first") is first
    second = clients.enter(connection, "second")
    assert (first.connections, second.connections) == (0, 1)
    second.leave()
    assert second.connections == 0
    assert {one.client_id for one in clients.all()} == {"first", "second"}


def test_one_client_id_of_two_principals_is_two_clients() -> None:
    clients = Clients()
    alice, bob = clients.enter(_Connection("User:alice"), "app"), clients.enter(_Connection("User:bob"), "app")
    assert alice is not bob


def test_whoever_is_connected_keeps_its_counters_whatever_others_make_up() -> None:
    clients = Clients(limit=3)
    kept = clients.enter(_Connection(), "kept")
    kept.requests = 7
    stranger = _Connection()
    for number in range(1000):
        clients.enter(stranger, f"made-up-{number}").bytes_in += 1
    assert len(clients) == 3
    assert clients.enter(_Connection(), "kept") is kept
    assert clients.bytes_in_forgotten + sum(one.bytes_in for one in clients.all()) == 1000


def test_clients_without_a_place_are_counted_together_until_there_is_one() -> None:
    clients = Clients(limit=1)
    first, late = _Connection(), _Connection()
    clients.enter(first, "first")
    others = clients.enter(late, "late")
    others.requests += 1
    assert others.client_id == OTHERS
    assert others in clients.all()
    assert first.client is not None
    first.client.leave()
    assert clients.enter(late, "late").client_id == "late"
    assert others.connections == 0
