"""Clients that are thrown away while they run say so."""

import asyncio
import gc
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.producer import Producer
from ottla.testing import TestBroker

CLIENTS = [Producer, Consumer, Admin]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with TestBroker() as broker:
        yield broker.bootstrap_servers


def warnings_of_throwing_away(kind: type[Any], servers: str, *, stop: bool) -> list[str]:
    async def story() -> None:
        client = await kind(bootstrap_servers=servers).start()
        if stop:
            await client.stop()
        del client

    return told_by(story)


def told_by(story: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(story())
        gc.collect()
        texts = [str(one.message) for one in told]
        # They hold the clients, whose sockets are to be warned of here and not in another test.
        told.clear()
        gc.collect()
    return [text for text in texts if "was not stopped" in text]


@pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.__name__)
def test_one_that_runs_is_warned_of_when_it_is_thrown_away(kind: type[Any], servers: str) -> None:
    name = kind.__name__
    hint = f"{name} was not stopped: use `async with {name}(...)`, or await its stop()"
    assert warnings_of_throwing_away(kind, servers, stop=False) == [hint]


@pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.__name__)
def test_one_that_was_stopped_is_not(kind: type[Any], servers: str) -> None:
    assert warnings_of_throwing_away(kind, servers, stop=True) == []


@pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.__name__)
def test_one_that_was_never_started_is_not(kind: type[Any]) -> None:
    async def story() -> None:
        kind()
        with pytest.raises(TypeError, match="client_id"):
            kind(client_id=5)

    assert told_by(story) == []


def test_a_producer_tells_how_many_records_it_leaves_behind(servers: str) -> None:
    async def story() -> None:
        producer = await Producer(bootstrap_servers=servers, linger_ms=60_000).start()
        await producer.send("orders", b"one")
        await producer.send("orders", b"two")

    (told,) = told_by(story)
    assert told.startswith("Producer was not stopped, and 2 records were not acknowledged: use `async with")
