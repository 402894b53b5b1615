"""Committing by itself what the user is done with."""

import asyncio
import logging

from ottla.client.consumer.membership.commits import Commits
from ottla.client.consumer.membership.limit import Limit
from ottla.client.consumer.subscription import Subscription
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import KafkaError

LAST_COMMIT_TIMEOUT_S = 5.0
"""How long a rebalance or the end of a consumer waits for its last commit."""

log = logging.getLogger(__name__)


class AutoCommit:
    """Commits every so often, and before partitions go away. A failure is logged: the next commit makes up for it."""

    def __init__(self, commits: Commits, subscription: Subscription, limit: Limit, interval_ms: int | None) -> None:
        self._commits = commits
        self._subscription = subscription
        self._limit = limit
        self._interval_ms = interval_ms
        """None if the user commits himself."""
        self._committed: dict[TopicPartition, OffsetAndMetadata] = {}

    async def run(self) -> None:
        """Commit until cancelled."""
        while self._interval_ms is not None:
            await asyncio.sleep(self._interval_ms / 1000)
            await self._commit(self._subscription.finished_positions(), may_wait=True)

    async def commit_last(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit positions in partitions that are about to go away."""
        if self._interval_ms is None:
            return
        try:
            # A listener has its share too.
            async with self._limit.within(LAST_COMMIT_TIMEOUT_S, share=0.5):
                await self._commit(offsets, may_wait=False)
        except TimeoutError:
            log.warning("positions were not committed in time; records will be read again")
        for partition in offsets:
            self._committed.pop(partition, None)

    async def _commit(self, offsets: dict[TopicPartition, OffsetAndMetadata], *, may_wait: bool) -> None:
        news = {place: position for place, position in offsets.items() if self._committed.get(place) != position}
        try:
            await self._commits.commit(news, may_wait=may_wait)
        except KafkaError as error:
            log.warning("positions were not committed: %s", error)
        else:
            self._committed.update(news)
