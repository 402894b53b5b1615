"""The pytest plugin: `def test_something(ottla_broker): ...` gets a clean broker of its own."""

from collections.abc import Iterator

import pytest

from ottla.testing.broker import TestBroker


@pytest.fixture(scope="session")
def ottla_settings() -> dict[str, str]:
    """Settings of the test broker by Kafka's names; override this fixture to change them."""
    return {}


@pytest.fixture
def ottla_broker(ottla_settings: dict[str, str]) -> Iterator[TestBroker]:
    """A broker for this test alone, on a free port; `ottla_broker.bootstrap_servers` is its address."""
    with TestBroker(ottla_settings) as broker:
        yield broker
