"""Brokers and programs that the tests of this folder share."""

from collections.abc import Iterator

import pytest

from .confluent import MockCluster
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
