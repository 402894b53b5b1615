"""`Producer`: what applications send records with."""

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from ottla.client.checks import check_record, check_serializers, header_list
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientClosedError, RequestTimedOutError, UnsupportedVersionError
from ottla.client.options import BootstrapServers
from ottla.client.producer.arrow import ArrowStream, TableDelivery, send_table
from ottla.client.producer.batch import Delivery
from ottla.client.producer.identity import obtain_identity
from ottla.client.producer.intake import Intake
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.partitioners import NAMES, PartitionerFunction
from ottla.client.producer.sender import Sender
from ottla.client.producer.taking import Headers, Taker
from ottla.client.types import RecordMetadata
from ottla.client.unstopped import warn_unstopped
from ottla.net.security import SecurityOptions, security_of, takes_security
from ottla.ports import Chance, Clock, SystemChance, system_now_ms
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import pyarrow as pa

Serializer = Callable[[Any], bytes]

log = logging.getLogger(__name__)


class Producer:
    """Sends records to topics.

    >>> import asyncio
    >>> from ottla.testing import TestBroker
    >>> async def story(bootstrap_servers: str) -> None:
    ...     async with Producer(bootstrap_servers=bootstrap_servers) as producer:
    ...         delivery = await producer.send("orders", b"two apples", key=b"alice")
    ...         metadata = await delivery
    ...         print(metadata.topic, metadata.partition, metadata.offset)
    >>> with TestBroker() as broker:
    ...     asyncio.run(story(broker.bootstrap_servers))
    orders 0 0

    `send` puts a record into a batch and returns; batches leave as soon as the connection has room, or after
    `linger_ms`. Leaving the `async with` block, like `stop`, waits until all are acknowledged, and raises if one was
    lost and nobody has awaited it.

    Unless told otherwise a record is acknowledged by all replicas (`acks="all"`) and stored once and in order, however
    often it had to be sent (`enable_idempotence`): None means where the other options and the brokers let it.
    docs/client.md has a table of all options with their defaults.
    """

    _sender: Sender | None = None
    """What sends, while it runs. Of the class too, for one that could not be made."""

    @takes_security
    def __init__(
        self,
        *,
        bootstrap_servers: BootstrapServers = "localhost:9092",
        client_id: str = "ottla",
        acks: int | str = "all",
        enable_idempotence: bool | None = None,
        compression_type: str | None = None,
        compression_level: int | None = None,
        linger_ms: float = 0,
        batch_size: int = 256 * 1024,
        max_request_size: int = 1024 * 1024,
        buffer_memory: int = 32 * 1024 * 1024,
        max_block_ms: int = 60_000,
        delivery_timeout_ms: int = 120_000,
        max_in_flight_requests_per_connection: int = 5,
        partitioner: str | PartitionerFunction = "murmur2",
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        request_timeout_ms: int = 30_000,
        retry_backoff_ms: int = 100,
        retry_backoff_max_ms: int = 1_000,
        reconnect_backoff_ms: int = 50,
        reconnect_backoff_max_ms: int = 1_000,
        metadata_max_age_ms: int = 300_000,
        connections_max_idle_ms: int = 540_000,
        clock: Clock | None = None,
        chance: Chance | None = None,
        **security: Unpack[SecurityOptions],
    ) -> None:
        self._options = ProducerOptions(
            bootstrap_servers=bootstrap_servers,
            client_id=client_id,
            acks=acks,
            enable_idempotence=enable_idempotence,
            compression_type=compression_type,
            compression_level=compression_level,
            linger_ms=linger_ms,
            batch_size=batch_size,
            max_request_size=max_request_size,
            buffer_memory=buffer_memory,
            max_block_ms=max_block_ms,
            delivery_timeout_ms=delivery_timeout_ms,
            max_in_flight_requests_per_connection=max_in_flight_requests_per_connection,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            retry_backoff_max_ms=retry_backoff_max_ms,
            reconnect_backoff_ms=reconnect_backoff_ms,
            reconnect_backoff_max_ms=reconnect_backoff_max_ms,
            metadata_max_age_ms=metadata_max_age_ms,
            connections_max_idle_ms=connections_max_idle_ms,
            security=security_of(security, "Producer"),
        )
        if not callable(partitioner) and partitioner not in NAMES:
            raise ValueError(f"partitioner is {partitioner!r}; it must be a function or one of {', '.join(NAMES)}")
        check_serializers(key_serializer, value_serializer)
        self._partitioner = partitioner
        self._chance = chance or SystemChance()
        self._now_ms = system_now_ms if clock is None else clock.now_ms
        self._taker = Taker(Delivery, key_serializer, value_serializer, self._now_ms)
        self._cluster: Cluster | None = None
        self._intake: Intake | None = None
        self._changing = asyncio.Lock()
        """Held by whoever starts or stops it."""
        self._sent_before = 0
        """How many records were acknowledged before it was stopped."""

    def __del__(self) -> None:
        if self._sender is not None:
            count = sum(batch.count for batch in self._sender.accumulator.unsettled)
            warn_unstopped(self, f", and {count} records were not acknowledged" if count else "")

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.stop()
        except KafkaError as failure:
            # What went wrong first is what the caller should see.
            if error is None:
                raise
            log.warning("the producer stopped with records that were not delivered: %s", failure)

    async def start(self) -> Self:
        """Connect, and get an identity for idempotent writes.

        >>> async def story() -> int:
        ...     producer = await Producer(bootstrap_servers=servers).start()
        ...     metadata = await producer.send_and_wait("orders", b"two apples")
        ...     await producer.stop()
        ...     return metadata.offset
        >>> servers = broker.bootstrap_servers
        >>> asyncio.run(story())
        0
        """
        async with self._changing:
            if self._sender is None:
                await self._start()
        return self

    async def _start(self) -> None:
        cluster = Cluster(self._options, chance=self._chance)
        try:
            await cluster.retrying(lambda: cluster.metadata([]))
            sender = Sender(cluster, self._options)
            if self._options.idempotent:
                await self._identify(cluster, sender)
        except BaseException:
            await cluster.close()
            raise
        self._cluster, self._sender = cluster, sender
        self._intake = Intake(cluster, sender.accumulator, self._options, self._partitioner, self._chance)
        self._taker.routes = self._intake.routes

    async def _identify(self, cluster: Cluster, sender: Sender) -> None:
        try:
            sender.identity = await obtain_identity(cluster)
            sender.accumulator.idempotent = True
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            if self._options.enable_idempotence:
                raise UnsupportedVersionError("the broker is too old for enable_idempotence=True") from error
            log.info("the broker is too old for idempotent writes; a record that is sent again may be stored twice")

    async def stop(self) -> None:
        """Send all that was taken, and disconnect. Raises what `flush` raises, once disconnected.

        >>> async def story(producer: Producer) -> bool:
        ...     delivery = await producer.send("orders", b"two apples")
        ...     await producer.stop()
        ...     return delivery.done()
        >>> run(story)
        True
        """
        async with self._changing:
            if self._cluster is not None and self._sender is not None:
                await self._stop(self._cluster, self._sender)

    async def _stop(self, cluster: Cluster, sender: Sender) -> None:
        # What is taken from here on would not be waited for.
        self._intake, self._taker.routes = None, {}
        sender.accumulator.refuse(ClientClosedError("the producer was stopped before it took the record"))
        try:
            await self.flush()
        finally:
            self._cluster = self._sender = None
            self._sent_before += sender.accumulator.records_sent
            try:
                await sender.close(ClientClosedError("the producer was stopped before the record was acknowledged"))
            finally:
                await cluster.close()

    async def close(self) -> None:
        """The same as `stop`.

        >>> run(lambda producer: producer.close())
        """
        await self.stop()

    # Sending.

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery:
        """Take a record, and give an awaitable with its metadata.

        It waits for what has to be known of the topic, and for room while `buffer_memory` bytes wait to be
        acknowledged: at most `max_block_ms`, after which it raises `BufferFullError`. The record goes to `partition`,
        or where the partitioner says. Without a timestamp it gets the present time. A value of None is a tombstone.

        >>> async def story(producer: Producer) -> None:
        ...     for number in range(3):
        ...         await producer.send("orders", b"%d apples" % number, key=b"alice", headers=[("trace", b"a1")])
        ...     await producer.flush()
        ...     print(producer.records_sent)
        >>> run(story)
        3
        """
        if headers is not None and not isinstance(headers, (list, tuple)):
            headers = header_list(headers)
        try:
            taken = self._taker.take(topic, value, key, partition, timestamp_ms, headers)
            if isinstance(taken, Delivery):
                return taken
            return await self._taking.add(*taken)
        except (TypeError, ValueError, OverflowError):
            check_record(topic, 0 if timestamp_ms is None else timestamp_ms, headers or ())
            raise

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> RecordMetadata:
        """Send a record and wait until it is acknowledged.

        >>> run(lambda producer: producer.send_and_wait("orders", b"two apples", timestamp_ms=1_700_000_000_000))
        RecordMetadata(topic='orders', partition=0, offset=0, timestamp=1700000000000, timestamp_type=0)
        """
        if headers is not None and not isinstance(headers, (list, tuple)):
            headers = header_list(headers)
        sender, intake = self._running, self._taking
        try:
            taken = self._taker.take(topic, value, key, partition, timestamp_ms, headers)
            if isinstance(taken, Delivery):
                delivery = taken
            else:
                express = sender.express.take(taken, intake)
                if express is not None:
                    return await express
                delivery = await intake.add(*taken)
        except (TypeError, ValueError, OverflowError):
            check_record(topic, 0 if timestamp_ms is None else timestamp_ms, headers or ())
            raise
        sender.hasten()
        intake.turn_given()
        return await delivery

    async def send_arrow(
        self,
        table: "pa.Table | pa.RecordBatch | ArrowStream",
        topic: str | None = None,
        *,
        partition: int | None = None,
    ) -> TableDelivery:
        """Take all rows of a table, and give an awaitable that tells where they went.

        The columns are `value` and any of `key`, `timestamp`, `headers`, `topic` and `partition`, as `read_table` gives
        them; `topic` and `partition` as arguments are for all rows, and come before the columns. Rows go where single
        records would go, and those of a partition stay in order. A DataFrame of pandas or polars will do as well. Needs
        pyarrow.

        It returns when all rows are in batches, so it waits for room as `send` does, batch by batch. If it raises or is
        cancelled, rows that were taken before are sent nevertheless.

        >>> import pyarrow
        >>> async def story(producer: Producer) -> None:
        ...     table = pyarrow.table({"key": ["alice", "bob"], "value": ["two apples", "a pear"]})
        ...     delivery = await producer.send_arrow(table, "orders")
        ...     print(await delivery)
        >>> run(story)
        TableMetadata(rows=2, offsets={TopicPartition(topic='orders', partition=0): (0, 1)})
        """
        return await send_table(self._taking, table, topic, partition, self._now_ms())

    async def flush(self, timeout_ms: int | None = None) -> None:
        """Return when it is known what became of all records that were taken before.

        Raises the first failure that nobody has awaited, so that no record is lost unnoticed; or
        `RequestTimedOutError`, after which all are still on their way.

        >>> async def story(producer: Producer) -> bool:
        ...     delivery = await producer.send("orders", b"two apples")
        ...     await producer.flush()
        ...     return delivery.done()
        >>> run(story)
        True
        """
        accumulator = self._running.accumulator
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await accumulator.settled()
        except TimeoutError:
            count = sum(batch.count for batch in accumulator.unsettled)
            raise RequestTimedOutError(
                f"{count} records were not acknowledged within {timeout_ms} ms; they are still on their way"
            ) from None
        failure = accumulator.take_failure()
        if failure is not None:
            raise failure.with_traceback(None)

    async def partitions_for(self, topic: str) -> set[int]:
        """The partitions of a topic.

        >>> run(lambda producer: producer.partitions_for("orders"))
        {0}
        """
        return set((await self._taking.known(topic)).partitions)

    @property
    def records_sent(self) -> int:
        """How many records have been acknowledged, or with acks=0 handed over.

        >>> run(lambda producer: producer.records_sent)
        0
        """
        return self._sent_before + (0 if self._sender is None else self._sender.accumulator.records_sent)

    @property
    def _running(self) -> Sender:
        if self._sender is None:
            raise ClientClosedError("the producer does not run; use it in `async with Producer(...)`, or start() it")
        return self._sender

    @property
    def _taking(self) -> Intake:
        if self._intake is None:
            raise ClientClosedError("the producer does not run; use it in `async with Producer(...)`, or start() it")
        return self._intake
