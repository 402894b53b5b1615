"""The cluster as a client knows it: where its brokers are, and who leads which partition."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from ottla.client.connections import Connections, Lane, backed_off
from ottla.client.errors import check, error_of
from ottla.client.options import ClientOptions
from ottla.client.picture import NO_LEADER, Leader, Picture, Topic
from ottla.client.types import TopicPartition
from ottla.net import (
    BrokerUnreachableError,
    Connection,
    ConnectionLostError,
    HandshakeCutError,
    LoginMissingError,
    MalformedReplyError,
)
from ottla.ports import Chance, SystemChance
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")

UNKNOWN_TOPIC_PATIENCE_MS = 1_000
"""How long a topic may be unknown: long enough for news of it to reach all brokers, short enough for a typing error."""

LOGINS_MISSED = 3
"""How often a broker must have left at the first request until it is no accident."""

WRONG_ADDRESS_HINT = "see whether a broker runs there, and whether the address is right"


class Leaders(NamedTuple):
    """Where partitions are led."""

    by_node: dict[int, list[TopicPartition]]
    missing: dict[TopicPartition, KafkaError]
    """Those that have no leader, or do not exist, and why."""


class Cluster:
    """A cluster, known through one or more addresses of its brokers. Connections are made when first needed.

    >>> async def names() -> list[str]:
    ...     async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap_servers)) as cluster:
    ...         return [topic.name or "" for topic in (await cluster.metadata(None)).topics]
    >>> from ottla.testing import TestBroker
    >>> with TestBroker() as broker:
    ...     asyncio.run(names())
    []
    """

    def __init__(self, options: ClientOptions, *, chance: Chance | None = None) -> None:
        self.options = options
        self.picture = Picture()
        """What is known without asking."""
        self.chance = chance or SystemChance()
        self._connections = Connections(options, self.chance)
        self.last_error: KafkaError | None = None
        """What was tried in vain last, if nothing has worked since."""
        self._refreshing: set[asyncio.Task[MetadataResponse]] = set()

    @property
    def request_timeout_ms(self) -> int:
        """How long a request may take."""
        return self.options.request_timeout_ms

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        for task in self._refreshing:
            task.cancel()
        await self._connections.close()

    # Connections.

    async def any_broker(self) -> Connection:
        """A connection to whichever broker can be reached, one that is there already if possible."""
        found = self._connections.any_open()
        if found is not None:
            return found
        failures: list[ConnectionLostError] = []
        for address in self._connections.by_health([*self.picture.brokers.values(), *self.options.addresses]):
            try:
                return await self._connections.to(address)
            except ConnectionLostError as error:
                failures.append(error)
        if all(isinstance(error, HandshakeCutError) for error in failures):
            raise failures[0]
        told = "; ".join(dict.fromkeys(error.message for error in failures))
        raise BrokerUnreachableError(f"{told}; {WRONG_ADDRESS_HINT}")

    async def broker(self, node_id: int, lane: Lane = Lane.GENERAL) -> Connection:
        """A connection to a certain broker."""
        if node_id not in self.picture.brokers:
            await self.metadata([])
        if node_id not in self.picture.brokers:
            known = ", ".join(map(str, sorted(self.picture.brokers)))
            raise error_of(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no broker {node_id}; there are {known}")
        return await self._connections.to(self.picture.brokers[node_id], lane)

    async def controller(self) -> Connection:
        """A connection to the broker that takes changes to topics."""
        response = await self.metadata([])
        # Brokers before 0.10 do not say who that is. They do not take such requests either, and any of them can say so.
        known = response.controller_id in self.picture.brokers
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
        self.picture.take(response, asyncio.get_running_loop().time())
        return response

    async def topic(self, name: str, *, create: bool = False) -> Topic:
        """A topic as it is known, or as a broker describes it. Waits for one that is just being created.

        What is known is used for `metadata_max_age_ms`, and is then brought up to date without waiting for it.
        """
        known = self.picture.topics.get(name)
        if known is not None and known.leaders:
            age_s = asyncio.get_running_loop().time() - known.seen_at
            if age_s * 1000 > self.options.metadata_max_age_ms and not self._refreshing:
                self._refresh_later(list(self.picture.topics))
            return known

        async def ask() -> Topic:
            for found in (await self.metadata([name], create=create)).topics:
                unknown = found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                check(found.error_code, f"there is no topic {name!r}" if unknown else f"topic {name!r}")
            found_topic = self.picture.topics.get(name)
            if found_topic is None:
                raise error_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the broker says nothing about topic {name!r}")
            return found_topic

        return await self.retrying(ask)

    def _refresh_later(self, topics: list[str]) -> None:
        task = asyncio.create_task(self.metadata(topics))
        self._refreshing.add(task)

        def done(task: "asyncio.Task[MetadataResponse]") -> None:
            self._refreshing.discard(task)
            # Nobody waits for it. What failed is tried again when the topic is used next.
            if not task.cancelled():
                task.exception()

        task.add_done_callback(done)

    async def partitions(self, topic: str, *, create: bool = False) -> list[int]:
        """The partitions of a topic, in order, as a broker says now. Waits for a topic that is just being created."""
        self.picture.forget_topic(topic)
        return (await self.topic(topic, create=create)).partitions

    async def find_leaders(self, partitions: Iterable[TopicPartition], *, create: bool = False) -> Leaders:
        """Partitions by the node id of their leader. Asks once, for all topics of which something is not known."""
        wanted = list(partitions)
        led = {one: self.picture.leader(one) for one in wanted}
        unknown = {one.topic for one, leader in led.items() if leader is None or leader.node_id == NO_LEADER}
        errors: dict[str, int] = {}
        if unknown:
            response = await self.metadata(sorted(unknown), create=create)
            errors = {topic.name or "": topic.error_code for topic in response.topics if topic.error_code}
        found = Leaders({}, {})
        for one in wanted:
            leader = self.picture.leader(one)
            if leader is None or leader.node_id == NO_LEADER or one.topic in errors:
                found.missing[one] = _no_leader(one, leader, errors.get(one.topic, 0))
            else:
                found.by_node.setdefault(leader.node_id, []).append(one)
        return found

    async def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Partitions by the node id of their leader; all of them must have one."""
        by_node, missing = await self.find_leaders(partitions)
        for error in missing.values():
            raise error
        return by_node

    async def leader(self, partition: TopicPartition) -> int:
        """The node id of the broker that leads a partition."""
        (node_id,) = await self.by_leader([partition])
        return node_id

    def forget_leader(self, partition: TopicPartition) -> None:
        """Ask again who leads a partition before it is used next."""
        self.picture.forget_leader(partition)

    def topic_id(self, topic: str) -> bytes:
        """A topic's id, zeros if the cluster has none or it is not known."""
        return self.picture.topic_id(topic)

    def topic_name(self, topic_id: bytes) -> str:
        """The name of a topic whose id has been seen."""
        return self.picture.topic_name(topic_id)

    # Patience.

    def backoff_s(self, failures: int) -> float:
        """How long to wait before something is tried again that failed so many times in a row."""
        return backed_off(self.options.retry_backoff_ms, self.options.retry_backoff_max_ms, failures, self.chance)

    async def retrying(self, operation: Callable[[], Awaitable[T]], *, timeout_ms: int | None = None) -> T:
        """Do something until it works, fails for good, or the time has passed: two request timeouts if none is given.

        Two, since a reply that is lost takes one.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        patience_ms = 2 * self.options.request_timeout_ms if timeout_ms is None else timeout_ms
        failures = 0
        while True:
            try:
                found = await operation()
                self.last_error = None
                return found
            except KafkaError as error:
                self.last_error = error
                failures += 1
                wait_s = self.backoff_s(failures)
                wrong_address = not self.picture.brokers and self._blames_address(error, failures)
                if wrong_address and not isinstance(error, (BrokerUnreachableError, LoginMissingError)):
                    raise BrokerUnreachableError(f"{error.message}; {WRONG_ADDRESS_HINT}") from error
                limit_ms = patience_ms
                if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    limit_ms = min(patience_ms, UNKNOWN_TOPIC_PATIENCE_MS)
                if not error.retriable or wrong_address or (loop.time() + wait_s - started) * 1000 > limit_ms:
                    raise
            await asyncio.sleep(wait_s)

    def _blames_address(self, error: KafkaError, failures: int) -> bool:
        """Whether it is the address that is wrong, if nobody has told of the cluster yet: where none can be reached,
        or one who is no broker, since he never said anything that made sense; or one who leaves again and again where a
        login would be."""
        if isinstance(error, LoginMissingError):
            return failures >= LOGINS_MISSED
        if isinstance(error, (ConnectionLostError, MalformedReplyError)):
            return isinstance(error, BrokerUnreachableError) or not self._connections.has_versions
        return False


def _no_leader(partition: TopicPartition, leader: Leader | None, code: int) -> KafkaError:
    if code:
        unknown = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return error_of(code, f"there is no topic {partition.topic!r}" if unknown else f"topic {partition.topic!r}")
    if leader is None:
        message = f"topic {partition.topic!r} has no partition {partition.partition}"
        return error_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    return error_of(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader")
