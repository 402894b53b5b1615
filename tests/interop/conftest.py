"""Brokers and programs that the tests of this folder share."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache

import pytest

from .confluent import MockCluster
from .java_admin import JavaAdmin
from .java_client import NEWEST, JavaClient
from .java_tools import JavaTools
from .raw_client import RawClient


@pytest.fixture(scope="session")
def mock_cluster() -> MockCluster:
    """A broker by librdkafka."""
    return MockCluster()


@pytest.fixture
def raw_client(mock_cluster: MockCluster) -> Iterator[RawClient]:
    """A connection to it."""
    with RawClient(mock_cluster.address) as client:
        yield client


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)


@pytest.fixture(scope="session")
def tools() -> Iterator[JavaTools]:
    """Kafka's command-line tools."""
    started = JavaTools()
    yield started
    started.close()


@pytest.fixture(scope="session")
def clients() -> Iterator[Callable[[str], JavaClient]]:
    """One Java client of each version that is asked for; starting them takes longer than all that they do."""
    with ExitStack() as stack:
        yield cache(lambda version: stack.enter_context(closing(JavaClient(version))))


@pytest.fixture
def java(request: pytest.FixtureRequest, clients: Callable[[str], JavaClient]) -> JavaClient:
    """The Java client of the version that the test names."""
    return clients(request.param)


@pytest.fixture(scope="session", params=[NEWEST, "3.9.2"])
def java_admin(request: pytest.FixtureRequest) -> Iterator[JavaAdmin]:
    """Java's administration client, of Kafka 4 and of Kafka 3."""
    admin = JavaAdmin(request.param)
    yield admin
    admin.close()
