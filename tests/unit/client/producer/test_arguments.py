"""What is no record is refused when it is sent, with the argument that is wrong."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.client.errors import UnknownTopicOrPartitionError
from ottla.client.producer import Producer
from ottla.testing import TestBroker


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with TestBroker() as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"topic": ["orders"]}, r"topic is \['orders'\], a list; give the name of one topic, a str"),
        ({"topic": b"orders"}, "topic is b'orders', a bytes; give the name of one topic, a str"),
        ({"topic": None}, "topic is None; give the name of one topic"),
        ({"value": "two apples"}, "the value is of type str, not bytes: encode it, or give value_serializer"),
        ({"partition": "0"}, "partition is '0', a str; give an int"),
        ({"timestamp_ms": 1.5}, "timestamp_ms is 1.5, a float; give an int"),
        ({"headers": {"trace": b"a1"}}, r"headers is {'trace': b'a1'}, a dict; give a list of \(name, value\) pairs"),
        ({"headers": "ab"}, "headers is 'ab', a str; give a list"),
        ({"headers": 5}, "headers is 5, an int; give a list"),
        ({"headers": ["ab"]}, r"headers has 'ab', a str; give \(name, value\) pairs"),
        ({"headers": [("trace",)]}, r"headers has \('trace',\), a tuple; give \(name, value\) pairs"),
        ({"headers": [("trace", b"a1", 5)]}, r"headers has \('trace', b'a1', 5\), a tuple; give \(name, value\) pairs"),
        ({"headers": [("trace", "a1")]}, "the value of header 'trace' is 'a1', a str; give bytes or None"),
        ({"headers": [(b"trace", b"a1")]}, "the name of a header is b'trace', a bytes; give a str"),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_open", [False, True], ids=["first", "with-open-batch"])
def test_what_is_no_record_is_refused_by_the_name_of_the_argument(
    servers: str, changed: dict[str, Any], message: str, is_open: bool
) -> None:
    async def story() -> None:
        async with Producer(bootstrap_servers=servers, linger_ms=10_000) as producer:
            if is_open:
                await producer.send("orders", b"one")
            with pytest.raises(TypeError, match=message):
                await producer.send(**{"topic": "orders", "value": b"two", **changed})
        assert producer.records_sent == is_open

    asyncio.run(story())


def test_a_time_that_no_record_can_have_is_refused(servers: str) -> None:
    async def story() -> None:
        async with Producer(bootstrap_servers=servers) as producer:
            with pytest.raises(
                ValueError, match="timestamp_ms is 1180591620717411303424; give milliseconds since 1970"
            ):
                await producer.send("orders", b"", timestamp_ms=2**70)

    asyncio.run(story())


def test_what_a_serializer_returns_is_blamed_on_it(servers: str) -> None:
    async def story() -> None:
        async with Producer(bootstrap_servers=servers, key_serializer=lambda key: key) as producer:
            with pytest.raises(TypeError, match="key_serializer returned 'alice', a str; have it return bytes"):
                await producer.send("orders", b"", key="alice")

    asyncio.run(story())


def test_advice_for_a_partition_that_is_not_there_fits_him_who_chose_it(servers: str) -> None:
    async def story() -> None:
        async with Producer(bootstrap_servers=servers) as producer:
            with pytest.raises(UnknownTopicOrPartitionError, match="has partitions 0 to 0, not 99; name one of these"):
                await producer.send("orders", b"", partition=99)
        async with Producer(bootstrap_servers=servers, partitioner=lambda key, partitions, led: 99) as producer:
            with pytest.raises(UnknownTopicOrPartitionError, match="not 99; have the partitioner give one of these"):
                await producer.send("orders", b"")

    asyncio.run(story())


def test_what_a_partitioner_raises_is_raised(servers: str) -> None:
    def broken(key: bytes | None, partitions: list[int], led: list[int]) -> int:
        raise TypeError("broken")

    async def story() -> None:
        async with Producer(bootstrap_servers=servers, partitioner=broken) as producer:
            with pytest.raises(TypeError, match=r"^broken$"):
                await producer.send("orders", b"")

    asyncio.run(story())
