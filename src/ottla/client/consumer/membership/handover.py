"""What happens to partitions that the group gives to this member, or takes from it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any

from ottla.client.consumer.membership.limit import Limit
from ottla.client.consumer.membership.listener import tell
from ottla.client.consumer.subscription import Mode, Subscription
from ottla.client.types import OffsetAndMetadata, TopicPartition

PATIENCE_S = 5.0
"""How long a rebalance waits for the user to come back from records that he has in hand."""

log = logging.getLogger(__name__)

CommitFinished = Callable[[dict[TopicPartition, OffsetAndMetadata]], Awaitable[None]]
Report = Callable[[BaseException], None]


class Handover:
    """Gives and takes partitions in the order that loses nothing and reads nothing twice, one step after another.

    A step that has begun is finished, also if whoever asked for it is cancelled meanwhile.
    """

    def __init__(
        self,
        subscription: Subscription,
        *,
        commit: CommitFinished,
        report: Report,
        limit: Limit | None = None,
        patience_s: float = PATIENCE_S,
        listener: Any = None,
    ) -> None:
        self.listener = listener
        """The user's; see `ConsumerRebalanceListener`."""
        self._subscription = subscription
        self._commit = commit
        self._report = report
        self._limit = limit or Limit()
        self._patience_s = patience_s
        self._one_by_one = asyncio.Lock()

    async def revoke(
        self, partitions: Collection[TopicPartition], *, is_lost: bool = False, is_last: bool = False
    ) -> None:
        """Give partitions up. They are lost if the group may have given them away already.

        With `is_last` the user wants no more records, so he is not waited for.
        """
        if partitions:
            await self._finish(lambda: self._revoke(partitions, is_lost, is_last))

    async def revoke_all(self, *, is_lost: bool = False, is_last: bool = False) -> None:
        """Give up all that is there once earlier steps are done."""

        async def step() -> None:
            # What the user has chosen himself is not the group's to take.
            if self._subscription.assigned and self._subscription.mode is Mode.TOPICS:
                await self._revoke(list(self._subscription.assigned), is_lost, is_last)

        await self._finish(step)

    async def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Take partitions, perhaps none: a listener hears of every rebalance."""
        await self._finish(lambda: self._assign(partitions))

    async def tell_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Tell the listener of partitions that the user has given up himself."""
        if partitions:
            await self._tell("on_partitions_revoked", partitions)

    async def _finish(self, step: Callable[[], Coroutine[None, None, None]]) -> None:
        # The lock is the step's, which may live longer than its caller.
        await self._one_by_one.acquire()
        running = asyncio.create_task(step())
        running.add_done_callback(lambda _: self._one_by_one.release())
        await asyncio.shield(running)

    async def _revoke(self, partitions: Collection[TopicPartition], is_lost: bool, is_last: bool) -> None:
        subscription = self._subscription
        subscription.withhold(partitions)
        if not is_lost:
            if not is_last and not await subscription.wait_until_returned(partitions, self._patience_s):
                log.warning(
                    "records of %s are in hand for %g s while the group rebalances; another member will read them too",
                    _text(partitions),
                    self._patience_s,
                )
            await self._commit(subscription.finished_positions(partitions))
        log.info("%s %s", "lost" if is_lost else "giving up", _text(partitions))
        await self._tell("on_partitions_lost" if is_lost else "on_partitions_revoked", partitions)
        subscription.remove(partitions)

    async def _assign(self, partitions: Collection[TopicPartition]) -> None:
        if self._subscription.mode is not Mode.TOPICS:
            return
        log.info("now reading also: %s", _text(partitions) or "nothing")
        self._subscription.add(partitions)
        await self._tell("on_partitions_assigned", partitions)
        self._subscription.release(partitions)

    async def _tell(self, method: str, partitions: Collection[TopicPartition]) -> None:
        if self.listener is None:
            return
        try:
            async with self._limit.within() as timeout:
                await tell(self.listener, method, partitions)
        except Exception as error:  # noqa: BLE001 - it is the user's, and reaches him at his next call
            if timeout.expired():
                log.warning("%s of the listener was not done in time, and is left", method)
            else:
                self._report(error)


def _text(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
