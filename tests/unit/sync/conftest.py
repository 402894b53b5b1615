"""A broker for all tests of a module, each with topics of its own."""

from collections.abc import Iterator

import pytest

from ottla.testing import TestBroker


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with TestBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).replace("[", "-").replace("]", "")
