"""The producer without asyncio."""

import asyncio
from typing import TYPE_CHECKING, Any

from ottla.client.checks import as_bytes, check_number, check_record, check_serializers, header_list
from ottla.client.errors import RequestTimedOutError
from ottla.client.producer import Producer as ClientProducer
from ottla.client.producer.arrow import ArrowStream
from ottla.client.producer.producer import Serializer
from ottla.client.producer.taking import Headers
from ottla.client.types import RecordMetadata
from ottla.ports import SystemClock
from ottla.sync.arrow import TableDelivery
from ottla.sync.delivery import Delivery, Handover
from ottla.sync.face import Face, takes_arguments_of
from ottla.sync.loop import Background

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.client.producer.arrow import TableDelivery as ClientTableDelivery


class Producer(Face):
    """Sends records to topics. It has the options of `ottla.Producer`, and the same methods without `await`.

    >>> with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
    ...     delivery = producer.send("orders", b"two apples", key=b"alice")
    >>> delivery.get().offset
    0

    Several threads may use one producer; what one of them sends stays in order. Leaving the `with` block waits until
    all records are acknowledged, and raises if one was lost and nobody has asked for its delivery. Serializers run in
    the thread that sends, a partitioner of your own in that of the event loop.
    """

    @takes_arguments_of(ClientProducer)
    def __init__(self, **options: Any) -> None:
        # What the user sends he may change afterwards, so it becomes bytes before the event loop gets it.
        self._key_serializer: Serializer | None = options.pop("key_serializer", None)
        self._value_serializer: Serializer | None = options.pop("value_serializer", None)
        check_serializers(self._key_serializer, self._value_serializer)
        self._now_ms = (options.get("clock") or SystemClock()).now_ms
        self._producer = ClientProducer(**options)
        self._handover: Handover | None = None

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery:
        """Take a record, and say with `get` where it went. Returns at once, unless the event loop is behind.

        What is wrong with key or value is raised here; whatever else goes wrong, by the delivery's `get`.

        >>> producer.send("orders", b"two apples", headers=[("trace", b"a1")]).get().offset
        0
        """
        if self._value_serializer is not None and value is not None:
            value = self._value_serializer(value)
        if self._key_serializer is not None and key is not None:
            key = self._key_serializer(key)
        size = 0
        if value is not None:
            if type(value) is not bytes:
                value = as_bytes(value, "value", self._value_serializer)
            size = len(value)
        if key is not None:
            if type(key) is not bytes:
                key = as_bytes(key, "key", self._key_serializer)
            size += len(key)
        if timestamp_ms is None:
            timestamp_ms = self._now_ms()
        if headers is not None:
            headers = tuple(header_list(headers))
        # Others would be told of by the delivery alone: the event loop takes the record later.
        if type(topic) is not str or type(timestamp_ms) is not int or headers:
            check_record(topic, timestamp_ms, headers or ())
        if partition is not None and type(partition) is not int:
            check_number("partition", partition)
        handover = self._handover
        if handover is None:
            raise self._not_running()
        return handover.put((topic, value, key, partition, timestamp_ms, headers), size)

    def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> RecordMetadata:
        """Send a record and wait until it is acknowledged.

        >>> producer.send_and_wait("orders", b"two apples").offset
        0
        """
        return self.send(topic, value, key, partition, timestamp_ms, headers).get()

    def send_arrow(
        self,
        table: "pa.Table | pa.RecordBatch | ArrowStream",
        topic: str | None = None,
        *,
        partition: int | None = None,
    ) -> TableDelivery:
        """Take all rows of a table, and say with `get` where they went. Waits for room, batch by batch.

        If it raises, rows that were taken before are sent nevertheless.

        The columns are `value` and any of `key`, `timestamp`, `headers`, `topic` and `partition`, as `read_table` gives
        them; `topic` and `partition` as arguments are for all rows, and come before the columns. Rows go where single
        records would go, and those of a partition stay in order. A DataFrame of pandas or polars will do as well. Needs
        pyarrow.

        >>> import pyarrow as pa
        >>> producer.send_arrow(pa.table({"value": [b"one", b"two"]}), "orders").get().rows
        2
        """
        background, handover = self._running, self._handover
        assert handover is not None, "what runs has one"
        return TableDelivery(background, background.call(self._send_arrow, handover, table, topic, partition))

    def flush(self, timeout_ms: int | None = None) -> None:
        """Return when it is known what became of all records that were sent before.

        Raises the first failure that nobody has asked for, so that no record is lost unnoticed; or
        `RequestTimedOutError`, after which all are still on their way.

        >>> delivery = producer.send("orders", b"two apples")
        >>> producer.flush()
        >>> delivery.done()
        True
        """
        if self._handover is None:
            raise self._not_running()
        self._call(self._flush, self._handover, timeout_ms)

    def partitions_for(self, topic: str) -> set[int]:
        """The partitions of a topic.

        >>> producer.partitions_for("orders")
        {0}
        """
        return self._call(self._producer.partitions_for, topic)

    @property
    def records_sent(self) -> int:
        """How many records have been acknowledged, or with acks=0 handed over.

        >>> producer.send_and_wait("orders", b"two apples").offset
        0
        >>> producer.records_sent
        1
        """
        return self._producer.records_sent

    async def _start_client(self, background: Background) -> None:
        await self._producer.start()
        self._handover = Handover(background, self._producer.send)

    async def _stop_client(self, *, is_finished: bool) -> None:
        handover, self._handover = self._handover, None
        assert handover is not None, "what is stopped was started"
        try:
            await handover.close()
        finally:
            await self._producer.stop()
        _raise(handover.take_failure())

    async def _send_arrow(
        self,
        handover: Handover,
        table: "pa.Table | pa.RecordBatch | ArrowStream",
        topic: str | None,
        partition: int | None,
    ) -> "ClientTableDelivery":
        # What was sent before comes before.
        await handover.settled()
        return await self._producer.send_arrow(table, topic, partition=partition)

    async def _flush(self, handover: Handover, timeout_ms: int | None) -> None:
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await handover.settled()
                await self._producer.flush()
        except TimeoutError:
            raise RequestTimedOutError(
                f"not all records were acknowledged within {timeout_ms} ms; they are still on their way"
            ) from None
        _raise(handover.take_failure())


def _raise(failure: Exception | None) -> None:
    if failure is not None:
        raise failure.with_traceback(None)
