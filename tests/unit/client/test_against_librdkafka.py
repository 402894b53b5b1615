"""The client against librdkafka's mock cluster: somebody else's idea of the protocol."""

import asyncio

import pytest

from ottla.client.cluster import Cluster
from ottla.client.consumer import Consumer
from ottla.client.offsets import LATEST, list_offsets
from ottla.client.options import ClientOptions
from ottla.client.producer import Producer
from ottla.client.types import ConsumerRecord, TopicPartition
from ottla.record import Codec
from tests.interop.confluent import MockCluster, read


@pytest.fixture(scope="module")
def mock_cluster() -> MockCluster:
    return MockCluster()


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name.lower())
def test_what_is_produced_is_fetched_and_read_by_librdkafka(mock_cluster: MockCluster, codec: Codec) -> None:
    topic = f"round-trip-{codec.name.lower()}"

    async def story() -> None:
        host, port = mock_cluster.address
        servers = f"{host}:{port}"
        async with Producer(bootstrap_servers=servers, compression_type=codec.name.lower()) as producer:
            for number in range(500):
                await producer.send(topic, b"value-%d" % number, b"key", partition=0, headers=[("n", b"%d" % number)])
        async with Cluster(ClientOptions(bootstrap_servers=servers)) as cluster:
            partition = TopicPartition(topic, 0)
            assert await list_offsets(cluster, {partition: LATEST}) == {partition: 500}
        found: list[ConsumerRecord] = []
        async with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([partition])
            while len(found) < 500:
                found += (await consumer.getmany(timeout_ms=1000)).get(partition, [])
        assert [record.offset for record in found] == list(range(500))
        assert [record.value for record in found] == [b"value-%d" % number for number in range(500)]
        assert found[7].headers == (("n", b"7"),)

    asyncio.run(asyncio.wait_for(story(), 30))
    theirs = read(mock_cluster.address, topic, 500, timestamp_type=1)
    assert [record.value for record in theirs] == [b"value-%d" % number for number in range(500)]
