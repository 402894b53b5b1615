"""Membership in Kafka 4's consumer protocol, in which the coordinator shares out.

One task sends heartbeats: they tell what this member wants and has, and bring what it should have. Another does what
they brought, so that neither the user nor his listener holds up a heartbeat.
"""

import asyncio
import logging
from base64 import urlsafe_b64encode
from collections.abc import Iterable

from ottla.client.cluster import Cluster
from ottla.client.consumer.membership.announcement import (
    JOINS,
    LEAVES,
    LEAVES_FOR_NOW,
    Announcement,
    Place,
    Wish,
    for_broker,
    places,
)
from ottla.client.consumer.membership.handover import Handover, Report
from ottla.client.consumer.membership.heartbeat import Pulse
from ottla.client.consumer.membership.identity import Identity
from ottla.client.consumer.membership.options import GroupOptions
from ottla.client.consumer.membership.tasks import spawn, stop
from ottla.client.consumer.membership.topics import TopicWatch
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import Subscription
from ottla.client.coordinators import Coordinators
from ottla.client.errors import check, error_of
from ottla.client.types import TopicPartition
from ottla.net import Connection
from ottla.ports import Chance
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.schema import schema_of

LEAVE_TIMEOUT_S = 2.0
LEAVE_RETRY_MS = 1_000
"""How long to try again to say goodbye. A group that does not hear it waits for the end of the session."""
FIRST_VERSION_WITH_REGEX = 1

_FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)

log = logging.getLogger(__name__)


