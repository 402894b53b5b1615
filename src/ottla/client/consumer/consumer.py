"""The consumer."""

import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, Unpack

from ottla.assign.assignor import Assignor
from ottla.client.checks import check_flag, check_function, check_number, shown
from ottla.client.consumer.arrow import check_columns
from ottla.client.consumer.core import Core, CoreOptions
from ottla.client.consumer.decoding import Decoder, Deserializer
from ottla.client.consumer.fetching import FetchOptions
from ottla.client.consumer.membership import ConsumerRebalanceListener, GroupOptions
from ottla.client.consumer.membership.listener import check_listener
from ottla.client.consumer.places import Places, places_of
from ottla.client.consumer.subscription import Start
from ottla.client.errors import ClientClosedError
from ottla.client.offsets import ISOLATION_LEVELS, IsolationLevel
from ottla.client.options import BootstrapServers, ClientOptions
from ottla.client.types import ConsumerRecord, TopicPartition
from ottla.client.unstopped import warn_unstopped
from ottla.net.security import SecurityOptions, security_of, takes_security
from ottla.ports import Chance, SystemChance

if TYPE_CHECKING:
    import pyarrow as pa

AutoOffsetReset = Literal["earliest", "latest", "none"]

_RESETS = {"earliest": Start.EARLIEST, "latest": Start.LATEST, "none": None}


