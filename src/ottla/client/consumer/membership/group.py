"""All that a consumer has to do with its group: being a member while it is subscribed, and positions in any case."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.consumer.membership.auto_commit import AutoCommit
from ottla.client.consumer.membership.classic import ClassicMembership
from ottla.client.consumer.membership.commits import Commits
from ottla.client.consumer.membership.handover import PATIENCE_S, Handover, Report
from ottla.client.consumer.membership.identity import Identity, Membership
from ottla.client.consumer.membership.limit import Limit
from ottla.client.consumer.membership.modern import ModernMembership
from ottla.client.consumer.membership.options import GroupOptions
from ottla.client.consumer.membership.presence import Presence
from ottla.client.consumer.membership.tasks import spawn, stop
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import Mode, Subscription
from ottla.client.coordinators import Coordinators
from ottla.client.given import GivenOffset, given_offsets
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.ports import Chance, SystemChance

LONGEST_TICK_S = 1.0
"""How often to see whether the user still comes."""

LAST_WORK_TIMEOUT_S = 5.0
"""How long the last commit of a consumer that stops and the calls of its listener may take together."""

log = logging.getLogger(__name__)


class Group:
    """A consumer's group. It is a member of it as long as topics are subscribed to and the user comes for records.

    `report` gets what the user must know, once; a membership that has ended for good leaves its reason in `failure`.
    """

    def __init__(
        self,
        cluster: Cluster,
        coordinators: Coordinators,
        subscription: Subscription,
        options: GroupOptions,
        *,
        report: Report,
        listener: Any = None,
        chance: Chance | None = None,
    ) -> None:
        self._cluster = cluster
        self._coordinators = coordinators
        self._subscription = subscription
        self._options = options
        self._report = report
        self._chance = chance or SystemChance()
        self._membership: Membership | None = None
        self._joined_for: object = None
        self._parting: dict[TopicPartition, OffsetAndMetadata] | None = None
        """What the user had finished when he unsubscribed."""
        self._is_away = False
        self._news = Signal()
        self._tasks: list[asyncio.Task[None]] = []
        self._commits = Commits(cluster, coordinators, subscription, options, lambda: self._membership)
        interval_ms = options.auto_commit_interval_ms if options.enable_auto_commit else None
        self._limit = Limit()
        self._auto_commit = AutoCommit(self._commits, subscription, self._limit, interval_ms)
        self._handover = Handover(
            subscription,
            commit=self._auto_commit.commit_last,
            report=report,
            limit=self._limit,
            patience_s=min(PATIENCE_S, options.rebalance_patience_ms / 2000),
            listener=listener,
        )
        subscription.watch(self._on_change)

    @property
    def listener(self) -> Any:
        """The user's `ConsumerRebalanceListener`, or None."""
        return self._handover.listener

    @listener.setter
    def listener(self, listener: Any) -> None:
        self._handover.listener = listener

    @property
    def identity(self) -> Identity:
        """Who this member is now."""
        return Identity() if self._membership is None else self._membership.identity

    @property
    def failure(self) -> BaseException | None:
        """Why this member is out of its group for good, until it subscribes anew."""
        return None if self._membership is None else self._membership.failure

    def start(self) -> None:
        """Begin to follow the subscription."""
        self._tasks = [spawn(self._run(), self._report), spawn(self._auto_commit.run(), self._report)]

    async def close(self) -> None:
        """Commit what is finished, give the partitions back and leave, in seconds even if the coordinator is gone."""
        self._limit.set(LAST_WORK_TIMEOUT_S)
        await stop(self._tasks)
        if self._membership is not None:
            await self._leave("the consumer was closed")
        await self._auto_commit.commit_last(self._subscription.finished_positions())

    def came_back(self) -> None:
        """The user is here: if he was away for too long, join again."""
        if self._is_away:
            self._news.notify()

    # Positions.

    async def commit(self, offsets: Mapping[TopicPartition, GivenOffset] | None = None) -> None:
        """Commit positions, or all that was handed out."""
        if self.failure is not None and self._subscription.mode is Mode.TOPICS:
            # What it has read is another member's by now, so nothing here says what there was to commit.
            raise self.failure
        given = self._subscription.positions_to_commit() if offsets is None else given_offsets(offsets)
        await self._commits.commit(given)

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed, None where it has nothing."""
        return await self._commits.committed(partitions)

    # Coming and going.

    def _on_change(self) -> None:
        if self._wanted() == self._joined_for:
            return
        # The user has unsubscribed, and the partitions are gone in a moment.
        if self._subscription.mode is Mode.NONE and self._parting is None and self._membership is not None:
            self._parting = self._subscription.finished_positions()
        self._news.notify()

    def _wanted(self) -> object:
        subscription = self._subscription
        return (subscription.topics, subscription.pattern) if subscription.mode is Mode.TOPICS else None

    async def _run(self) -> None:
        tick_s = min(LONGEST_TICK_S, self._options.max_poll_interval_ms / 4000)
        presence = self._new_presence()
        while True:
            if self._membership is None and not self._is_away:
                presence = self._new_presence()
            await self._follow(presence)
            await self._news.wait(tick_s)

    async def _follow(self, presence: Presence) -> None:
        """Bring the membership in line with what the user wants."""
        subscription, wanted = self._subscription, self._wanted()
        if self._membership is not None and (wanted is None or self._parting is not None):
            await self._leave("the consumer has unsubscribed")
        if wanted is None:
            self._is_away = False
            return
        waits, progress = subscription.calls_waiting > 0, subscription.progress
        is_away = presence.is_away(asyncio.get_running_loop().time(), waits=waits, progress=progress)
        if is_away and self._membership is not None and self._membership.failure is None:
            await self._leave_for_now()
        elif not is_away:
            self._is_away = False
            await self._join(wanted)

    async def _join(self, wanted: object) -> None:
        if self._membership is not None and self._joined_for != wanted:
            if self._membership.failure is None:
                self._joined_for = wanted
                self._membership.request_rejoin("the subscription has changed")
            else:
                await self._leave("the subscription has changed")
        if self._membership is None:
            self._joined_for = wanted
            self._membership = self._new_membership()
            self._membership.start()

    def _new_membership(self) -> Membership:
        parts = (self._cluster, self._coordinators, self._subscription, self._options, self._handover, self._report)
        if self._options.group_protocol == "consumer":
            return ModernMembership(*parts, self._chance)
        return ClassicMembership(*parts)

    def _new_presence(self) -> Presence:
        return Presence(self._options.max_poll_interval_ms / 1000, asyncio.get_running_loop().time())

    async def _leave(self, reason: str, *, is_lost: bool = False) -> None:
        membership, parting = self._membership, self._parting
        assert membership is not None
        if parting:
            await self._auto_commit.commit_last(parting)
            await self._handover.tell_revoked(list(parting))
        self._parting = None
        await membership.close(reason=reason, is_lost=is_lost)
        self._membership, self._joined_for = None, None

    async def _leave_for_now(self) -> None:
        log.warning(
            "group %r: nobody came for records for %d ms, so others get the partitions until somebody does; "
            "process records faster, take fewer at a time (max_poll_records), or raise max_poll_interval_ms",
            self._options.group_id,
            self._options.max_poll_interval_ms,
        )
        self._is_away = True
        await self._leave("max_poll_interval_ms has passed", is_lost=True)
