"""Handing records out: whose turn it is, what the user waits for, and what he must be told."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

from ottla.client.consumer.decoding import Decoder
from ottla.client.consumer.runs import Run
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import PartitionState, Subscription
from ottla.client.errors import ClientClosedError
from ottla.client.types import ConsumerRecord, TopicPartition

T = TypeVar("T")

log = logging.getLogger(__name__)

Partitions = tuple[TopicPartition, ...]
"""Those that records are wanted of; of any if there is none."""


class Handout:
    """What the user's calls for records come to."""

    def __init__(self, subscription: Subscription, decoder: Decoder, signal: Signal) -> None:
        self.closed = True
        self.on_call: Callable[[], None] = lambda: None
        """Called when the user comes for records. Raises what he must know each time."""
        self._subscription = subscription
        self._decoder = decoder
        self._signal = signal
        self._has_worked = False
        self._round: deque[PartitionState] = deque()
        self._last_turn = 0
        self._failures: deque[BaseException] = deque()

    def report(self, failure: BaseException) -> None:
        """Have something raised at the user's next call, or in the one that he waits in."""
        if self.closed:
            # There will be no such call.
            log.error("while the consumer stopped: %r", failure, exc_info=failure)
            return
        self._failures.append(failure)
        self._signal.notify()

    def check_open(self) -> None:
        """Raise if records cannot be read any more, or not yet."""
        if self.closed:
            raise ClientClosedError("the consumer does not run; start it with start(), or with `async with`")

    def raise_failures(self, partitions: Partitions = ()) -> None:
        """Raise what the user must be told. What concerns a partition is then tried again."""
        self.check_open()
        self.on_call()
        if self._failures:
            raise self._failures.popleft()
        for partition, state in list(self._subscription.failed.items()):
            if state.error is None or self._subscription.assigned.get(partition) is not state:
                del self._subscription.failed[partition]
            elif not state.has_records and (not partitions or partition in partitions):
                del self._subscription.failed[partition]
                error, state.error = state.error, None
                self._signal.notify()
                self._subscription.unsettled.notify()
                raise error

    async def wait_for(self, take: Callable[[], T | None], partitions: Partitions, timeout_s: float | None) -> T | None:
        """What `take` gives as soon as it gives something; None if that takes too long."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        if self._has_worked:
            # Where records come without end nothing else would ever run.
            self._has_worked = False
            await asyncio.sleep(0)
        self._subscription.user_returned()
        self._subscription.remember_taker()
        self._subscription.calls_waiting += 1
        try:
            while True:
                self.raise_failures(partitions)
                if (found := take()) is not None:
                    return found
                wait_s = None if deadline is None else deadline - loop.time()
                if wait_s is not None and wait_s <= 0:
                    await asyncio.sleep(0)
                    return take()
                await self._signal.wait(wait_s)
        finally:
            self._subscription.calls_waiting -= 1

    # What there is.

    def turns(self, partitions: Partitions = ()) -> Iterator[PartitionState]:
        """Partitions that have something to hand out, those first whose turn it is."""
        assigned = self._subscription.assigned
        if partitions:
            # All of them first: after one was taken it is too late to say that the next is not assigned.
            states = [self._subscription.state(partition) for partition in partitions]
            for state in filter(_is_ready, sorted(states, key=_turn)):
                self._last_turn += 1
                state.turn = self._last_turn
                yield state
            return
        for _ in range(2):
            while self._round:
                state = self._round.popleft()
                if _is_ready(state) and assigned.get(state.partition) is state:
                    yield state
            self._round.extend(filter(_is_ready, assigned.values()))

    def return_turn(self, state: PartitionState, partitions: Partitions = ()) -> None:
        """A partition whose turn it was, of all or of those that were asked for, was not needed; it is the next."""
        if partitions:
            state.turn = 0
        else:
            self._round.appendleft(state)

    def there_is_room(self) -> None:
        """Something was taken, so that more can be fetched."""
        self._has_worked = True
        self._signal.notify()

    def ready_run(self, partitions: Partitions = ()) -> tuple[PartitionState, Run] | None:
        """The next records that are there."""
        for state in self.turns(partitions):
            if (run := self._run_of(state)) is not None:
                return state, run
        return None

    def ready_record(self, partitions: Partitions = ()) -> ConsumerRecord | None:
        """The next record that is there. It is in the user's hand then."""
        found = self.ready_run(partitions)
        if found is None:
            return None
        state, run = found
        self._subscription.hand_out(state)
        if run.left > 1:
            # A partition has its turn until the run is at its end.
            self.return_turn(state, partitions)
        return next(run.iterator)

    def ready_records(
        self, partitions: Partitions = (), limit: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]] | None:
        """Records that are there, of each partition some. They are in the user's hand then."""
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        for state in self.turns(partitions):
            if state.partition in found or limit == 0:
                self.return_turn(state, partitions)
                break
            try:
                if self._run_of(state) is None:
                    continue
            except Exception as error:
                if not found:
                    raise
                # What was taken of others must not be lost. The user is told the next time.
                self._subscription.fail(state, error)
                break
            self._subscription.hand_out(state)
            found[state.partition] = state.take(limit)
            if limit is not None:
                limit -= len(found[state.partition])
        return found or None

    def _run_of(self, state: PartitionState) -> Run | None:
        if state.run is not None and state.run.left:
            return state.run
        try:
            while state.chunks:
                if (run := self._decoder.begin_run(state)) is not None:
                    return run
            return None
        finally:
            self.there_is_room()


def _turn(state: PartitionState) -> int:
    return state.turn


def _is_ready(state: PartitionState) -> bool:
    return state.is_readable and state.has_records