class Consumer(Places):
    """Reads records: of topics that it shares with the other members of a group, or of partitions that it is given.

    >>> async def read(bootstrap_servers: str) -> None:
    ...     async with Consumer(
    ...         "orders", bootstrap_servers=bootstrap_servers, group_id="readers", auto_offset_reset="earliest"
    ...     ) as consumer:
    ...         async for record in consumer:
    ...             print(record.offset, record.value)
    ...             if record.value == b"two":
    ...                 break
    >>> asyncio.run(read(broker.bootstrap_servers))
    0 b'one'
    1 b'two'

    The examples of the methods are shorter: `run(lambda consumer: ...)` there stands for the same with a fresh broker.

    **Reading ahead.** Records are fetched before they are asked for, from all brokers at once, up to `buffer_memory`
    bytes; `fetch_*` and `max_partition_fetch_bytes` say how much at a time.

    **Without a group.** If there is no `group_id` it reads all partitions of its topics, and commits nothing.

    **What is committed.** With `enable_auto_commit` the records are committed that the user is done with: a record, or
    a list of them, counts as done when he comes for the next, or stops. So what he was working on when his program
    crashed is read again, and nothing is lost.

    **Failures.** What may pass is tried again, for ever if need be, while other partitions are read on. What cannot
    pass is raised by the next call for records. Keys and values that are null are not given to deserializers.

    **Time.** Heartbeats to the group do not depend on the user. But if he does not come for records for
    `max_poll_interval_ms`, others get his partitions until he does.

    docs/client.md has a table of all options with their defaults.
    """

    @takes_security
    def __init__(
        self,
        *topics: str,
        bootstrap_servers: BootstrapServers = "localhost:9092",
        client_id: str = "ottla",
        group_id: str | None = None,
        group_protocol: Literal["classic", "consumer"] = "classic",
        group_remote_assignor: str | None = None,
        group_instance_id: str | None = None,
        partition_assignment_strategy: Sequence[str | Assignor] = ("range", "cooperative-sticky"),
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        auto_offset_reset: AutoOffsetReset = "latest",
        enable_auto_commit: bool = True,
        auto_commit_interval_ms: int = 5_000,
        isolation_level: IsolationLevel = "read_uncommitted",
        fetch_min_bytes: int = 1,
        fetch_max_bytes: int | None = None,
        fetch_max_wait_ms: int = 500,
        max_partition_fetch_bytes: int | None = None,
        max_poll_records: int | None = None,
        max_poll_interval_ms: int = 300_000,
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int = 3_000,
        rebalance_timeout_ms: int | None = None,
        check_crcs: bool = True,
        exclude_internal_topics: bool = True,
        allow_auto_create_topics: bool = True,
        buffer_memory: int = 64 * 2**20,
        consumer_timeout_ms: int | None = None,
        listener: ConsumerRebalanceListener | None = None,
        request_timeout_ms: int = 30_000,
        retry_backoff_ms: int = 100,
        retry_backoff_max_ms: int = 1_000,
        reconnect_backoff_ms: int = 50,
        reconnect_backoff_max_ms: int = 1_000,
        metadata_max_age_ms: int = 300_000,
        connections_max_idle_ms: int = 540_000,
        chance: Chance | None = None,
        **security: Unpack[SecurityOptions],
    ) -> None:
        for topic in topics:
            if not isinstance(topic, str):
                raise TypeError(f"a topic is {shown(topic)}; give names one by one, as in Consumer(*names)")
        client = ClientOptions(
            bootstrap_servers=bootstrap_servers,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            retry_backoff_max_ms=retry_backoff_max_ms,
            reconnect_backoff_ms=reconnect_backoff_ms,
            reconnect_backoff_max_ms=reconnect_backoff_max_ms,
            metadata_max_age_ms=metadata_max_age_ms,
            connections_max_idle_ms=connections_max_idle_ms,
            security=security_of(security, "Consumer"),
        )
        check_flag("enable_auto_commit", enable_auto_commit)
        check_flag("check_crcs", check_crcs)
        check_flag("exclude_internal_topics", exclude_internal_topics)
        check_flag("allow_auto_create_topics", allow_auto_create_topics)
        _check_choice("auto_offset_reset", auto_offset_reset, _RESETS)
        _check_choice("isolation_level", isolation_level, ISOLATION_LEVELS)
        fetch = FetchOptions(
            fetch_min_bytes=fetch_min_bytes,
            fetch_max_bytes=fetch_max_bytes,
            fetch_max_wait_ms=fetch_max_wait_ms,
            max_partition_fetch_bytes=max_partition_fetch_bytes,
            buffer_memory=buffer_memory,
            read_committed=isolation_level == "read_committed",
            allow_auto_create_topics=allow_auto_create_topics,
        )
        group = None
        if group_id is None and group_instance_id is not None:
            raise ValueError(f"group_instance_id is {group_instance_id!r} without a group_id; name the group too")
        if group_id is not None:
            group = GroupOptions(
                group_id=group_id,
                group_protocol=group_protocol,
                group_remote_assignor=group_remote_assignor,
                group_instance_id=group_instance_id,
                partition_assignment_strategy=partition_assignment_strategy,
                enable_auto_commit=enable_auto_commit,
                auto_commit_interval_ms=auto_commit_interval_ms,
                session_timeout_ms=session_timeout_ms,
                heartbeat_interval_ms=heartbeat_interval_ms,
                max_poll_interval_ms=max_poll_interval_ms,
                rebalance_timeout_ms=rebalance_timeout_ms,
                require_stable=isolation_level == "read_committed",
                exclude_internal_topics=exclude_internal_topics,
                allow_auto_create_topics=allow_auto_create_topics,
            )
        options = CoreOptions(
            client=client,
            fetch=fetch,
            group=group,
            reset=_RESETS[auto_offset_reset],
            isolation_level=isolation_level,
            check_crcs=check_crcs,
            exclude_internal_topics=exclude_internal_topics,
        )
        check_function("key_deserializer", key_deserializer, "bytes.decode")
        check_function("value_deserializer", value_deserializer, "json.loads")
        decoder = Decoder(
            check_crcs=check_crcs, key_deserializer=key_deserializer, value_deserializer=value_deserializer
        )
        self._core = Core(options, decoder, chance or SystemChance())
        if listener is not None:
            check_listener(listener)
        self._core.listener = listener
        self._records: Iterator[ConsumerRecord] = iter(())
        """What was decoded last. An iterator ends early where its records are not to be handed out any more."""
        self._max_poll_records = _checked_count("max_poll_records", max_poll_records)
        if consumer_timeout_ms is not None:
            check_number("consumer_timeout_ms", consumer_timeout_ms, 0.0)
        self._timeout_s = None if consumer_timeout_ms is None else consumer_timeout_ms / 1000
        if topics:
            self.subscribe(topics)

    # Life.

    def __del__(self) -> None:
        # One that could not be made has no core.
        core: Core | None = self.__dict__.get("_core")
        if core is not None and not core.handout.closed:
            warn_unstopped(self, ", and its group waits for it" if core.group is not None else "")

    async def start(self) -> Self:
        """Connect, and begin to read ahead. Raises if no broker can be reached. `async with` does it.

        >>> asyncio.run(Consumer("orders", bootstrap_servers="127.0.0.1:1").start())  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ottla.errors.BrokerUnreachableError: NETWORK_EXCEPTION: cannot connect to 127.0.0.1:1: ...
        """
        await self._core.start()
        return self

    async def stop(self) -> None:
        """Commit what is finished, leave the group, and close all connections. `async with` does it.

        The records that the user got last count as finished, unless an exception is on its way through his program,
        or they were taken by another task that was cancelled, failed, or is still at work.

        >>> run(lambda consumer: consumer.stop())
        """
        await self._stop(finished=sys.exc_info()[1] is None)

    async def _stop(self, *, finished: bool) -> None:
        await self._core.stop(finished=finished and not self._core.subscription.is_abandoned)

    async def close(self) -> None:
        """The same as `stop`.

        >>> run(lambda consumer: consumer.close())
        """
        await self.stop()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop(finished=error is None)

    # Records.

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Records as they come, without end unless `consumer_timeout_ms` is set, until the consumer is stopped."""
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[ConsumerRecord]:
        self._core.handout.check_open()
        while (records := await self._next_records()) is not None:
            for record in records:
                yield record

    async def _next_records(self) -> Iterator[ConsumerRecord] | None:
        """The next records, to be iterated over once; None if iteration is at its end."""
        try:
            return await self._take_run(self._timeout_s)
        except ClientClosedError:
            return None

    async def _take_run(self, timeout_s: float | None) -> Iterator[ConsumerRecord] | None:
        handout = self._core.handout
        handout.check_open()
        # It would wait for ever, or for nothing.
        self._core.subscription.check_chosen()
        found = await handout.wait_for(handout.ready_run, (), timeout_s)
        if found is None:
            return None
        state, run = found
        self._core.subscription.hand_out(state, iterated=True)
        self._records = run.iterator
        return self._records

    async def __anext__(self) -> ConsumerRecord:
        """The next record."""
        for record in self._records:
            return record
        for record in await self._take_run(self._timeout_s) or ():
            return record
        raise StopAsyncIteration

    async def getone(self, *partitions: TopicPartition) -> ConsumerRecord:
        """The next record, of these partitions if any are given. Waits for it.

        >>> run(lambda consumer: consumer.getone()).value
        b'one'
        """
        if partitions:
            chosen = places_of(partitions)
            handout = self._core.handout
            found = await handout.wait_for(lambda: handout.ready_record(chosen), chosen, None)
            assert found is not None, "it is waited for"
            return found
        for record in self._records:
            return record
        for record in await self._take_run(None) or ():
            return record
        raise AssertionError("a run has records, and it is waited for")

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Records that were fetched already, by partition; if there are none, the first that come within `timeout_ms`.

        At most `max_records`, or `max_poll_records` if that is not given.

        >>> found = run(lambda consumer: consumer.getmany(timeout_ms=5000))
        >>> {str(partition): len(records) for partition, records in found.items()}
        {'orders-0': 3}
        """
        chosen = places_of(partitions)
        limit = _checked_count("max_records", max_records) or self._max_poll_records
        check_number("timeout_ms", timeout_ms, -inf)
        handout = self._core.handout
        found = await handout.wait_for(lambda: handout.ready_records(chosen, limit), chosen, timeout_ms / 1000)
        return found or {}

    async def poll(
        self, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The same as `getmany`, of all partitions.

        >>> found = run(lambda consumer: consumer.poll(timeout_ms=5000, max_records=1))
        >>> [record.value for record in found[TopicPartition("orders", 0)]]
        [b'one']
        """
        return await self.getmany(timeout_ms=timeout_ms, max_records=max_records)

    async def read_arrow(
        self,
        *partitions: TopicPartition,
        max_records: int | None = None,
        timeout_ms: int = 0,
        columns: Sequence[str] | None = None,
        zero_copy: bool = False,
    ) -> "pa.Table":
        """Records as an Arrow table, without an object per record. Needs pyarrow.

        With `max_records` as soon as so many are there (those of aborted transactions, which are not returned, among
        them), or half of `buffer_memory` is full; or as many as there are when `timeout_ms` has passed. Without it some
        megabytes of what was fetched already, or else the first that come in that time. The columns are topic,
        partition, offset, timestamp, timestamp_type, key, value and headers, or those of them that are named.
        Deserializers are not used.

        With `zero_copy` values are Arrow's `binary_view` and stay in the bytes that were fetched, which the table keeps
        in memory for as long as any part of it is there. Values of a kilobyte are read faster that way.

        >>> table = run(lambda consumer: consumer.read_arrow(timeout_ms=5000, columns=["offset", "value"]))
        >>> table.to_pylist()
        [{'offset': 0, 'value': b'one'}, {'offset': 1, 'value': b'two'}, {'offset': 2, 'value': b'three'}]
        """
        limit = _checked_count("max_records", max_records)
        check_number("timeout_ms", timeout_ms, -inf)
        check_columns(columns)
        check_flag("zero_copy", zero_copy)
        places, timeout_s = places_of(partitions), timeout_ms / 1000
        return await self._core.arrow.read(places, limit, timeout_s, columns, zero_copy=zero_copy)


def _check_choice(name: str, value: str, choices: Mapping[str, object]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(choices)}")


def _checked_count(name: str, value: int | None) -> int | None:
    if value is not None:
        check_number(name, value, 1)
    return value