class ModernMembership:
    """Joins a group, follows its coordinator, and leaves. See `Membership`."""

    def __init__(
        self,
        cluster: Cluster,
        coordinators: Coordinators,
        subscription: Subscription,
        options: GroupOptions,
        handover: Handover,
        report: Report,
        chance: Chance,
    ) -> None:
        self.failure: BaseException | None = None
        self._cluster = cluster
        self._coordinators = coordinators
        self._subscription = subscription
        self._options = options
        self._handover = handover
        self._report = report
        self._topics = TopicWatch(cluster, subscription, options, self.request_rejoin)
        self._announcement = Announcement(
            options.group_id,
            instance_id=options.group_instance_id,
            rack_id=options.client_rack,
            rebalance_timeout_ms=options.rebalance_patience_ms,
            assignor=options.group_remote_assignor,
        )
        self._own_id = urlsafe_b64encode(chance.uuid()).decode().rstrip("=")
        self._member_id = ""
        self._epoch = JOINS
        self._target: frozenset[Place] = frozenset()
        """What the coordinator wants this member to have."""
        self._owned: frozenset[Place] = frozenset()
        self._names: dict[bytes, str] = {}
        """Of the topics in either of them."""
        self._broker_matches = True
        """Whether a pattern can be left to the broker."""
        self._is_wish_old = True
        self._wish = Wish()
        self._pulse: Pulse | None = None
        self._urgent = Signal()
        self._retargeted = Signal()
        self._changed = Signal()
        self._beating: asyncio.Task[None] | None = None
        self._reconciling: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def identity(self) -> Identity:
        """Who the member is now."""
        instance_id = self._options.group_instance_id
        return Identity(self._member_id, self._epoch, instance_id) if self._epoch > 0 else Identity()

    def start(self) -> None:
        """Begin to join."""
        self._beating = spawn(self._run(), self._report)
        self._watching = spawn(self._topics.run(), self._report)

    def request_rejoin(self, reason: str) -> None:
        """Tell the coordinator that the subscription has changed."""
        log.info("group %r: telling the coordinator, since %s", self._options.group_id, reason)
        self._is_wish_old = True
        self._hurry()

    def doubt(self, identity: Identity, code: int) -> None:
        """The coordinator has refused something of the member that had this identity: hear what it has to say."""
        if identity == self.identity:
            self._hurry()

    async def settled(self, since: Identity) -> None:
        """Wait until the identity is another one than that, and the member is in the group."""
        while self.failure is None and self._closing is None and (self._epoch <= 0 or self.identity == since):
            await self._changed.wait()

    async def renewed(self, since: Identity) -> None:
        """Wait for the next epoch. Heartbeats bring it, whatever is handed over meanwhile."""
        while self.failure is None and self._epoch > 0 and self.identity == since:
            await self._changed.wait()

    async def close(self, *, reason: str, is_lost: bool = False) -> None:
        """Give the partitions back and leave."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(reason, is_lost))
        await asyncio.shield(self._closing)

    # Heartbeats.

    async def _run(self) -> None:
        options, loop = self._options, asyncio.get_running_loop()
        # How often to send them is the coordinator's to say; the first is due at once.
        pulse = self._pulse = Pulse(
            options.heartbeat_interval_ms / 1000, options.session_timeout_ms / 1000, loop.time()
        )
        pulse.hurry(loop.time())
        try:
            while True:
                while (wait_s := min(pulse.wait_s(loop.time()), pulse.left_s(loop.time()))) > 0:
                    await self._urgent.wait(wait_s)
                if pulse.has_ended(loop.time()):
                    # One that has not joined yet has nothing to lose, and tries on.
                    if self._epoch > 0:
                        await self._lose(f"the coordinator was silent for {options.session_timeout_ms} ms")
                    pulse.answered(loop.time())
                    pulse.hurry(loop.time())
                await self._beat(pulse)
        except Exception as error:  # noqa: BLE001 - all that ends a membership reaches the user
            await self._end(error)

    async def _beat(self, pulse: Pulse) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(pulse.left_s(loop.time())):
                response = await self._coordinators.ask(self._options.group_id, self._send)
        except TimeoutError:
            self._announcement.unheard()
        except KafkaError as error:
            self._announcement.unheard()
            if error.code in _FENCED:
                await self._lose(f"the coordinator says {error.code.name}")
                pulse.answered(loop.time())
                pulse.hurry(loop.time())
            elif error.code is ErrorCode.INVALID_REGULAR_EXPRESSION and self._wish.regex is not None:
                log.info("group %r: matching the pattern on this side: %s", self._options.group_id, error)
                self._broker_matches, self._is_wish_old = False, True
                pulse.hurry(loop.time())
            elif error.retriable:
                log.info("group %r: no heartbeat: %s", self._options.group_id, error)
                pulse.failed(loop.time(), self._cluster.backoff_s(pulse.failures + 1))
            else:
                raise
        else:
            if response.heartbeat_interval_ms > 0:
                pulse.interval_s = response.heartbeat_interval_ms / 1000
            pulse.answered(loop.time())
            self._hear(response)
            # Something may have changed while the answer was on its way.
            if self._is_wish_old or self._announcement.is_news(self._wish, self._owned):
                pulse.hurry(loop.time())

    async def _send(self, connection: Connection) -> ConsumerGroupHeartbeatResponse:
        key = schema_of(ConsumerGroupHeartbeatRequest).key
        if key not in connection.offer:
            message = f"{connection.broker} does not offer group_protocol 'consumer'; use 'classic'"
            raise error_of(ErrorCode.UNSUPPORTED_VERSION, message)
        version = connection.version_of(ConsumerGroupHeartbeatRequest)
        if self._is_wish_old:
            self._is_wish_old = False
            try:
                self._wish = await self._find_wish(version)
            except BaseException:
                self._is_wish_old = True
                raise
        # Before version 1 it is the coordinator who gives out ids.
        if version >= FIRST_VERSION_WITH_REGEX and not self._member_id:
            self._member_id = self._own_id
        wish, owned = self._wish, self._owned
        request = self._announcement.request(self._member_id, self._epoch, wish, owned)
        timeout_ms = min(self._cluster.request_timeout_ms, self._options.session_timeout_ms)
        response: ConsumerGroupHeartbeatResponse = await connection.request(request, timeout_ms=timeout_ms)
        who = f"heartbeat of {self._member_id!r} in group {self._options.group_id!r}"
        check(response.error_code, f"{who}: {response.error_message}" if response.error_message else who)
        self._announcement.heard(wish, owned)
        return response

    async def _find_wish(self, version: int) -> Wish:
        pattern = self._subscription.pattern
        left_to_broker = self._broker_matches and self._options.exclude_internal_topics
        if pattern is not None and left_to_broker and version >= FIRST_VERSION_WITH_REGEX:
            regex = for_broker(pattern)
            if regex is not None:
                return Wish(regex=regex)
        return Wish(await self._topics.look())

    def _hear(self, response: ConsumerGroupHeartbeatResponse) -> None:
        if response.member_id:
            self._member_id = response.member_id
        if response.member_epoch != self._epoch:
            self._epoch = response.member_epoch
            self._changed.notify()
        if response.assignment is not None:
            self._target = places(response.assignment)
            self._retargeted.notify()
        is_idle = self._reconciling is None or self._reconciling.done()
        if self._target != self._owned and is_idle and self._closing is None:
            self._reconciling = spawn(self._reconcile(), self._report)

    def _hurry(self) -> None:
        if self._pulse is not None:
            self._pulse.hurry(asyncio.get_running_loop().time())
        self._urgent.notify()

    # Doing what they brought.

    async def _reconcile(self) -> None:
        """Give up what must go, say so, and take what has come; until nothing is left to do."""
        failures = 0
        while self._target != self._owned:
            going = self._owned - self._target
            if going:
                await self._handover.revoke(self._partitions(going))
                self._own(self._owned - going)
                continue
            coming = await self._named(self._target - self._owned)
            if coming:
                failures = 0
                self._match(self._owned | coming)  # before the listener, who may ask what is subscribed to
                await self._handover.assign(self._partitions(coming))
                self._own(self._owned | coming)
            else:
                failures += 1
                await self._retargeted.wait(self._cluster.backoff_s(failures))

    def _own(self, owned: frozenset[Place]) -> None:
        self._owned = owned
        self._match(owned)
        self._hurry()

    def _match(self, places: frozenset[Place]) -> None:
        """What the broker was left to match is known by what it assigns."""
        if self._wish.regex is not None:
            self._subscription.matched = frozenset(self._names[place.topic_id] for place in places)

    async def _named(self, wanted: frozenset[Place]) -> frozenset[Place]:
        """Those whose topics are known by name. News of a topic may reach the coordinator before other brokers."""
        ids = {place.topic_id for place in wanted}
        picture = self._cluster.picture
        if any(not picture.topic_name(topic_id) for topic_id in ids):
            try:
                topics = self._subscription.topics
                await self._cluster.metadata(None if topics is None else sorted(topics))
            except KafkaError as error:
                log.info("group %r: topics could not be looked at: %s", self._options.group_id, error)
        self._names.update((topic_id, name) for topic_id in ids if (name := picture.topic_name(topic_id)))
        return frozenset(place for place in wanted if place.topic_id in self._names)

    def _partitions(self, some: Iterable[Place]) -> list[TopicPartition]:
        return [TopicPartition(self._names[place.topic_id], place.partition) for place in some]

    async def _lose(self, reason: str) -> None:
        """The group goes on without this member, which has to join anew."""
        log.warning("group %r: membership is lost, since %s; joining again", self._options.group_id, reason)
        self._epoch = JOINS
        self._changed.notify()
        await stop([self._reconciling])
        await self._handover.revoke_all(is_lost=True)
        self._owned = self._target = frozenset()
        self._announcement.unheard()

    # The end.

    async def _end(self, error: Exception) -> None:
        """The membership cannot go on: tell the user, and do not keep the group waiting."""
        log.error("group %r: membership has ended: %s", self._options.group_id, error)
        self.failure = error
        await stop([self._reconciling])
        self._report(error)
        self._changed.notify()
        await self._handover.revoke_all(is_lost=True)
        await self._leave()

    async def _close(self, reason: str, is_lost: bool) -> None:
        log.info("group %r: leaving, since %s", self._options.group_id, reason)
        # Heartbeats go on while the last positions are committed.
        await stop([self._reconciling, self._watching])
        await self._handover.revoke_all(is_lost=is_lost, is_last=True)
        await stop([self._beating])
        await self._leave()
        self._changed.notify()

    async def _leave(self) -> None:
        if self._epoch <= 0:
            return
        self._epoch = JOINS
        epoch = LEAVES if self._options.group_instance_id is None else LEAVES_FOR_NOW
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._options.group_id,
            member_id=self._member_id,
            instance_id=self._options.group_instance_id,
            member_epoch=epoch,
        )
        try:
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                response = await self._cluster.retrying(
                    lambda: self._coordinators.ask(
                        self._options.group_id, lambda connection: connection.request(request)
                    ),
                    timeout_ms=LEAVE_RETRY_MS,
                )
                check(response.error_code, f"leaving group {self._options.group_id!r}")
        except (KafkaError, TimeoutError) as error:
            log.info("group %r: left without a word: %s", self._options.group_id, error)
