"""The cluster: its brokers, what they offer, and what lies on their disks."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ottla import __version__
from ottla.client.admin.part import AdminPart, by_topic, lacks, outcome, places_of
from ottla.client.errors import check
from ottla.client.types import TopicPartition
from ottla.net import Connection
from ottla.wire import api
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.describe_cluster import DescribeClusterRequest
from ottla.wire.api.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResult
from ottla.wire.errors import KafkaError
from ottla.wire.schema import schema_of

FIRST_VERSION_WITH_FEATURES = 3
CLIENT_SOFTWARE = "ottla"


class Broker(NamedTuple):
    """A broker, with the address at which clients reach it.

    >>> Broker(1, "broker-1", 9092, rack="a").host
    'broker-1'
    """

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster and its brokers.

    >>> ClusterDescription("Zr1K", 2, (Broker(1, "broker-1", 9092), Broker(2, "broker-2", 9092))).controller_id
    2
    """

    cluster_id: str | None
    """None where the broker is too old to tell."""
    controller_id: int | None
    """The broker that takes changes to topics."""
    brokers: tuple[Broker, ...]


class VersionRange(NamedTuple):
    """The lowest and the highest version of something.

    >>> VersionRange(0, 7).last
    7
    """

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature that all brokers of a cluster must agree on.

    >>> Feature("group.version", supported=VersionRange(0, 1), finalized=None).supported.last
    1
    """

    name: str
    supported: VersionRange | None
    """The levels that the broker that was asked has."""
    finalized: VersionRange | None
    """The levels that are in use."""


class ReplicaSize(NamedTuple):
    """How much room a replica takes.

    >>> ReplicaSize(size_bytes=1024, offset_lag=0, is_future=False).size_bytes
    1024
    """

    size_bytes: int
    offset_lag: int
    """How far it is behind the one that it is to replace, or behind the leader."""
    is_future: bool
    """Whether it is to replace another one, in another folder of the same broker."""


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A folder in which a broker keeps partitions.

    >>> (folder,) = run(lambda admin: admin.describe_log_dirs())[1]
    >>> folder.error is None, folder.usable_bytes <= folder.total_bytes
    (True, True)
    """

    path: str
    error: KafkaError | None
    """Why it cannot be used, if so."""
    total_bytes: int | None
    """How large its disk is; None where the broker is too old to tell."""
    usable_bytes: int | None
    is_cordoned: bool
    """Whether it takes no new partitions."""
    replicas: dict[TopicPartition, ReplicaSize]


