"""Records on their way, from the threads of the user to the event loop's and on to the broker."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from ottla.client.errors import ClientClosedError, RequestTimedOutError
from ottla.client.outage import tell_others
from ottla.client.producer import Delivery as ClientDelivery
from ottla.client.types import RecordMetadata
from ottla.sync.loop import LOOK_UP_SECONDS, Background
from ottla.wire.errors import KafkaError

log = logging.getLogger(__name__)

MOST_RECORDS = 5_000
"""How many records may wait for the event loop before those who send do, so that it is never far behind."""

MOST_BYTES = 4 * 1024 * 1024
"""How many bytes may."""

KEPT_FAILURES = 1_000
"""How many records that could not be taken are remembered until `flush`, the first ones."""


class Delivery:
    """What `send` gives: a record on its way.

    A failure that nobody has asked for is raised by `flush` and `stop`.

    >>> delivery = producer.send("orders", b"two apples")
    >>> delivery.get(timeout=10).offset
    0
    """

    __slots__ = ("_asked", "_handover", "_outcome", "_record", "_waiter")

    def __init__(self, handover: "Handover", record: tuple[Any, ...]) -> None:
        self._handover = handover
        self._record: tuple[Any, ...] | None = record
        self._outcome: ClientDelivery | Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._asked = False

    def __repr__(self) -> str:
        outcome = self._outcome
        return "<Delivery, not taken yet>" if outcome is None else repr(outcome)

    def done(self) -> bool:
        """Whether it is known what became of the record.

        >>> delivery = producer.send("orders", b"two apples")
        >>> producer.flush()
        >>> delivery.done()
        True
        """
        outcome = self._outcome
        return outcome is not None and (isinstance(outcome, Exception) or outcome.done())

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Wait until the record is acknowledged and say where it went, or raise why it was not.

        After `timeout` seconds it raises `RequestTimedOutError`; the record is still on its way then.

        >>> producer.send("orders", b"two apples").get().topic_partition
        TopicPartition(topic='orders', partition=0)
        """
        error = self.exception(timeout)
        if error is not None:
            raise error.with_traceback(None)
        assert isinstance(self._outcome, ClientDelivery), "what was not taken has an exception"
        return self._outcome.result()

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """The same as `get`.

        >>> producer.send("orders", b"two apples").result().offset
        0
        """
        return self.get(timeout)

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait until it is known what became of the record, and say why it was not delivered; None if it was.

        >>> print(producer.send("orders", b"two apples").exception())
        None
        """
        if not self.done():
            self._handover.background.call(self._settled, timeout)
        self._asked = True
        outcome = self._outcome
        return outcome.exception() if isinstance(outcome, ClientDelivery) else outcome

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        """Have the thread of the event loop call something with this delivery as soon as it is done.

        >>> delivery = producer.send("orders", b"two apples")
        >>> delivery.add_done_callback(lambda delivery: print("offset", delivery.get().offset))
        >>> producer.stop()
        offset 0
        """
        self._asked = True
        self._handover.background.wake(partial(self._watch, callback))

    async def _settled(self, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._taken()
                if isinstance(self._outcome, ClientDelivery):
                    await self._outcome
        except TimeoutError:
            raise RequestTimedOutError(
                f"the record was not acknowledged within {timeout_s} s, and is still on its way"
            ) from None
        except KafkaError:
            # Whoever waits looks at the outcome.
            pass

    def _watch(self, callback: "Callable[[Delivery], object]") -> None:
        if self._outcome is None:
            self._taking().add_done_callback(lambda _: self._watch(callback))
        elif isinstance(self._outcome, ClientDelivery):
            self._outcome.add_done_callback(lambda _: callback(self))
        else:
            callback(self)

    async def _taken(self) -> None:
        if self._outcome is None:
            await asyncio.shield(self._taking())

    def _taking(self) -> "asyncio.Future[None]":
        if self._waiter is None:
            self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    def _take(self, outcome: ClientDelivery | Exception) -> None:
        self._outcome = outcome
        self._record = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Handover:
    """Takes records from any thread and has the event loop send them, in order and many at a time.

    Whoever sends more than the loop can take waits for it.
    """

    def __init__(self, background: Background, send: Callable[..., Awaitable[ClientDelivery]]) -> None:
        self.background = background
        self._send = send
        self._lock = threading.Lock()
        self._waiting: list[Delivery] = []
        self._waiting_bytes = 0
        self._last: Delivery | None = None
        self._is_awake = False
        """Whether the event loop knows that there is something to take."""
        self._is_closed = False
        self._room = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self._failed: list[Delivery] = []

    def put(self, record: tuple[Any, ...], size: int) -> Delivery:
        """Hand a record over that has so many bytes."""
        delivery = Delivery(self, record)
        with self._lock:
            if self._is_closed:
                raise ClientClosedError("the producer was stopped; start another one")
            self._waiting.append(delivery)
            self._waiting_bytes += size
            self._last = delivery
            was_awake, self._is_awake = self._is_awake, True
            is_full = len(self._waiting) >= MOST_RECORDS or self._waiting_bytes >= MOST_BYTES
            if is_full:
                self._room.clear()
        if not was_awake:
            self.background.wake(self._wake)
        if is_full and not self.background.is_here:
            while not self._room.wait(LOOK_UP_SECONDS):
                pass
        return delivery

    async def settled(self) -> None:
        """Return when all that was handed over before is taken."""
        last = self._last
        if last is not None:
            await last._taken()

    async def close(self) -> None:
        """Take no more; return when all is taken that was handed over."""
        with self._lock:
            self._is_closed = True
        try:
            await self.settled()
        finally:
            if self._task is not None:
                self._task.cancel()

    def take_failure(self) -> Exception | None:
        """Why a record could not be taken, the first that nobody has asked for; the others are logged."""
        failed, self._failed = self._failed, []
        reasons = [one._outcome for one in failed if not one._asked and isinstance(one._outcome, Exception)]
        tell_others(log, reasons[1:])
        return next(iter(reasons), None)

    def _wake(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        left: list[Delivery] = []
        try:
            while left := self._take_waiting():
                left.reverse()
                while left:
                    delivery = left[-1]
                    assert delivery._record is not None, "it is taken once"
                    try:
                        outcome: ClientDelivery | Exception = await self._send(*delivery._record)
                    except Exception as error:  # noqa: BLE001 - whatever it is, it is for him who sent the record
                        outcome = error
                    left.pop()
                    self._settle(delivery, outcome)
        except asyncio.CancelledError:
            for delivery in [*reversed(left), *self._take_waiting()]:
                self._settle(delivery, ClientClosedError("the producer was stopped before the record was sent"))
            raise
        finally:
            self._task = None

    def _take_waiting(self) -> list[Delivery]:
        with self._lock:
            taken, self._waiting, self._waiting_bytes = self._waiting, [], 0
            self._is_awake = bool(taken)
            self._room.set()
        return taken

    def _settle(self, delivery: Delivery, outcome: ClientDelivery | Exception) -> None:
        if isinstance(outcome, Exception) and not delivery._asked and len(self._failed) < KEPT_FAILURES:
            self._failed.append(delivery)
        delivery._take(outcome)
