"""One partition of the offsets topic, and the groups that are kept in it.

The groups decide, and say what is to be written down (`ottla.coordinator`). Here it is appended and replayed, and the
replies leave when it is committed: at once and without a task on the way, unless the flush policy has them wait.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.request import Caller
from ottla.coordinator.outcome import Call, Outcome, Record, Ticket
from ottla.ports import Clock
from ottla.record.batch import Batch
from ottla.record.build import BatchBuilder
from ottla.record.compression import Codec
from ottla.replica.partition import Partition
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.coordinator.group.shard import GroupShard

Method = Callable[["GroupShard", int, Call], Outcome]
"""A method of the groups, such as `GroupShard.heartbeat`."""

Later = Coroutine[Any, Any, Any]
"""A reply that comes later. None if its caller has gone; KafkaError if the shard has failed."""

log = logging.getLogger("ottla.groups")


def gone() -> KafkaError:
    """For those who asked a coordinator that is no more, or not for now."""
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator has stopped; look for it again")


class Shard:
    """Runs the methods of the groups of one partition, one after the other.

    `find_partition` makes the partition's files if there are none, so it is called when there is something to write.
    If writing fails, everyone who waits is told so, `on_failure` is called, and the shard is of no more use.
    """

    __slots__ = (
        "_clock",
        "_codec",
        "_find_partition",
        "_groups",
        "_on_failure",
        "_stopped",
        "_timer",
        "_timer_ms",
        "_uncommitted",
        "_waiting",
        "name",
    )

    def __init__(
        self,
        name: str,
        groups: "GroupShard",
        find_partition: Callable[[], Partition],
        on_failure: Callable[[], None],
        clock: Clock,
        codec: Codec,
    ) -> None:
        self.name = name
        self._groups = groups
        self._find_partition = find_partition
        self._on_failure = on_failure
        self._clock = clock
        self._codec = codec
        self._waiting: dict[Ticket, asyncio.Future[Any]] = {}
        self._uncommitted: asyncio.Future[None] | None = None
        """Done when the last thing that was appended is committed."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._stopped = False

    def execute(
        self, method: Method, call: Call, caller: Caller, *, if_too_large: ErrorCode | None = None
    ) -> Any | Later:
        """The reply to a call, or a coroutine where it has to be waited for; KafkaError if it cannot be had.

        A method that leaves nothing behind but its records gives a code `if_too_large` for them to be refused with
        where they do not fit in a segment; those of others get a segment for themselves.
        """
        now_ms = self._clock.now_ms()
        try:
            outcome = method(self._groups, now_ms, call)
        except KafkaError:
            raise
        except Exception as error:
            # Who knows what it has left half done: everything is loaded again.
            log.exception("%s: its groups failed", self.name)
            self._fail()
            raise gone() from error
        reply = outcome.reply
        waits = isinstance(reply, Ticket)
        if waits:
            self._waiting[reply] = asyncio.get_running_loop().create_future()
        self._carry_out(outcome, now_ms, if_too_large)
        if waits:
            future = self._waiting.get(reply)
            if future is None:
                # Its own call was what the ticket waited for.
                return next(answer for ticket, answer in outcome.released if ticket is reply)
            return self._wait(reply, future, caller)
        return reply if self._uncommitted is None else self._reply_when(self._uncommitted, reply)

    def run(self, method: Callable[["GroupShard", int], Outcome]) -> None:
        """Have the groups do something that nobody has asked for. Failures are the shard's."""
        if self._stopped:
            return
        now_ms = self._clock.now_ms()
        try:
            self._carry_out(method(self._groups, now_ms), now_ms, None)
        except KafkaError:
            # It has been told to whom it concerns.
            return
        except Exception:
            log.exception("%s: its groups failed", self.name)
            self._fail()

    @property
    def groups(self) -> "GroupShard":
        """The groups, to look at."""
        return self._groups

    def configure(self, change: Callable[["GroupShard"], None]) -> None:
        """Tell the groups of changed settings."""
        change(self._groups)

    def stop(self) -> None:
        """Answer everyone who waits, and do no more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for future in self._waiting.values():
            if not future.done():
                future.set_result(gone())
        self._waiting.clear()

    # How an outcome is carried out.

    def _carry_out(self, outcome: Outcome, now_ms: int, if_too_large: ErrorCode | None) -> None:
        if outcome.records:
            self._write(outcome.records, now_ms, if_too_large)
        if outcome.released:
            if self._uncommitted is None:
                self._release(outcome.released)
            else:
                self._uncommitted.add_done_callback(partial(self._release_later, outcome.released))
        self._set_timer(now_ms)

    def _write(self, records: list[Record], now_ms: int, if_too_large: ErrorCode | None) -> None:
        encoded = [record.encoded() for record in records]
        try:
            partition = self._find_partition()
            batch = self._batch(encoded, now_ms)
            if if_too_large is not None and batch.size > partition.config.segment_bytes:
                limit = partition.config.segment_bytes
                raise _TooLargeError(if_too_large, f"{batch.size} bytes are more than a segment's {limit}")
            partition.check_in_sync()
            next_offset = partition.append_own(batch, now_ms).last_offset + 1
            for key, value in encoded:
                self._groups.replay(key, value)
            waits = partition.committed(next_offset)
        except _TooLargeError:
            raise
        except Exception as error:
            if isinstance(error, KafkaError | OSError):
                log.error("%s: what its groups have decided could not be written: %s", self.name, error)
            else:
                log.exception("%s: what its groups have decided could not be replayed", self.name)
            self._fail()
            raise gone() from error
        if waits is not None:
            self._uncommitted = asyncio.ensure_future(waits)
            self._uncommitted.add_done_callback(self._committed)

    def _batch(self, encoded: list[tuple[bytes, bytes | None]], now_ms: int) -> Batch:
        builder = BatchBuilder(self._codec)
        for key, value in encoded:
            builder.append(now_ms, key, value)
        return Batch(bytearray(builder.build()))

    def _committed(self, done: "asyncio.Future[None]") -> None:
        if self._uncommitted is done:
            self._uncommitted = None
        error = "nobody waits for it any more" if done.cancelled() else done.exception()
        if error is not None and not self._stopped:
            log.error("%s: what was written could not be committed: %s", self.name, error)
            self._fail()

    def _fail(self) -> None:
        if not self._stopped:
            self.stop()
            self._on_failure()

    # Replies.

    def _release(self, released: list[tuple[Ticket, Any]]) -> None:
        for ticket, reply in released:
            # Whoever has gone away waits no more.
            future = self._waiting.pop(ticket, None)
            if future is not None and not future.done():
                future.set_result(reply)

    def _release_later(self, released: list[tuple[Ticket, Any]], _done: "asyncio.Future[None]") -> None:
        self._release(released)

    async def _wait(self, ticket: Ticket, future: "asyncio.Future[Any]", caller: Caller) -> Any:
        caller.interrupt = partial(_end, future)
        try:
            reply = await future
        finally:
            self._waiting.pop(ticket, None)
        if isinstance(reply, KafkaError):
            raise reply
        return reply

    async def _reply_when(self, committed: "asyncio.Future[None]", reply: Any) -> Any:
        try:
            # Whoever gives up waiting must not take the others' commit down with it.
            await asyncio.shield(committed)
        except (KafkaError, OSError) as error:
            raise gone() from error
        return reply

    # Time.

    def _set_timer(self, now_ms: int) -> None:
        """Have the timer go off in time. Too early does no harm: most deadlines are put off before they come."""
        next_ms = self._groups.next_deadline_ms
        if next_ms is None or self._stopped:
            return
        if self._timer is not None:
            if self._timer_ms <= next_ms:
                return
            self._timer.cancel()
        self._timer_ms = next_ms
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0, next_ms - now_ms) / 1000, self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        self.run(lambda groups, now_ms: groups.expire(now_ms))


def _end(waiting: "asyncio.Future[Any]") -> None:
    if not waiting.done():
        waiting.set_result(None)


class _TooLargeError(KafkaError):
    """Records that were refused without harm to anybody else."""