class ClusterAdmin(AdminPart):
    """The methods that concern the cluster as a whole, and single brokers."""

    async def describe_cluster(self) -> ClusterDescription:
        """The brokers of the cluster, and which of them is the controller.

        >>> cluster = run(lambda admin: admin.describe_cluster())
        >>> cluster.controller_id, [broker.node_id for broker in cluster.brokers]
        (1, [1])
        """

        async def ask() -> ClusterDescription:
            connection = await self._cluster.any_broker()
            if schema_of(DescribeClusterRequest).key not in connection.offer:
                found = await self._cluster.metadata([])
                brokers = [Broker(one.node_id, one.host, one.port, one.rack) for one in found.brokers]
                return _described(found.cluster_id, found.controller_id, brokers)
            answer = await connection.request(DescribeClusterRequest())
            check(answer.error_code, answer.error_message or "the cluster")
            brokers = [Broker(one.broker_id, one.host, one.port, one.rack) for one in answer.brokers]
            return _described(answer.cluster_id, answer.controller_id, brokers)

        return await self._cluster.retrying(ask)

    async def find_coordinator(self, group_id: str) -> int:
        """The id of the broker that looks after a group.

        >>> run(lambda admin: admin.find_coordinator("readers"))
        1
        """
        return await self._cluster.retrying(lambda: self._coordinators.find(group_id))

    async def describe_log_dirs(
        self, partitions: Iterable[TopicPartition] | None = None, broker_ids: Iterable[int] | None = None
    ) -> dict[int, tuple[LogDirectory, ...]]:
        """The folders of brokers, by their ids, with what lies in them: all partitions, or certain ones.

        A folder that cannot be used is no failure here; its `error` says why.

        >>> run(lambda admin: admin.create_topics(["orders"]))
        >>> (folder,) = run(lambda admin: admin.describe_log_dirs())[1]
        >>> folder.error, folder.replicas
        (None, {TopicPartition(topic='orders', partition=0): ReplicaSize(size_bytes=0, offset_lag=0, is_future=False)})
        """
        request = DescribeLogDirsRequest(topics=None)
        if partitions is not None:
            wanted = by_topic(places_of(partitions))
            request.topics = [DescribableLogDirTopic(topic=topic, partitions=some) for topic, some in wanted.items()]

        async def ask(connection: Connection) -> tuple[LogDirectory, ...]:
            response = await connection.request(request)
            check(response.error_code, f"folders of {connection.broker}")
            return tuple(map(_directory, response.results))

        return await self._each_broker(broker_ids, ask)

    async def api_versions(self, broker_id: int | None = None) -> dict[str, VersionRange]:
        """What a broker offers, by the names of the APIs: a certain one, or whichever is at hand.

        APIs that this version of Ottla does not know are named by their numbers.

        >>> run(lambda admin: admin.api_versions())["CreateTopics"]
        VersionRange(first=0, last=7)
        """

        async def ask() -> dict[str, VersionRange]:
            connection = await self._any_or(broker_id)
            return {
                api.api_name(key) if key in api.MODULES else str(key): VersionRange(versions.first, versions.last)
                for key, versions in sorted(connection.offer.items())
            }

        return await self._cluster.retrying(ask)

    async def describe_features(self, broker_id: int | None = None) -> dict[str, Feature]:
        """The features that a broker has and that the cluster uses, by name.

        >>> feature = run(lambda admin: admin.describe_features())["group.version"]
        >>> feature.supported, feature.finalized
        (VersionRange(first=0, last=1), VersionRange(first=1, last=1))
        """

        async def ask() -> dict[str, Feature]:
            connection = await self._any_or(broker_id)
            if connection.version_of(ApiVersionsRequest) < FIRST_VERSION_WITH_FEATURES:
                raise lacks(connection.broker, "telling its features")
            question = ApiVersionsRequest(client_software_name=CLIENT_SOFTWARE, client_software_version=__version__)
            answer = await connection.request(question)
            check(answer.error_code, f"features of {connection.broker}")
            supported = {one.name: VersionRange(one.min_version, one.max_version) for one in answer.supported_features}
            finalized = {
                one.name: VersionRange(one.min_version_level, one.max_version_level)
                for one in answer.finalized_features
            }
            names = sorted(supported.keys() | finalized.keys())
            return {name: Feature(name, supported.get(name), finalized.get(name)) for name in names}

        return await self._cluster.retrying(ask)

    async def _any_or(self, broker_id: int | None) -> Connection:
        return await (self._cluster.any_broker() if broker_id is None else self._cluster.broker(broker_id))


def _described(cluster_id: str | None, controller_id: int, brokers: list[Broker]) -> ClusterDescription:
    return ClusterDescription(cluster_id, controller_id if controller_id >= 0 else None, tuple(sorted(brokers)))


def _directory(result: DescribeLogDirsResult) -> LogDirectory:
    return LogDirectory(
        result.log_dir,
        outcome(result.error_code, None, "folder", result.log_dir),
        result.total_bytes if result.total_bytes >= 0 else None,
        result.usable_bytes if result.usable_bytes >= 0 else None,
        result.is_cordoned,
        {
            TopicPartition(topic.name, one.partition_index): ReplicaSize(
                one.partition_size, one.offset_lag, one.is_future_key
            )
            for topic in result.topics
            for one in topic.partitions
        },
    )
