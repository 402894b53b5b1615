"""The cluster as a client knows it: brokers, connections to them, and who leads which partition."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from ottla.client.errors import check
from ottla.net import BrokerUnreachableError, Connection, ConnectionLostError
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic
from ottla.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")

DEFAULT_PORT = 9092
FIRST_BACKOFF_S = 0.05
LONGEST_BACKOFF_S = 1.0
UNKNOWN_TOPIC_PATIENCE_S = 1.0
"""How long a topic may be unknown: long enough for news of it to reach all brokers, short enough for a typing error."""

NO_TOPIC_ID = bytes(16)


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


def parse_bootstrap(servers: str) -> list[tuple[str, int]]:
    """Read `host:port,host:port`; the port is 9092 if it is left out.

    >>> parse_bootstrap("localhost, [::1]:9093,broker-2:9094")
    [('localhost', 9092), ('::1', 9093), ('broker-2', 9094)]
    """
    found: list[tuple[str, int]] = []
    for server in servers.split(","):
        host, colon, port = server.strip().rpartition(":")
        if not colon or port.endswith("]"):
            host, port = server.strip(), str(DEFAULT_PORT)
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"{server.strip()!r} is no address; write HOST:PORT, several with commas between")
        found.append((host.removeprefix("[").removesuffix("]"), int(port)))
    return found


class Cluster:
    """A cluster, known through one or more addresses of its brokers. Connections are made when first needed."""

    def __init__(self, bootstrap_servers: str, *, client_id: str = "ottla", request_timeout_ms: int = 30_000) -> None:
        self._bootstrap = parse_bootstrap(bootstrap_servers)
        self._client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self._connections: dict[tuple[str, int], Connection] = {}
        self._connecting: dict[tuple[str, int], asyncio.Lock] = {}
        self._brokers: dict[int, tuple[str, int]] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._topic_names: dict[bytes, str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            await connection.close()

    # Connections.

    async def _connect(self, address: tuple[str, int]) -> Connection:
        lock = self._connecting.setdefault(address, asyncio.Lock())
        async with lock:
            found = self._connections.get(address)
            if found is None or found.closed:
                found = self._connections[address] = await Connection.open(
                    *address, client_id=self._client_id, timeout_ms=self.request_timeout_ms
                )
            return found

    async def any_broker(self) -> Connection:
        """A connection to whichever broker can be reached, one that is there already if possible."""
        for connection in self._connections.values():
            if not connection.closed:
                return connection
        failures: list[str] = []
        for address in [*self._brokers.values(), *self._bootstrap]:
            try:
                return await self._connect(address)
            except ConnectionLostError as error:
                failures.append(error.message)
        raise BrokerUnreachableError("; ".join(dict.fromkeys(failures)))

    async def broker(self, node_id: int) -> Connection:
        """A connection to a certain broker."""
        if node_id not in self._brokers:
            await self.metadata([])
        if node_id not in self._brokers:
            known = ", ".join(map(str, sorted(self._brokers)))
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no broker {node_id}; there are {known}")
        return await self._connect(self._brokers[node_id])

    async def controller(self) -> Connection:
        """A connection to the broker that takes changes to topics."""
        response = await self.metadata([])
        # Brokers before 0.10 do not say who that is. They do not take such requests either, and any of them can say so.
        known = response.controller_id in self._brokers
        return await self.broker(response.controller_id) if known else await self.any_broker()

    # What the cluster looks like.

    async def metadata(self, topics: Iterable[str] | None, *, create: bool = False) -> MetadataResponse:
        """Ask for topics, or all with None, and remember what is said. Errors of single topics are left in the reply.

        `create` lets the broker create topics that do not exist, if it is set up to do so.
        """
        connection = await self.any_broker()
        version = connection.version_of(MetadataRequest)
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        # In version 0 an empty list asks for all topics, so asking for none is not possible.
        request = MetadataRequest(topics=[] if wanted is None and version == 0 else wanted)
        request.allow_auto_topic_creation = create
        response: MetadataResponse = await connection.request(request)
        check(response.error_code, f"metadata from {connection.broker}")
        self._brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        for topic in response.topics:
            self._remember(topic)
        return response

    def _remember(self, topic: MetadataResponseTopic) -> None:
        if topic.name is None or topic.error_code:
            return
        if topic.topic_id != NO_TOPIC_ID:
            self._topic_ids[topic.name] = topic.topic_id
            self._topic_names[topic.topic_id] = topic.name
        for partition in topic.partitions:
            self._leaders[TopicPartition(topic.name, partition.partition_index)] = partition.leader_id

    async def partitions(self, topic: str, *, create: bool = False) -> list[int]:
        """The partitions of a topic, in order. Waits for a topic that is just being created."""

        async def ask() -> list[int]:
            (found,) = [one for one in (await self.metadata([topic], create=create)).topics if one.name == topic]
            unknown = found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            check(found.error_code, f"there is no topic {topic!r}" if unknown else f"topic {topic!r}")
            return sorted(partition.partition_index for partition in found.partitions)

        return await self.retrying(ask)

    async def leader(self, partition: TopicPartition) -> int:
        """The node id of the broker that leads a partition."""
        node_id = self._leaders.get(partition, -1)
        if node_id < 0:
            await self.partitions(partition.topic)
            node_id = self._leaders.get(partition, -1)
        if partition not in self._leaders:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {partition.topic!r} has no partition {partition.partition}",
            )
        if node_id < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition.topic}-{partition.partition} has no leader")
        return node_id

    async def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Partitions by the node id of their leader."""
        grouped: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            grouped.setdefault(await self.leader(partition), []).append(partition)
        return grouped

    def forget_leader(self, partition: TopicPartition) -> None:
        """Ask again who leads a partition before it is used next."""
        self._leaders.pop(partition, None)

    def topic_id(self, topic: str) -> bytes:
        """A topic's id, zeros if the cluster has none or it is not known."""
        return self._topic_ids.get(topic, NO_TOPIC_ID)

    def topic_name(self, topic_id: bytes) -> str:
        """The name of a topic whose id has been seen."""
        return self._topic_names.get(topic_id, "")

    async def retrying(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Do something until it works, fails for good, or the request timeout has passed."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        backoff_s = FIRST_BACKOFF_S
        while True:
            try:
                return await operation()
            except KafkaError as error:
                # Where nobody ever answered it is more likely the address that is wrong.
                wrong_address = isinstance(error, BrokerUnreachableError) and not self._brokers
                patience_s = self.request_timeout_ms / 1000
                if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    patience_s = min(patience_s, UNKNOWN_TOPIC_PATIENCE_S)
                if not error.retriable or wrong_address or loop.time() + backoff_s - started > patience_s:
                    raise
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, LONGEST_BACKOFF_S)
