"""Reading topics without a group: all partitions of them, those included that come later."""

import asyncio
import logging
from collections.abc import Callable

from ottla.client.cluster import Cluster
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import Mode, Subscription
from ottla.client.errors import error_of
from ottla.client.outage import Outage
from ottla.client.types import TopicPartition
from ottla.wire.errors import KafkaError

log = logging.getLogger(__name__)


class Alone:
    """Gives a consumer that has no group all partitions of the topics that it subscribes to."""

    def __init__(
        self,
        cluster: Cluster,
        subscription: Subscription,
        report: Callable[[BaseException], None],
        *,
        exclude_internal_topics: bool,
        allow_auto_create_topics: bool,
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._report = report
        self._exclude_internal_topics = exclude_internal_topics
        self._create = allow_auto_create_topics
        self._changed = Signal()
        self._outage = Outage(log, "looking up the topics that are subscribed to")
        self._task: asyncio.Task[None] | None = None
        subscription.watch(self._changed.notify)

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._keep(), name="ottla consumer: topics")

    async def close(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep(self) -> None:
        failures = 0
        while True:
            subscription = self._subscription
            before = (subscription.mode, subscription.topics, subscription.pattern)
            wait_s: float | None = None
            if subscription.mode is Mode.TOPICS:
                try:
                    found_all = await self._look()
                    failures = 0 if found_all else failures + 1
                    self._outage.over()
                except Exception as error:  # noqa: BLE001 - the user is told
                    failures += 1
                    if not (isinstance(error, KafkaError) and error.retriable):
                        self._report(error)
                    self._outage.met(error)
                max_age_s = self._cluster.options.metadata_max_age_ms / 1000
                wait_s = self._cluster.backoff_s(failures) if failures else max_age_s
            if before == (subscription.mode, subscription.topics, subscription.pattern):
                await self._changed.wait(wait_s)

    async def _look(self) -> bool:
        """Take the partitions that there are; False if a topic is missing."""
        subscription = self._subscription
        names = subscription.topics
        response = await self._cluster.metadata(names, create=self._create and names is not None)
        if subscription.topics != names or subscription.mode is not Mode.TOPICS:
            return True
        subscription.missing.look(response)
        found: set[TopicPartition] = set()
        matched: set[str] = set()
        complete = True
        for topic in response.topics:
            name = topic.name or ""
            hidden = topic.is_internal and self._exclude_internal_topics and names is None
            if not subscription.wants(name) or hidden:
                continue
            if topic.error_code:
                error = error_of(topic.error_code, f"topic {name!r}")
                complete = False
                if not error.retriable:
                    self._report(error)
                # What was read before is read on: the topic may only be unknown to a broker that is behind.
                found.update(one for one in subscription.assigned if one.topic == name)
                continue
            matched.add(name)
            found.update(TopicPartition(name, one.partition_index) for one in topic.partitions)
        subscription.matched = frozenset(matched) if names is None else frozenset()
        gone = [one for one in subscription.assigned if one not in found]
        new = sorted(found - subscription.assigned.keys())
        if gone:
            subscription.remove(gone)
        if new:
            subscription.add(new)
            subscription.release(new)
        return complete
