"""What a consumer is made of, put together: it starts and stops as one."""

import asyncio
from dataclasses import dataclass

from ottla.client.cluster import Cluster
from ottla.client.consumer.alone import Alone
from ottla.client.consumer.arrow import ArrowReader
from ottla.client.consumer.decoding import Decoder
from ottla.client.consumer.fetching import Fetcher, FetchOptions
from ottla.client.consumer.handout import Handout
from ottla.client.consumer.membership import ConsumerRebalanceListener, Group, GroupOptions
from ottla.client.consumer.membership.identity import in_listener
from ottla.client.consumer.positions import Positions
from ottla.client.consumer.replies import Replies
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import Start, Subscription
from ottla.client.coordinators import Coordinators
from ottla.client.errors import IllegalStateError
from ottla.client.offsets import IsolationLevel
from ottla.client.options import ClientOptions
from ottla.ports import Chance


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreOptions:
    """How a consumer reads."""

    client: ClientOptions
    fetch: FetchOptions
    group: GroupOptions | None
    reset: Start | None
    """Where to begin if there is no position, or one outside the log; None makes that an error."""
    isolation_level: IsolationLevel
    check_crcs: bool
    exclude_internal_topics: bool


class Core:
    """The inner works of a consumer: reads ahead from all brokers, and takes part in a group if it has one."""

    def __init__(self, options: CoreOptions, decoder: Decoder, chance: Chance) -> None:
        self.options = options
        self.listener: ConsumerRebalanceListener | None = None
        self.signal = Signal()
        self.subscription = Subscription()
        self.subscription.watch(self.signal.notify)
        self.handout = Handout(self.subscription, decoder, self.signal)
        self.group: Group | None = None
        enough_bytes = options.fetch.buffer_memory // 2
        self.arrow = ArrowReader(
            self.subscription, self.handout, check_crcs=options.check_crcs, enough_bytes=enough_bytes
        )
        self._chance = chance
        self._cluster: Cluster | None = None
        self._parts: list[Fetcher | Positions | Alone] = []
        self._stopping: asyncio.Task[None] | None = None

    @property
    def cluster(self) -> Cluster:
        """The cluster; raises unless the consumer runs."""
        self.handout.check_open()
        assert self._cluster is not None, "what is open was started"
        return self._cluster

    async def start(self) -> None:
        """Connect, and begin to read ahead."""
        if self._cluster is not None:
            raise IllegalStateError("the consumer was started before; make another one")
        cluster = self._cluster = Cluster(self.options.client, chance=self._chance)
        try:
            await cluster.retrying(lambda: cluster.metadata([]))
        except BaseException:
            self._cluster = None
            await cluster.close()
            raise
        self._parts = self._build(cluster)
        self.handout.closed = False
        self.handout.on_call = self._on_call
        for part in self._parts:
            part.start()
        if self.group is not None:
            self.group.start()

    async def stop(self, *, finished: bool) -> None:
        """Leave the group, and end all that was started. What the user has in hand is finished, or not.

        It goes on to its end if whoever called it is cancelled.
        """
        if not self.handout.closed:
            if finished:
                self.subscription.user_returned()
            self.handout.closed = True
            self.signal.notify()
            self._stopping = asyncio.create_task(self._stop())
        # The end waits for the user's listener, so one that stops the consumer must not wait for the end.
        if self._stopping is not None and not in_listener.get():
            await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        assert self._cluster is not None, "what is stopped was started"
        try:
            if self.group is not None:
                await self.group.close()
        finally:
            self.subscription.withhold(list(self.subscription.assigned))
            for part in self._parts:
                await part.close()
            await self._cluster.close()

    def _on_call(self) -> None:
        if self.group is not None:
            self.group.came_back()
            if self.group.failure is not None:
                raise self.group.failure

    def _build(self, cluster: Cluster) -> list[Fetcher | Positions | Alone]:
        options, subscription, report = self.options, self.subscription, self.handout.report
        replies = Replies(cluster, subscription, resets=options.reset is not None)
        fetcher = Fetcher(cluster, subscription, options.fetch, self.signal, replies, report)
        parts: list[Fetcher | Positions | Alone] = [fetcher]
        if options.group is not None:
            self.group = Group(
                cluster,
                Coordinators(cluster),
                subscription,
                options.group,
                report=report,
                listener=self.listener,
                chance=self._chance,
            )
        else:
            alone = Alone(
                cluster,
                subscription,
                report,
                exclude_internal_topics=options.exclude_internal_topics,
                allow_auto_create_topics=options.fetch.allow_auto_create_topics,
            )
            parts.append(alone)
        positions = Positions(
            cluster,
            subscription,
            self.signal,
            reset=options.reset,
            isolation_level=options.isolation_level,
            committed=None if self.group is None else self.group.committed,
            back_off=replies.back_off,
        )
        return [*parts, positions]
