"""Where partitions are: moving their replicas, and electing leaders."""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.client.admin.part import AdminPart, Answers, by_topic, lacks, outcome, places_of
from ottla.client.checks import place_of
from ottla.client.errors import check
from ottla.client.types import TopicPartition
from ottla.wire.api.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.api.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.api.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from ottla.wire.errors import ErrorCode, KafkaError

FIRST_ELECTION_VERSION_WITH_TYPES = 1

_NO_CANDIDATE = (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
"""A broker must come back first; whoever asks is told so at once."""


class ElectionType(IntEnum):
    """Who may become leader.

    >>> ElectionType["UNCLEAN"].value
    1
    """

    PREFERRED = 0
    """The first of the replicas."""
    UNCLEAN = 1
    """A replica that is behind, if no other is left: what only the others had is lost."""


class PartitionReassignment(NamedTuple):
    """A partition that is being moved, with the ids of brokers.

    >>> PartitionReassignment(replicas=(1, 2, 3), adding_replicas=(3,), removing_replicas=(1,)).adding_replicas
    (3,)
    """

    replicas: tuple[int, ...]
    """All that have it now, or will."""
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class ReplicaAdmin(AdminPart):
    """The methods that concern where partitions are. The controller is asked."""

    async def elect_leaders(
        self,
        election_type: ElectionType | str,
        partitions: Iterable[TopicPartition],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, bool]:
        """Elect leaders of partitions; says of each whether there was anything to elect.

        Ottla's own broker has one replica of each partition, and does not offer it:

        >>> try:
        ...     run(lambda admin: admin.elect_leaders("preferred", [TopicPartition("orders", 0)]))
        ... except KafkaError as error:
        ...     print(error.code.name)
        UNSUPPORTED_VERSION
        """
        if isinstance(election_type, str):
            if election_type.upper() not in ElectionType.__members__:
                raise ValueError(f"election_type is {election_type!r}; it is preferred or unclean")
            election_type = ElectionType[election_type.upper()]
        patience_ms = self._patience_ms(timeout_ms)

        async def ask(left: list[TopicPartition]) -> Answers[TopicPartition, bool]:
            connection = await self._cluster.controller()
            version = connection.version_of(ElectLeadersRequest)
            if election_type is ElectionType.UNCLEAN and version < FIRST_ELECTION_VERSION_WITH_TYPES:
                raise lacks(connection.broker, "unclean elections")
            request = ElectLeadersRequest(
                election_type=election_type,
                topic_partitions=[
                    TopicPartitions(topic=topic, partitions=some) for topic, some in by_topic(left).items()
                ],
                timeout_ms=patience_ms,
            )
            response = await self._change(connection, request, patience_ms)
            check(response.error_code, "election of leaders")
            answers: dict[TopicPartition, bool | KafkaError] = {}
            for topic in response.replica_election_results:
                for one in topic.partition_result:
                    place = TopicPartition(topic.topic, one.partition_id)
                    needed = one.error_code != ErrorCode.ELECTION_NOT_NEEDED
                    failure = outcome(one.error_code, one.error_message, "partition", str(place)) if needed else None
                    answers[place] = failure or needed
            return answers

        wanted = places_of(partitions)
        final = (*_NO_CANDIDATE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return await self._each(wanted, ask, final=final, timeout_ms=timeout_ms)

    async def alter_partition_reassignments(
        self, reassignments: Mapping[TopicPartition, Sequence[int] | None], timeout_ms: int | None = None
    ) -> None:
        """Begin to move partitions to these brokers, the preferred leader first; None calls a move off.

        It returns when the moves have begun; `list_partition_reassignments` tells which are not done yet.

        >>> try:
        ...     run(lambda admin: admin.alter_partition_reassignments({TopicPartition("orders", 0): [2, 3]}))
        ... except KafkaError as error:
        ...     print(error.code.name)
        UNSUPPORTED_VERSION
        """
        wanted = {place_of(place, "reassignments"): replicas for place, replicas in reassignments.items()}
        patience_ms = self._patience_ms(timeout_ms)

        async def ask(left: list[TopicPartition]) -> Answers[TopicPartition, None]:
            request = AlterPartitionReassignmentsRequest(
                timeout_ms=patience_ms,
                topics=[
                    ReassignableTopic(
                        name=topic,
                        partitions=[_move(one, wanted[TopicPartition(topic, one)]) for one in indexes],
                    )
                    for topic, indexes in by_topic(left).items()
                ],
            )
            response = await self._change(await self._cluster.controller(), request, patience_ms)
            check(response.error_code, response.error_message or "reassignment of partitions")
            answers: dict[TopicPartition, KafkaError | None] = {}
            for topic in response.responses:
                for one in topic.partitions:
                    place = TopicPartition(topic.name, one.partition_index)
                    answers[place] = outcome(one.error_code, one.error_message, "partition", str(place))
            return answers

        final, done = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        await self._each(wanted, ask, final=final, done=done, timeout_ms=timeout_ms)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, timeout_ms: int | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """The partitions that are being moved: all, or which of certain ones.

        >>> try:
        ...     run(lambda admin: admin.list_partition_reassignments())
        ... except KafkaError as error:
        ...     print(error.code.name)
        UNSUPPORTED_VERSION
        """
        wanted = None if partitions is None else by_topic(places_of(partitions))
        patience_ms = self._patience_ms(timeout_ms)

        async def ask() -> dict[TopicPartition, PartitionReassignment]:
            request = ListPartitionReassignmentsRequest(timeout_ms=patience_ms)
            if wanted is not None:
                request.topics = [
                    ListPartitionReassignmentsTopics(name=topic, partition_indexes=some)
                    for topic, some in wanted.items()
                ]
            response = await self._change(await self._cluster.controller(), request, patience_ms)
            check(response.error_code, response.error_message or "reassignments of partitions")
            return {
                TopicPartition(topic.name, one.partition_index): PartitionReassignment(
                    tuple(one.replicas), tuple(one.adding_replicas), tuple(one.removing_replicas)
                )
                for topic in response.topics
                for one in topic.partitions
            }

        return await self._cluster.retrying(ask, timeout_ms=timeout_ms)


def _move(partition: int, replicas: Sequence[int] | None) -> ReassignablePartition:
    return ReassignablePartition(partition_index=partition, replicas=None if replicas is None else list(replicas))
