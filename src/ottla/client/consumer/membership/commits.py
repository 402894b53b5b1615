"""Committing positions, and reading what was committed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import count
from typing import TypeVar

from ottla.client.checks import place_of
from ottla.client.cluster import Cluster
from ottla.client.consumer.membership.identity import Identity, Membership, in_listener
from ottla.client.consumer.membership.offset_requests import (
    Offsets,
    check_commit,
    commit_request,
    fetch_request,
    read_fetched,
    version_for,
)
from ottla.client.consumer.membership.options import GroupOptions
from ottla.client.consumer.subscription import Mode, PartitionState, Subscription
from ottla.client.coordinators import Coordinators
from ottla.client.errors import KEEP_UP, CommitFailedError, FencedInstanceIdError
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.net import Connection
from ottla.wire.api.offset_commit import OffsetCommitRequest
from ottla.wire.api.offset_fetch import OffsetFetchRequest
from ottla.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")

MOST_BLIND_ATTEMPTS = 3
"""How often a rebalance tries to commit under one identity. The end of it may be known here before the refusal is."""

_MOVED_ON = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
"""The group is not where this member believes it to be."""
_MAY_PASS = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH})
"""The member may still be in the group, and keep its partitions under another generation."""


class Commits:
    """Commits positions one request after another, so that the last one stays, and reads them back."""

    def __init__(
        self,
        cluster: Cluster,
        coordinators: Coordinators,
        subscription: Subscription,
        options: GroupOptions,
        membership: Callable[[], Membership | None],
    ) -> None:
        self._cluster = cluster
        self._coordinators = coordinators
        self._subscription = subscription
        self._options = options
        self._membership = membership
        self._in_order = asyncio.Lock()

    async def commit(self, offsets: Offsets, *, may_wait: bool = True) -> None:
        """Commit positions. Tries again while the coordinator moves, or a rebalance leaves the partitions here.

        Raises `CommitFailedError` if the partitions may belong to another member by now. `may_wait` is for commits that
        no rebalance waits for.
        """
        if not offsets:
            return
        states = self._own(offsets) if may_wait else []
        deadline = self._deadline()
        for attempt in count(1):
            identity = self._identity()
            try:
                async with self._in_order:
                    await self._commit_once(offsets, identity)
                return
            except CommitFailedError as error:
                if error.code not in _MAY_PASS or not await self._settle(identity, deadline, may_wait):
                    raise
                if may_wait and self._own(offsets) != states:
                    raise
                if not may_wait and attempt >= MOST_BLIND_ATTEMPTS and self._identity() == identity:
                    raise

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed, None where it has nothing."""
        wanted = [place_of(place, "partition") for place in partitions]
        if not wanted:
            return {}
        deadline = self._deadline()
        while True:
            identity = self._identity()
            try:
                found = await self._at_coordinator(lambda connection: self._fetch(connection, wanted))
                return {place: found.get(place) for place in wanted}
            except KafkaError as error:
                if error.code not in _MOVED_ON or not await self._settle(identity, deadline, may_wait=True):
                    raise

    async def _fetch(
        self, connection: Connection, wanted: list[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        picture, group_id = self._cluster.picture, self._options.group_id
        version = version_for(OffsetFetchRequest, {place.topic for place in wanted}, connection, picture)
        # Only the protocol `consumer` has epochs that are checked when positions are read.
        identity = self._identity() if self._options.group_protocol == "consumer" else Identity()
        stable = self._options.require_stable
        request = fetch_request(group_id, identity, wanted, picture, require_stable=stable)
        response = await connection.request(request, version=version)
        return read_fetched(group_id, response, version, picture)

    async def _commit_once(self, offsets: Offsets, identity: Identity) -> None:
        group_id = self._options.group_id

        async def ask(connection: Connection) -> None:
            picture = self._cluster.picture
            version = version_for(OffsetCommitRequest, {place.topic for place in offsets}, connection, picture)
            request = commit_request(group_id, identity, offsets, picture)
            check_commit(group_id, await connection.request(request, version=version), picture)

        try:
            await self._at_coordinator(ask)
        except KafkaError as error:
            if error.code not in _MOVED_ON:
                raise
            membership = self._membership()
            if membership is not None:
                membership.doubt(identity, error.code)
            if self._subscription.mode is not Mode.USER:
                reason = f"group {group_id!r} has moved on without this member"
                advice = FencedInstanceIdError.advice if error.code is ErrorCode.FENCED_INSTANCE_ID else KEEP_UP
                raise CommitFailedError(error.code, reason, advice) from error
            reason = f"group {group_id!r} has members, and this consumer is none of them"
            raise CommitFailedError(error.code, reason, "give one that uses assign() a group_id of its own") from error

    async def _at_coordinator(self, ask: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._cluster.retrying(lambda: self._coordinators.ask(self._options.group_id, ask))

    async def _settle(self, identity: Identity, deadline: float, may_wait: bool) -> bool:
        """Wait until the member is sure of its place in the group; False if that takes too long."""
        membership = self._membership()
        if membership is None:
            return False
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.sleep(self._cluster.backoff_s(1))
                if may_wait and not in_listener.get():
                    await membership.settled(identity)
                    return membership.failure is None
                await membership.renewed(identity)
                return True
        except TimeoutError:
            return False

    def _own(self, offsets: Offsets) -> list[PartitionState | None]:
        """The states of partitions, all of which must be this member's if it shares them with others."""
        assigned = self._subscription.assigned
        if self._subscription.mode is Mode.TOPICS:
            for place in offsets:
                if place not in assigned:
                    message = f"{place} is not assigned to this consumer (any more)"
                    # One that has lost all was most likely too slow.
                    advice = "commit partitions of assignment() only" if assigned else KEEP_UP
                    raise CommitFailedError(ErrorCode.UNKNOWN_MEMBER_ID, message, advice)
        return [assigned.get(place) for place in offsets]

    def _identity(self) -> Identity:
        membership = self._membership()
        return Identity() if membership is None else membership.identity

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._cluster.request_timeout_ms / 1000
