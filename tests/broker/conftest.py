"""A real broker on a real socket for each test, and a raw client for it."""

from collections.abc import Iterator

import pytest

from ottla.testing import TestBroker
from tests.interop.raw_client import RawClient


@pytest.fixture
def settings() -> dict[str, str]:
    """Settings of the broker; a test module overrides this."""
    return {}


@pytest.fixture
def broker(settings: dict[str, str]) -> Iterator[TestBroker]:
    """A broker of this test's own."""
    with TestBroker(settings) as started:
        yield started


@pytest.fixture
def client(broker: TestBroker) -> Iterator[RawClient]:
    """A connection to it."""
    with RawClient((broker.host, broker.port)) as connected:
        yield connected
