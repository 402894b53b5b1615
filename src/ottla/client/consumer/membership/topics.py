"""The topics that a member reads, and what changes about them."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from math import inf

from ottla.client.cluster import Cluster
from ottla.client.consumer.membership.options import GroupOptions
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import Subscription
from ottla.client.errors import check
from ottla.wire.api.metadata import MetadataResponse
from ottla.wire.errors import ErrorCode, KafkaError

MISSING_TOPIC_INTERVAL_S = 1.0
"""How often to look for topics that are subscribed to and do not exist yet."""

_NOT_THERE_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)

log = logging.getLogger(__name__)


class TopicWatch:
    """Finds the topics of a subscription, and tells when they change in a way that the group has to know."""

    def __init__(
        self, cluster: Cluster, subscription: Subscription, options: GroupOptions, changed: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._options = options
        self._changed = changed
        self._news = Signal()
        self._found: frozenset[str] | None = None
        self._counts: dict[str, int] | None = None
        self._watched: frozenset[str] = frozenset()
        self._looked_at = 0.0

    async def look(self) -> frozenset[str]:
        """The topics that are subscribed to now. A broker that is set up to do so creates those that do not exist."""
        subscription = self._subscription
        if subscription.pattern is None:
            names = subscription.topics or frozenset()
            create = self._options.allow_auto_create_topics
            response = await self._cluster.metadata(sorted(names), create=create)
            _counts(response)
            subscription.missing.look(response)
            self._found = None
            return names
        response = await self._cluster.metadata(None)
        self._found = self._matching(response)
        subscription.matched = self._found
        self._looked()
        return self._found

    async def count(self, topics: Iterable[str]) -> dict[str, int]:
        """How many partitions topics have, for a leader that has to share them out; and watch them from now on."""
        watched = frozenset(topics)
        counts = _counts(await self._cluster.metadata(sorted(watched))) if watched else {}
        self._watched, self._counts = watched, counts
        self._looked()
        return counts

    def stop_counting(self) -> None:
        """Another member leads the group, and watches for all."""
        self._watched, self._counts = frozenset(), None

    async def run(self) -> None:
        """Watch until cancelled."""
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            wait_s = self._looked_at + self._interval_s() - loop.time()
            if wait_s > 0:
                await self._news.wait(None if wait_s == inf else wait_s)
                continue
            try:
                await self._compare()
                failures = 0
            except KafkaError as error:
                failures += 1
                log.debug("topics could not be looked at: %s", error)
                await asyncio.sleep(self._cluster.backoff_s(failures))

    def _interval_s(self) -> float:
        if self._found is None and self._counts is None:
            return inf
        age_s = self._cluster.options.metadata_max_age_ms / 1000
        is_missing = self._counts is not None and self._counts.keys() < self._watched
        return min(age_s, MISSING_TOPIC_INTERVAL_S) if is_missing else age_s

    def _looked(self) -> None:
        self._looked_at = asyncio.get_running_loop().time()
        self._news.notify()

    async def _compare(self) -> None:
        if self._found is not None and self._subscription.pattern is not None:
            found = self._matching(await self._cluster.metadata(None))
            if self._found is not None and found != self._found:
                self._found = found
                self._changed("other topics match the pattern")
        watched = self._watched
        if self._counts is not None and watched:
            counts = _counts(await self._cluster.metadata(sorted(watched)))
            # A rebalance may have come in between.
            if watched == self._watched and counts != self._counts:
                self._counts = counts
                self._changed("the partitions of topics have changed")
        self._looked()

    def _matching(self, response: MetadataResponse) -> frozenset[str]:
        return frozenset(
            topic.name
            for topic in response.topics
            if topic.name is not None
            and not topic.error_code
            and self._subscription.wants(topic.name)
            and not (topic.is_internal and self._options.exclude_internal_topics)
        )


def _counts(response: MetadataResponse) -> dict[str, int]:
    """Partitions by topic, without those topics that do not exist."""
    counts: dict[str, int] = {}
    for topic in response.topics:
        if topic.error_code not in _NOT_THERE_YET:
            check(topic.error_code, f"topic {topic.name!r}")
            if topic.partitions:
                counts[topic.name or ""] = len(topic.partitions)
    return counts
