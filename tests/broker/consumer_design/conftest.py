"""Brokers for these tests: one in this process, and one in a process of its own that can be killed."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla.testing import TestBroker
from tests.broker.consumer_design.crowd import QUICK, Company
from tests.broker.consumer_design.line import Line
from tests.crash.run import Process


@pytest.fixture
def settings() -> dict[str, str]:
    return QUICK


@pytest.fixture
def company(broker: TestBroker) -> Iterator[Company]:
    """Members of a group at a broker in this process, which has a topic t of four partitions."""
    with ExitStack() as parting:
        company = Company((broker.host, broker.port), parting)
        company.line().create_topic("t", 4)
        yield company


@pytest.fixture
def line(company: Company) -> Line:
    """A connection of nobody."""
    return company.line()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    """A broker that can be killed."""
    # Longer than a busy machine takes to start a broker, so that nobody dies whom a test does not let die.
    settings = {**QUICK, "group.consumer.session.timeout.ms": "3000"}
    process = Process(tmp_path, *(f"{name}={value}" for name, value in settings.items()))
    process.start()
    try:
        yield process
    finally:
        process.kill()


@pytest.fixture
def survivors(process: Process) -> Iterator[Company]:
    """Members of a group at a broker that will be killed, which has a topic t of four partitions."""
    with ExitStack() as parting:
        company = Company(process.address, parting)
        company.line().create_topic("t", 4)
        yield company
