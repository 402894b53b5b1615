"""Connections, metadata and coordinators: what is kept, what is asked again, and how long a failure lasts."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing

import pytest

from ottla.client.cluster import Cluster
from ottla.client.connections import Connections, Lane, backed_off
from ottla.client.coordinators import Coordinators
from ottla.client.errors import (
    BrokerNotAvailableError,
    BrokerUnreachableError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from ottla.client.options import ClientOptions
from ottla.client.types import TopicPartition
from ottla.ports import SystemChance
from ottla.testing import TestBroker
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.errors import ErrorCode, KafkaError
from tests.waiting import eventually

from .fake_broker import FakeBroker


class Exactly:
    """Chance that has no say."""

    def uuid(self) -> bytes:
        return b"u" * 16

    def secret(self, size: int) -> bytes:
        return b"s" * size

    def uniform(self, low: float, high: float) -> float:
        return (low + high) / 2


def free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def with_cluster(story: Callable[[Cluster], Awaitable[None]], servers: str, **options: int) -> None:
    async def run() -> None:
        async with Cluster(ClientOptions(bootstrap_servers=servers, **options)) as cluster:  # type: ignore[arg-type]
            await story(cluster)

    asyncio.run(run())


def test_waits_double_up_to_the_longest() -> None:
    assert [backed_off(50, 1000, failures, Exactly()) for failures in (1, 2, 3, 5, 6, 1000)] == [
        0.05,
        0.1,
        0.2,
        0.8,
        1.0,
        1.0,
    ]


def test_waits_are_a_fifth_shorter_or_longer_by_chance() -> None:
    class Ends(Exactly):
        def __init__(self, part: float) -> None:
            self.part = part

        def uniform(self, low: float, high: float) -> float:
            return low + self.part * (high - low)

    assert [backed_off(50, 1000, 1, Ends(part)) for part in (0, 0.5, 1)] == pytest.approx([0.04, 0.05, 0.06])
    # The longest is no exception: it is what all clients of a broker come to that is gone for long.
    assert [backed_off(50, 1000, 9, Ends(part)) for part in (0, 1)] == pytest.approx([0.8, 1.2])
    assert len({backed_off(50, 1000, 1, SystemChance()) for _ in range(20)}) > 1


def test_a_broker_that_refused_is_left_alone_for_longer_each_time() -> None:
    async def story() -> None:
        options = ClientOptions(reconnect_backoff_ms=60, reconnect_backoff_max_ms=240)
        address = ("127.0.0.1", free_port())
        loop = asyncio.get_running_loop()
        first = []
        for _ in range(5):
            connections = Connections(options, Exactly())
            waits = []
            for _ in range(4):
                started = loop.time()
                with pytest.raises(BrokerUnreachableError, match=f"cannot connect to 127.0.0.1:{address[1]}"):
                    await connections.to(address)
                waits.append(loop.time() - started)
            first.append(waits[0])
            assert waits[1] >= 0.055
            assert waits[2] >= 0.115
            assert waits[3] >= 0.235
            await connections.close()
            if min(first) < 0.06:
                break
        # Others on the machine may have taken that time once, but not each time.
        assert min(first) < 0.06

    asyncio.run(story())


def test_connections_are_shared_within_a_lane_and_never_across() -> None:
    with TestBroker() as broker:

        async def story(cluster: Cluster) -> None:
            await cluster.metadata([])
            (node_id,) = cluster.picture.brokers
            general, again, fetch = await asyncio.gather(
                cluster.broker(node_id), cluster.broker(node_id), cluster.broker(node_id, Lane.FETCH)
            )
            assert general is again
            assert fetch is not general

        with_cluster(story, broker.bootstrap_servers)


def test_a_connection_that_was_idle_for_too_long_is_made_anew() -> None:
    with TestBroker() as broker:

        async def story(cluster: Cluster) -> None:
            first = await cluster.any_broker()
            assert await cluster.any_broker() is first
            await asyncio.sleep(1.1)
            second = await cluster.any_broker()
            assert second is not first
            assert first.closed

        with_cluster(story, broker.bootstrap_servers, connections_max_idle_ms=1_000)


def test_a_broker_that_wants_to_be_left_alone_is_asked_only_if_there_is_no_other() -> None:
    async def story() -> None:
        connections = Connections(ClientOptions(), Exactly())
        with TestBroker() as one, TestBroker() as other:
            first, second = [await connections.to(("127.0.0.1", broker.port)) for broker in (one, other)]
            assert connections.any_open() is first
            first._keep_quiet(60.0)
            assert connections.any_open() is second
            second._keep_quiet(60.0)
            assert connections.any_open() is first
            await connections.close()

    asyncio.run(story())


def test_one_metadata_request_serves_all_partitions_that_are_not_known() -> None:
    with FakeBroker() as broker:
        for name in "abc":
            broker.create(name, 3)

        async def story(cluster: Cluster) -> None:
            wanted = [TopicPartition(name, index) for name in "abc" for index in range(3)]
            found = await cluster.find_leaders([*wanted, TopicPartition("a", 3), TopicPartition("d", 0)])
            assert sorted(found.by_node[1]) == wanted
            assert "has no partition 3" in str(found.missing[TopicPartition("a", 3)])
            assert "there is no topic 'd'" in str(found.missing[TopicPartition("d", 0)])
            assert [name for name, _ in broker.requests].count("Metadata") == 1
            await cluster.find_leaders(wanted)
            assert [name for name, _ in broker.requests].count("Metadata") == 1
            cluster.forget_leader(wanted[0])
            await cluster.find_leaders(wanted)
            assert [name for name, _ in broker.requests].count("Metadata") == 2

        with_cluster(story, broker.bootstrap)


def test_what_is_known_of_a_topic_is_used_and_brought_up_to_date_when_it_is_old() -> None:
    with FakeBroker() as broker:
        topic = broker.create("a", 1)

        async def story(cluster: Cluster) -> None:
            assert (await cluster.topic("a")).partitions == [0]
            topic.logs.append([])
            assert (await cluster.topic("a")).partitions == [0]
            await asyncio.sleep(1.1)
            # The old answer is given at once, and a new one asked for behind it.
            assert (await cluster.topic("a")).partitions == [0]

            async def has_grown() -> bool:
                return (await cluster.topic("a")).partitions == [0, 1]

            await eventually(has_grown, "the new partition is known")

        with_cluster(story, broker.bootstrap, metadata_max_age_ms=1_000)


def test_a_wrong_address_is_told_at_once_and_says_what_to_do() -> None:
    async def story(cluster: Cluster) -> None:
        started = asyncio.get_running_loop().time()
        with pytest.raises(BrokerUnreachableError, match="see whether a broker runs there") as caught:
            await cluster.topic("a")
        assert caught.value.errno == ErrorCode.NETWORK_EXCEPTION
        assert asyncio.get_running_loop().time() - started < 10

    with_cluster(story, f"127.0.0.1:{free_port()},127.0.0.1:{free_port()}")


def test_a_broker_that_comes_back_is_found_again() -> None:
    with TestBroker() as broker:

        async def story(cluster: Cluster) -> None:
            await cluster.metadata([])
            broker.stop()
            waiting = asyncio.create_task(cluster.retrying(lambda: cluster.metadata([])))
            await asyncio.sleep(0.3)
            assert not waiting.done()
            await asyncio.to_thread(broker.start)
            assert (await waiting).brokers

        with_cluster(story, broker.bootstrap_servers)


def test_a_topic_and_a_broker_that_do_not_exist_are_named() -> None:
    with FakeBroker(auto_create=False) as broker:

        async def story(cluster: Cluster) -> None:
            with pytest.raises(UnknownTopicOrPartitionError, match="there is no topic 'nothing'; create the topic"):
                await cluster.topic("nothing", create=True)
            with pytest.raises(BrokerNotAvailableError, match="there is no broker 7; there are 1"):
                await cluster.broker(7)

        with_cluster(story, broker.bootstrap)


def test_a_coordinator_is_found_once_and_again_when_it_has_moved() -> None:
    with TestBroker() as broker:

        async def story(cluster: Cluster) -> None:
            coordinators = Coordinators(cluster)
            connection = await cluster.retrying(lambda: coordinators.connection("g"))
            assert connection.broker == broker.bootstrap_servers

            async def says_no(_: object) -> None:
                raise KafkaError(ErrorCode.NOT_COORDINATOR, "not me")

            with pytest.raises(KafkaError, match="not me"):
                await coordinators.ask("g", says_no)
            assert not coordinators._found
            assert await coordinators.connection("g") is connection

        with_cluster(story, broker.bootstrap_servers)


def test_what_a_broker_does_not_offer_is_said_with_its_name() -> None:
    with FakeBroker() as broker:

        async def story(cluster: Cluster) -> None:
            connection = await cluster.any_broker()
            with pytest.raises(UnsupportedVersionError, match="does not offer ConsumerGroupHeartbeat") as caught:
                await connection.request(ConsumerGroupHeartbeatRequest())
            assert caught.value.errno == ErrorCode.UNSUPPORTED_VERSION

        with_cluster(story, broker.bootstrap)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"bootstrap_servers": ""}, "is no address"),
        ({"bootstrap_servers": []}, "is empty"),
        ({"bootstrap_servers": ["a:1", "b:nine"]}, "'b:nine' is no address"),
        ({"retry_backoff_ms": -1}, "retry_backoff_ms is -1; it must be at least 0"),
        ({"request_timeout_ms": 2**31}, "request_timeout_ms is 2147483648; it must be at most 2147483647"),
    ],
)
def test_options_that_make_no_sense_are_refused_when_a_client_is_made(
    options: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        ClientOptions(**options)  # type: ignore[arg-type]
