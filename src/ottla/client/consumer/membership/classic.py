"""Membership in the classic protocol, in which one of the members shares out for all.

A task joins and follows the group; while it is a member, another sends heartbeats. The user is in neither of them.
"""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress

from ottla.assign.classic import subscribed_topics
from ottla.client.cluster import Cluster
from ottla.client.connections import Lane
from ottla.client.consumer.membership.handover import Handover, Report
from ottla.client.consumer.membership.heart import Heart
from ottla.client.consumer.membership.identity import Identity
from ottla.client.consumer.membership.joining import Joined, MemberIdGivenError, join, leave, protocols, share_out, sync
from ottla.client.consumer.membership.options import GroupOptions
from ottla.client.consumer.membership.tasks import spawn, stop
from ottla.client.consumer.membership.topics import TopicWatch
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import Subscription
from ottla.client.coordinators import Coordinators
from ottla.client.errors import error_of
from ottla.client.types import TopicPartition
from ottla.net import Connection
from ottla.wire.errors import ErrorCode, KafkaError

LEARN_ID_TIMEOUT_S = 1.0
LEAVE_TIMEOUT_S = 2.0
LEAVE_RETRY_MS = 1_000
"""How long to try again to say goodbye. A group that does not hear it waits for the end of the session."""

_FORGOTTEN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)

log = logging.getLogger(__name__)


