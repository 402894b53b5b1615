"""The cluster and its brokers through the admin client, and how the client itself begins and ends."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import pytest

from ottla.client.admin import Admin, Broker, NewTopic, VersionRange
from ottla.client.errors import (
    BrokerNotAvailableError,
    BrokerUnreachableError,
    KafkaError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker

from .tools import ABSENT, ask, make_older

DESCRIBE_CLUSTER, API_VERSIONS = 60, 18


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as running:
        yield running


@pytest.mark.parametrize("newest", [{}, {DESCRIBE_CLUSTER: ABSENT}], ids=["today", "before DescribeCluster"])
def test_the_cluster_is_described(broker: TestBroker, newest: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    make_older(monkeypatch, newest)
    found = ask(broker.bootstrap_servers, lambda admin: admin.describe_cluster())
    assert found.brokers == (Broker(1, broker.host, broker.port, None),)
    assert found.controller_id == 1
    assert found.cluster_id


def test_folders_are_described_with_what_lies_in_them(broker: TestBroker) -> None:
    wanted = TopicPartition("stored", 1)

    async def story(admin: Admin) -> None:
        await admin.create_topics([NewTopic("stored", 2)])
        (folder,) = (await admin.describe_log_dirs())[1]
        assert (folder.path, folder.error) == (broker.folder, None)
        assert {TopicPartition("stored", 0), wanted} <= folder.replicas.keys()
        assert folder.total_bytes is not None
        assert folder.usable_bytes is not None
        assert 0 < folder.usable_bytes <= folder.total_bytes
        (folder,) = (await admin.describe_log_dirs([wanted], broker_ids=[1]))[1]
        assert list(folder.replicas) == [wanted]
        with pytest.raises(BrokerNotAvailableError, match="there is no broker 5"):
            await admin.describe_log_dirs(broker_ids=[5])

    ask(broker.bootstrap_servers, story)


def test_what_a_broker_offers_is_told(broker: TestBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(admin: Admin) -> None:
        offered = await admin.api_versions()
        assert offered["ApiVersions"].first == 0
        assert await admin.api_versions(broker_id=1) == offered
        assert (await admin.describe_features(broker_id=1))["group.version"].finalized == VersionRange(1, 1)

    ask(broker.bootstrap_servers, story)
    make_older(monkeypatch, {API_VERSIONS: 2})

    async def old_story(admin: Admin) -> None:
        with pytest.raises(UnsupportedVersionError, match="too old for telling its features"):
            await admin.describe_features()

    ask(broker.bootstrap_servers, old_story)


@pytest.mark.parametrize(
    ("api", "question"),
    [
        ("ElectLeaders", lambda admin: admin.elect_leaders("preferred", [TopicPartition("a", 0)])),
        ("AlterPartitionReassignments", lambda admin: admin.alter_partition_reassignments({("a", 0): [1]})),
        ("ListPartitionReassignments", lambda admin: admin.list_partition_reassignments()),
    ],
)
def test_what_the_broker_does_not_offer_is_named(
    broker: TestBroker, api: str, question: Callable[[Admin], Awaitable[object]]
) -> None:
    async def story(admin: Admin) -> None:
        with pytest.raises(UnsupportedVersionError, match=f"does not offer {api}"):
            await question(admin)

    ask(broker.bootstrap_servers, story)


def test_an_unknown_kind_of_election_is_refused(broker: TestBroker) -> None:
    async def story(admin: Admin) -> None:
        with pytest.raises(ValueError, match="'dirty'; it is preferred or unclean"):
            await admin.elect_leaders("dirty", [])

    ask(broker.bootstrap_servers, story)


def test_an_address_where_nobody_answers_is_told_when_the_client_starts() -> None:
    async def story() -> None:
        admin = Admin(["127.0.0.1:1", "127.0.0.1:2"])
        with pytest.raises(BrokerUnreachableError, match=r"127\.0\.0\.1:1: .*127\.0\.0\.1:2: "):
            await admin.start()
        await admin.close()

    asyncio.run(asyncio.wait_for(story(), 20))


def test_a_broker_that_never_answers_is_given_up_with_a_typed_error() -> None:
    async def story() -> None:
        visits: list[asyncio.Task[None]] = []

        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(ConnectionError):
                await reader.read()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

        def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            visits.append(asyncio.create_task(say_nothing(reader, writer)))

        server = await asyncio.start_server(visited, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(KafkaError) as caught:
            async with Admin(f"127.0.0.1:{port}", request_timeout_ms=200):
                pass
        assert isinstance(caught.value, (BrokerUnreachableError, RequestTimedOutError))
        assert visits
        await asyncio.gather(*visits)
        server.close()
        await server.wait_closed()

    asyncio.run(asyncio.wait_for(story(), 20))


def test_the_client_outlives_a_restart_of_the_broker() -> None:
    async def story(running: TestBroker) -> None:
        async with Admin(running.bootstrap_servers) as admin:
            await admin.create_topics(["before"])
            await asyncio.to_thread(running.stop)
            creating = asyncio.create_task(admin.create_topics(["after"]))
            await asyncio.to_thread(running.start)
            await creating
            assert await admin.list_topics() == ["after", "before"]

    with TestBroker() as running:
        asyncio.run(asyncio.wait_for(story(running), 30))
