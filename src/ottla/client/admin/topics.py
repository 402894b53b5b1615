"""Topics and their partitions: look at them, create, grow and delete them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from ottla.client.admin.part import AdminPart, Answers, lacks, list_of, names_of, outcome
from ottla.client.checks import check_number, check_text, shown
from ottla.client.picture import NO_TOPIC_ID
from ottla.wire.api.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.api.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.api.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.api.metadata import MetadataResponseTopic
from ottla.wire.errors import ErrorCode, KafkaError

FIRST_CREATE_VERSION_WITH_VALIDATION = 1
FIRST_CREATE_VERSION_WITH_DEFAULTS = 4
BROKERS_CHOICE = -1
"""As a number of partitions or replicas: what the broker is set up for."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created. -1 partitions or replicas, and what is not in `topic_configs`, are the broker's to choose.

    >>> NewTopic("orders", num_partitions=6, topic_configs={"retention.ms": "86400000"}).replication_factor
    -1
    >>> NewTopic("orders", replica_assignments={0: [1, 2], 1: [2, 3]}).num_partitions
    -1
    """

    name: str
    num_partitions: int = BROKERS_CHOICE
    replication_factor: int = BROKERS_CHOICE
    replica_assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """The brokers of each partition, the preferred leader first."""
    topic_configs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_text("name", self.name)
        check_number("num_partitions", self.num_partitions)
        check_number("replication_factor", self.replication_factor)
        for config, value in self.topic_configs.items():
            if not isinstance(value, str):
                raise TypeError(f"topic_configs[{config!r}] is {shown(value)}; give text, such as {str(value)!r}")
        counted = {self.num_partitions, self.replication_factor} != {BROKERS_CHOICE}
        if counted and self.replica_assignments:
            raise ValueError(
                f"topic {self.name!r} has replica_assignments, which say how many partitions and replicas there are: "
                f"leave out num_partitions and replication_factor"
            )


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """How many partitions a topic is to have, and on which brokers the new ones are to be.

    >>> NewPartitions(4, new_assignments=[[1, 2]]).total_count
    4
    """

    total_count: int
    new_assignments: Sequence[Sequence[int]] | None = None
    """The brokers of each partition that is added, the preferred leader first; None leaves it to the cluster."""

    def __post_init__(self) -> None:
        check_number("total_count", self.total_count)


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition of a topic, with the brokers that have it, by their ids.

    >>> partition = PartitionDescription(0, leader=2, leader_epoch=7, replicas=(1, 2), in_sync_replicas=(2,))
    >>> set(partition.replicas) - set(partition.in_sync_replicas)
    {1}
    """

    partition: int
    leader: int | None
    """None while it has none."""
    leader_epoch: int
    """-1 where the broker is too old to tell."""
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic with its partitions.

    >>> run(lambda admin: admin.create_topics(["orders"]))
    >>> topic = run(lambda admin: admin.describe_topics(["orders"]))["orders"]
    >>> topic.name, len(topic.partitions), topic.replication_factor, topic.is_internal
    ('orders', 1, 1, False)
    """

    name: str
    topic_id: UUID | None
    """None where the cluster is too old to have them."""
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        """How many replicas its partitions have; of the one that has most, if they differ.

        >>> TopicDescription("orders", None, False, (PartitionDescription(0, 1, 0, (1, 2), (1, 2)),)).replication_factor
        2
        """
        return max((len(one.replicas) for one in self.partitions), default=0)


class TopicAdmin(AdminPart):
    """The methods that concern topics."""

    async def list_topics(self) -> list[str]:
        """The names of all topics, internal ones too.

        >>> run(lambda admin: admin.create_topics(["orders", "payments"]))
        >>> run(lambda admin: admin.list_topics())
        ['orders', 'payments']
        """
        return list(await self.describe_topics())

    async def describe_topics(self, topics: Iterable[str] | None = None) -> dict[str, TopicDescription]:
        """Topics by name: those that are asked for, each of which must exist, or all.

        >>> run(lambda admin: admin.create_topics([NewTopic("orders", num_partitions=2)]))
        >>> topic = run(lambda admin: admin.describe_topics(["orders"]))["orders"]
        >>> [(one.partition, one.leader, one.replicas) for one in topic.partitions]
        [(0, 1, (1,)), (1, 1, (1,))]
        """
        if topics is None:
            everything = (await self._cluster.retrying(lambda: self._cluster.metadata(None))).topics
            return {one.name: one for one in sorted(map(_described, everything), key=lambda one: one.name)}

        async def ask(names: list[str]) -> Answers[str, TopicDescription]:
            found = (await self._cluster.metadata(names)).topics
            return {topic.name or "": _error_of(topic) or _described(topic) for topic in found}

        return await self._each(names_of(topics, "topics"), ask)

    async def create_topics(
        self, new_topics: Iterable[NewTopic | str], timeout_ms: int | None = None, validate_only: bool = False
    ) -> None:
        """Create topics, or with `validate_only` see whether they could be. A name alone leaves all to the broker.

        Where the answer to an attempt is lost, a topic that exists when it is tried again counts as created.

        >>> new = NewTopic("orders", num_partitions=3, topic_configs={"cleanup.policy": "compact"})
        >>> run(lambda admin: admin.create_topics([new, "payments"]))
        >>> run(lambda admin: admin.create_topics(["orders"]))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ottla.errors.TopicAlreadyExistsError: TOPIC_ALREADY_EXISTS: ...
        """
        if isinstance(new_topics, Mapping):
            raise TypeError(
                "new_topics is a dict; give a list of NewTopic(name, num_partitions=..., topic_configs=...)"
            )
        given = [NewTopic(new) if isinstance(new, str) else new for new in list_of(new_topics, "new_topics")]
        for new in given:
            if not isinstance(new, NewTopic):
                raise TypeError(
                    f"new_topics has {shown(new)}; give NewTopic(name, num_partitions=...), or the name alone"
                )
        wanted = {new.name: new for new in given}
        if len(wanted) < len(given):
            raise ValueError(
                f"new_topics has {_first_twice([new.name for new in given])!r} twice; name each topic once"
            )
        patience_ms = self._patience_ms(timeout_ms)

        async def ask(names: list[str]) -> Answers[str, None]:
            connection = await self._cluster.controller()
            version = connection.version_of(CreateTopicsRequest)
            if validate_only and version < FIRST_CREATE_VERSION_WITH_VALIDATION:
                raise lacks(connection.broker, "validate_only")
            default = BROKERS_CHOICE if version >= FIRST_CREATE_VERSION_WITH_DEFAULTS else 1
            request = CreateTopicsRequest(
                topics=[_creatable(wanted[name], default) for name in names],
                timeout_ms=patience_ms,
                validate_only=validate_only,
            )
            response = await self._change(connection, request, patience_ms)
            return {one.name: outcome(one.error_code, one.error_message, "topic", one.name) for one in response.topics}

        await self._each(wanted, ask, done=ErrorCode.TOPIC_ALREADY_EXISTS, timeout_ms=timeout_ms)

    async def delete_topics(self, topics: Iterable[str], timeout_ms: int | None = None) -> None:
        """Delete topics with all their records.

        >>> run(lambda admin: admin.create_topics(["orders", "payments"]))
        >>> run(lambda admin: admin.delete_topics(["orders"]))
        >>> run(lambda admin: admin.list_topics())
        ['payments']
        """
        patience_ms = self._patience_ms(timeout_ms)

        async def ask(names: list[str]) -> Answers[str, None]:
            request = DeleteTopicsRequest(
                topics=[DeleteTopicState(name=name) for name in names], topic_names=names, timeout_ms=patience_ms
            )
            response = await self._change(await self._cluster.controller(), request, patience_ms)
            return {
                one.name: outcome(one.error_code, one.error_message, "topic", one.name) for one in response.responses
            }

        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await self._each(names_of(topics, "topics"), ask, final=(unknown,), done=unknown, timeout_ms=timeout_ms)

    async def create_partitions(
        self,
        topic_partitions: Mapping[str, NewPartitions | int],
        timeout_ms: int | None = None,
        validate_only: bool = False,
    ) -> None:
        """Grow topics to these numbers of partitions. Keys go to other partitions from then on.

        >>> run(lambda admin: admin.create_topics([NewTopic("orders", 2)]))
        >>> run(lambda admin: admin.create_partitions({"orders": 5}))
        >>> len(run(lambda admin: admin.describe_topics(["orders"]))["orders"].partitions)
        5
        """
        wanted = {name: NewPartitions(new) if isinstance(new, int) else new for name, new in topic_partitions.items()}
        patience_ms = self._patience_ms(timeout_ms)

        async def ask(names: list[str]) -> Answers[str, None]:
            request = CreatePartitionsRequest(
                topics=[_growing(name, wanted[name]) for name in names],
                timeout_ms=patience_ms,
                validate_only=validate_only,
            )
            response = await self._change(await self._cluster.controller(), request, patience_ms)
            return {one.name: outcome(one.error_code, one.error_message, "topic", one.name) for one in response.results}

        await self._each(wanted, ask, final=(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,), timeout_ms=timeout_ms)


def _described(topic: MetadataResponseTopic) -> TopicDescription:
    partitions = [
        PartitionDescription(
            one.partition_index,
            one.leader_id if one.leader_id >= 0 else None,
            one.leader_epoch,
            tuple(one.replica_nodes),
            tuple(one.isr_nodes),
            tuple(one.offline_replicas),
        )
        for one in sorted(topic.partitions, key=lambda one: one.partition_index)
    ]
    topic_id = None if topic.topic_id == NO_TOPIC_ID else UUID(bytes=topic.topic_id)
    return TopicDescription(topic.name or "", topic_id, topic.is_internal, tuple(partitions))


def _error_of(topic: MetadataResponseTopic) -> KafkaError | None:
    return outcome(topic.error_code, None, "topic", topic.name or "")


def _first_twice(names: list[str]) -> str:
    return next(name for index, name in enumerate(names) if name in names[:index])


def _creatable(new: NewTopic, default: int) -> CreatableTopic:
    # Where brokers say who has what, the numbers must be left out in all versions.
    default = BROKERS_CHOICE if new.replica_assignments else default
    return CreatableTopic(
        name=new.name,
        num_partitions=default if new.num_partitions == BROKERS_CHOICE else new.num_partitions,
        replication_factor=default if new.replication_factor == BROKERS_CHOICE else new.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in new.replica_assignments.items()
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in new.topic_configs.items()],
    )


def _growing(name: str, new: NewPartitions) -> CreatePartitionsTopic:
    assignments = new.new_assignments
    return CreatePartitionsTopic(
        name=name,
        count=new.total_count,
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments],
    )
