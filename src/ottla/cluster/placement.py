"""Which brokers get the replicas of new partitions."""

from collections.abc import Mapping, Sequence
from typing import NoReturn

from ottla.cluster.image import PartitionImage
from ottla.ports import Chance
from ottla.wire.errors import ErrorCode, KafkaError

Assignment = tuple[tuple[int, ...], ...]
"""The replicas of some partitions, in order; the first of each is the preferred leader."""

MOST_PARTITIONS = 10_000
"""Of one topic, whose description must fit in one entry of the metadata store."""


def place_replicas(
    broker_ids: Sequence[int],
    partition_count: int,
    replication_factor: int,
    chance: Chance,
    existing: Sequence[PartitionImage] = (),
) -> Assignment:
    """Spread new partitions evenly, the leaders one broker after the other from a random one on.

    The followers start one broker further each time round, so that a lost broker's load falls on all others. For a
    topic that has partitions already, go on where those left off.

    >>> from ottla.ports import SystemChance
    >>> place_replicas([1], 3, 1, SystemChance())
    ((1,), (1,), (1,))
    """
    most = MOST_PARTITIONS - len(existing)
    if not 1 <= partition_count <= most:
        message = f"{partition_count} partitions are not possible; ask for 1 to {most}"
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    if not 1 <= replication_factor <= len(broker_ids):
        message = f"replication factor {replication_factor} is not possible with {len(broker_ids)} brokers available"
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    brokers = sorted(broker_ids)
    count = len(brokers)
    first = existing[0].replicas[0] if existing else None
    start = brokers.index(first) if first in brokers else _below(count, chance)
    shift = start if existing else _below(count, chance)
    placed = []
    for partition in range(len(existing), len(existing) + partition_count):
        leader = (start + partition) % count
        around = shift + partition // count
        followers = ((leader + 1 + (around + nth) % (count - 1)) % count for nth in range(replication_factor - 1))
        placed.append((brokers[leader], *(brokers[follower] for follower in followers)))
    return tuple(placed)


def _below(count: int, chance: Chance) -> int:
    return min(int(chance.uniform(0, count)), count - 1)


def check_new_topic_assignment(assignment: Mapping[int, Sequence[int]], broker_ids: Sequence[int]) -> Assignment:
    """A new topic's manual assignment by partition, checked; INVALID_REPLICA_ASSIGNMENT if it cannot be used.

    >>> check_new_topic_assignment({0: [1, 2], 1: [2, 1]}, [1, 2, 3])
    ((1, 2), (2, 1))
    """
    if not assignment or sorted(assignment) != list(range(len(assignment))):
        _refuse(f"partitions {sorted(assignment)} are assigned; they must count up from 0 without a gap")
    replicas = [tuple(assignment[index]) for index in range(len(assignment))]
    return _checked(replicas, broker_ids, len(replicas[0]))


def check_added_assignment(
    assignment: Sequence[Sequence[int]], broker_ids: Sequence[int], added: int, replication_factor: int
) -> Assignment:
    """A manual assignment for partitions that are added to a topic, checked.

    >>> check_added_assignment([[2], [1]], [1, 2], added=2, replication_factor=1)
    ((2,), (1,))
    """
    if len(assignment) != added:
        _refuse(f"{added} partitions are added, but replicas are assigned for {len(assignment)}")
    return _checked([tuple(replicas) for replicas in assignment], broker_ids, replication_factor)


def _checked(assignment: Sequence[tuple[int, ...]], broker_ids: Sequence[int], replication_factor: int) -> Assignment:
    for replicas in assignment:
        if not replicas:
            _refuse("a partition is assigned to no broker; name at least one")
        if len(set(replicas)) < len(replicas):
            _refuse(f"replicas {list(replicas)} name a broker twice")
        if len(replicas) != replication_factor:
            _refuse(f"replicas {list(replicas)} are not {replication_factor}, as for the topic's other partitions")
        if unknown := [broker for broker in replicas if broker not in broker_ids]:
            _refuse(f"replicas {list(replicas)} name brokers {unknown}, which are not there")
    return tuple(assignment)


def _refuse(message: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