class ClassicMembership:
    """Joins a group, stays in it through its rebalances, and leaves. See `Membership`."""

    def __init__(
        self,
        cluster: Cluster,
        coordinators: Coordinators,
        subscription: Subscription,
        options: GroupOptions,
        handover: Handover,
        report: Report,
    ) -> None:
        self.failure: BaseException | None = None
        self._cluster = cluster
        self._coordinators = coordinators
        self._subscription = subscription
        self._options = options
        self._handover = handover
        self._report = report
        self._topics = TopicWatch(cluster, subscription, options, self.request_rejoin)
        self._identity = Identity(instance_id=options.group_instance_id)
        self._last_assignment: dict[str, tuple[int, ...]] = {}
        self._last_generation = -1
        self._why_rejoin: str | None = "the consumer has started"
        """What the group does not know of this member yet."""
        self._is_called = False
        """The group has asked its members to join again."""
        self._is_lost = False
        """The group has gone on without this member."""
        self._fatal: KafkaError | None = None
        self._is_stable = False
        self._is_joining = False
        self._wanted = Signal()
        self._changed = Signal()
        self._tasks: list[asyncio.Task[None]] = []
        self._heart: Heart | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def identity(self) -> Identity:
        """Who the member is now."""
        return self._identity

    def start(self) -> None:
        """Begin to join."""
        self._tasks = [spawn(self._run(), self._report), spawn(self._topics.run(), self._report)]

    def request_rejoin(self, reason: str) -> None:
        """Join again, since something has changed on this side."""
        self._why_rejoin = reason
        self._is_stable = False
        self._wanted.notify()

    def doubt(self, identity: Identity, code: int) -> None:
        """The coordinator has refused something of the member that had this identity."""
        # While it joins, the answer to that will tell; this one may be about the generation before.
        if identity != self._identity or self._is_joining:
            return
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self._give_up(error_of(code, f"member {identity.instance_id!r} of group {self._options.group_id!r}"))
        elif code in _FORGOTTEN:
            self._lose(f"the coordinator says {ErrorCode(code).name}", keep_id=code != ErrorCode.UNKNOWN_MEMBER_ID)
        elif self._heart is not None:
            # It may be over by now: the next heartbeat will tell.
            self._heart.hurry()

    async def settled(self, since: Identity) -> None:
        """Wait until no rebalance goes on."""
        while self.failure is None and self._closing is None and not self._is_stable:
            await self._changed.wait()

    async def renewed(self, since: Identity) -> None:
        """Wait until a join that is on its way is answered."""
        while self._is_joining:
            await self._changed.wait()

    async def close(self, *, reason: str, is_lost: bool = False) -> None:
        """Give the partitions back and leave."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(reason, is_lost))
        await asyncio.shield(self._closing)

    # Following the group.

    async def _run(self) -> None:
        try:
            while True:
                while not self._must_join:
                    await self._wanted.wait()
                await self._rebalance()
        except Exception as error:  # noqa: BLE001 - all that ends a membership reaches the user
            await self._end(error)

    @property
    def _must_join(self) -> bool:
        is_needed = self._why_rejoin is not None or self._is_called or self._is_lost or self._fatal is not None
        return is_needed and self._closing is None

    async def _rebalance(self) -> None:
        failures = 0
        while self._must_join:
            if self._fatal is not None:
                raise self._fatal
            reason, self._why_rejoin = self._why_rejoin or "the group rebalances", None
            log.info("group %r: joining, since %s", self._options.group_id, reason)
            try:
                await self._join_and_sync(reason)
                failures = 0
            except KafkaError as error:
                log.info("group %r: could not join: %s", self._options.group_id, error)
                self._why_rejoin = reason
                self._understand(error)
                failures += 1
                await asyncio.sleep(self._cluster.backoff_s(failures))
        self._is_stable = True
        self._changed.notify()

    async def _join_and_sync(self, reason: str) -> None:
        await self._let_go()
        topics = await self._topics.look()
        await self._handover.revoke([one for one in self._subscription.assigned if one.topic not in topics])
        await self._stop_heart()
        if self._is_lost:
            await self._let_go()
        self._is_called = False
        self._is_joining = True
        try:
            joined = await self._join(topics, reason)
            self._identity = joined.identity
            given = await self._sync(joined)
        finally:
            self._is_joining = False
            self._changed.notify()
        self._heart = Heart(self._cluster, self._coordinators, self._options, joined.identity, self._hear)
        self._heart.start(self._report)
        await self._take(joined, given)

    async def _join(self, topics: frozenset[str], reason: str) -> Joined:
        owned = _by_topic(self._subscription.assigned) if self._options.is_cooperative else {}
        offered = protocols(self._options, topics, self._last_assignment, owned, self._last_generation)

        async def ask(connection: Connection) -> Joined:
            try:
                return await join(connection, self._options, self._identity, offered, reason)
            except MemberIdGivenError as given:
                self._identity = self._identity._replace(member_id=given.member_id)
                self._changed.notify()
                return await join(connection, self._options, self._identity, offered, reason)

        return await self._coordinators.ask(self._options.group_id, ask, lane=Lane.JOIN)

    async def _sync(self, joined: Joined) -> dict[str, tuple[int, ...]]:
        assignments: dict[str, bytes] = {}
        if joined.is_leader:
            led = subscribed_topics(joined.subscriptions)
            counts = await self._cluster.retrying(lambda: self._topics.count(led))
            assignments = {} if joined.skip_assignment else share_out(self._options, joined, counts)
        else:
            self._topics.stop_counting()

        async def ask(connection: Connection) -> dict[str, tuple[int, ...]]:
            return await sync(connection, self._options, joined, assignments)

        return await self._coordinators.ask(self._options.group_id, ask, lane=Lane.JOIN)

    async def _let_go(self) -> None:
        """Before joining: an eager member gives everything up, and one that was forgotten has lost everything."""
        if self._is_lost:
            await self._stop_heart()
            self._is_lost = False
            await self._handover.revoke_all(is_lost=True)
        elif not self._options.is_cooperative:
            await self._handover.revoke_all()

    async def _take(self, joined: Joined, given: dict[str, tuple[int, ...]]) -> None:
        if self._closing is not None:
            return
        self._last_assignment, self._last_generation = given, joined.identity.generation
        wanted = {TopicPartition(topic, number) for topic, numbers in given.items() for number in numbers}
        going = self._subscription.assigned.keys() - wanted
        await self._handover.revoke(going)
        await self._handover.assign(wanted - self._subscription.assigned.keys())
        if going:
            self.request_rejoin("partitions were given up that others wait for")

    # Staying in it.

    def _hear(self, identity: Identity, error: KafkaError | None) -> None:
        """What heartbeats brought."""
        if error is None:
            self._lose_silently()
        elif error.code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._follow_call()
        elif error.code in _FORGOTTEN:
            self.doubt(identity, error.code)
        else:
            self._give_up(error)

    async def _stop_heart(self) -> None:
        if self._heart is not None:
            await self._heart.stop()

    def _follow_call(self) -> None:
        """The group rebalances, and waits for this member."""
        self._is_called = True
        self._is_stable = False
        self._wanted.notify()

    def _lose(self, reason: str, *, keep_id: bool) -> None:
        """The group goes on without this member, which has to join anew."""
        log.warning("group %r: membership is lost, since %s; joining again", self._options.group_id, reason)
        member_id = self._identity.member_id if keep_id else ""
        self._identity = Identity(member_id, -1, self._options.group_instance_id)
        self._is_lost = True
        self._is_stable = False
        self._wanted.notify()

    def _lose_silently(self) -> None:
        self._lose(f"the coordinator was silent for {self._options.session_timeout_ms} ms", keep_id=True)

    def _understand(self, error: KafkaError) -> None:
        """What a refusal to join means: come again as somebody new, come again, or give up."""
        if error.code in _FORGOTTEN:
            self.doubt(self._identity, error.code)
        elif error.retriable and self._identity.is_member and self._heart is not None and self._heart.has_ended:
            self._lose_silently()
        elif error.code is not ErrorCode.REBALANCE_IN_PROGRESS and not error.retriable:
            raise error

    # The end.

    def _give_up(self, error: KafkaError) -> None:
        self._fatal = error
        self._wanted.notify()

    async def _end(self, error: Exception) -> None:
        """The membership cannot go on: tell the user, and do not keep the group waiting."""
        log.error("group %r: membership has ended: %s", self._options.group_id, error)
        self.failure = error
        await self._stop_heart()
        self._report(error)
        self._changed.notify()
        await self._handover.revoke_all(is_lost=True)
        await self._leave(f"the membership has failed: {error}")

    async def _close(self, reason: str, is_lost: bool) -> None:
        # A join that is on its way is let be: the last commit may need the identity that it brings.
        await self._handover.revoke_all(is_lost=is_lost or self._is_lost, is_last=True)
        await self._learn_id()
        await stop(self._tasks)
        await self._stop_heart()
        await self._leave(reason)
        self._changed.notify()

    async def _learn_id(self) -> None:
        """Wait for the id that the coordinator is about to give: the group would wait for whoever it was given to."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LEARN_ID_TIMEOUT_S):
                while self._is_joining and not self._identity.member_id:
                    await self._changed.wait()

    async def _leave(self, reason: str) -> None:
        group_id = self._options.group_id
        identity, self._identity = self._identity, Identity(instance_id=self._options.group_instance_id)
        # A static member comes back under its name, and gets the same partitions; that is what it is for.
        if not identity.member_id or identity.instance_id is not None:
            return
        try:
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                await self._cluster.retrying(
                    lambda: self._coordinators.ask(
                        group_id, lambda connection: leave(connection, group_id, identity, reason)
                    ),
                    timeout_ms=LEAVE_RETRY_MS,
                )
        except (KafkaError, TimeoutError) as error:
            log.info("group %r: left without a word: %s", group_id, error)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return {topic: tuple(numbers) for topic, numbers in found.items()}
