"""How many may connect, changed while the broker runs."""

import socket
from contextlib import ExitStack

import pytest

from ottla.testing import TestBroker
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.frame import encode_request
from tests.interop.raw_client import RawClient, check

BROKER = 4
SET, DELETE = 0, 1


def alter(client: RawClient, operation: int, value: str | None, name: str, resource: str) -> None:
    config = AlterableConfig(name=name, config_operation=operation, value=value)
    resources = [AlterConfigsResource(resource_type=BROKER, resource_name=resource, configs=[config])]
    check(client.call(IncrementalAlterConfigsRequest(resources=resources), 1).responses[0].error_code)


def admitted(broker: TestBroker, stack: ExitStack) -> bool:
    """Whether one more client is served; if it is, it stays."""
    connection = stack.enter_context(socket.create_connection((broker.host, broker.port), timeout=10))
    try:
        connection.sendall(b"".join(encode_request(ApiVersionsRequest(), 0, correlation_id=1, client_id=None)))
        return connection.recv(1 << 16) != b""
    except ConnectionError:
        return False


@pytest.mark.parametrize("name", ["max.connections", "max.connections.per.ip"])
@pytest.mark.parametrize("resource", ["1", ""], ids=["this broker", "all brokers"])
def test_a_limit_of_connections_can_be_set_and_lifted_while_the_broker_runs(
    broker: TestBroker, client: RawClient, name: str, resource: str
) -> None:
    with ExitStack() as stack:
        assert admitted(broker, stack)
        alter(client, SET, "3", name, resource)
        assert [admitted(broker, stack) for _ in range(3)] == [True, False, False]
        alter(client, SET, "4", name, resource)
        assert [admitted(broker, stack) for _ in range(2)] == [True, False]
        # Below what there is: nobody is sent away, and nobody let in.
        alter(client, SET, "1", name, resource)
        assert not admitted(broker, stack)
        alter(client, DELETE, None, name, resource)
        assert [admitted(broker, stack) for _ in range(5)] == [True] * 5


def test_an_address_may_have_a_limit_of_its_own(broker: TestBroker, client: RawClient) -> None:
    name = "max.connections.per.ip.overrides"
    with ExitStack() as stack:
        # One is open already: the client that changes it.
        alter(client, SET, "127.0.0.1:2,10.0.0.7:100", name, "1")
        alter(client, SET, "1", "max.connections.per.ip", "1")
        assert [admitted(broker, stack) for _ in range(2)] == [True, False]
        alter(client, DELETE, None, name, "1")
        assert not admitted(broker, stack)


@pytest.mark.parametrize("settings", [{"quota.window.num": "2"}])
def test_no_more_connect_in_a_second_than_may(
    broker: TestBroker, client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as stack:
        alter(client, SET, "5", "max.connection.creation.rate", "1")
        found = [admitted(broker, stack) for _ in range(50)]
        assert found[:5] == [True] * 5
        # As many again for each second that this takes.
        assert found.count(False) >= 10
        assert "clients connect more often than max.connection.creation.rate allows" in caplog.text
        alter(client, DELETE, None, "max.connection.creation.rate", "1")
        assert all(admitted(broker, stack) for _ in range(50))


@pytest.mark.parametrize("settings", [{"max.connections.per.ip": "1"}])
def test_a_limit_per_address_holds_from_the_start(broker: TestBroker, client: RawClient) -> None:
    with ExitStack() as stack:
        assert not admitted(broker, stack)
    client.topic("served")
