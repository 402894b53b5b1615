"""Brokers for the tests of faults: `ottla` for all cases, `broker` for those that Kafka must go through too."""

from collections.abc import Iterator

import pytest

from ottla.testing import TestBroker
from tests.peers.fixtures import LASTING, QUICK_GROUPS, broker, name, new_topic

from . import FaultProxy
from .history import Witness

__all__ = ["broker", "name", "new_topic"]


@pytest.fixture(scope="session")
def ottla() -> Iterator[TestBroker]:
    """One for all tests of a process."""
    with TestBroker(QUICK_GROUPS | LASTING) as running:
        yield running


@pytest.fixture(scope="session")
def _lasting_proxy(ottla: TestBroker) -> Iterator[FaultProxy]:
    with FaultProxy(ottla.bootstrap_servers) as running:
        yield running


@pytest.fixture
def proxy(_lasting_proxy: FaultProxy) -> Iterator[FaultProxy]:
    """A proxy before `ottla` that does nothing yet, and is forgiven everything after the test."""
    _lasting_proxy.calm()
    yield _lasting_proxy
    _lasting_proxy.calm()
    _lasting_proxy.cut()


@pytest.fixture(scope="session")
def witness(ottla: TestBroker) -> Witness:
    """Who looks at `ottla` past the proxy."""
    return Witness(ottla.bootstrap_servers)
