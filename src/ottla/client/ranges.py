"""Ranges of partitions as Arrow batches, one after another."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.client.cluster import Cluster
from ottla.client.consumer.arrow import ArrowDecoder
from ottla.client.consumer.decoding import Decoder
from ottla.client.consumer.fetching import Fetcher, FetchOptions
from ottla.client.consumer.handout import Handout
from ottla.client.consumer.replies import Replies
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import Subscription
from ottla.client.errors import OffsetOutOfRangeError, RequestTimedOutError
from ottla.client.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

BUFFER_BYTES = 64 * 2**20


class RangeReader:
    """Reads ranges of partitions, of any number of topics: from an offset to before another, which there must be.

    What comes next is fetched while the caller works, up to `buffer_memory` bytes.

    >>> from ottla.client.options import ClientOptions
    >>> async def read(bootstrap_servers: str) -> list[bytes]:
    ...     async with Cluster(ClientOptions(bootstrap_servers=bootstrap_servers)) as cluster:
    ...         reader = RangeReader(cluster, {TopicPartition("orders", 0): (1, 3)}, columns=["value"])
    ...         return [value.as_py() async for batch in reader.batches() for value in batch["value"]]
    >>> asyncio.run(read(broker.bootstrap_servers))
    [b'two', b'three']
    """

    def __init__(
        self,
        cluster: Cluster,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        *,
        columns: Sequence[str] | None = None,
        zero_copy: bool = False,
        read_committed: bool = False,
        check_crcs: bool = True,
        buffer_memory: int = BUFFER_BYTES,
        fetch_max_bytes: int | None = None,
        max_partition_fetch_bytes: int | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        self._cluster = cluster
        # A reply that is lost takes one request timeout.
        self._timeout_ms = 2 * cluster.request_timeout_ms if timeout_ms is None else timeout_ms
        self._ranges = {TopicPartition(*place): bounds for place, bounds in ranges.items()}
        self._decoder = ArrowDecoder(columns, zero_copy=zero_copy, check_crcs=check_crcs)
        self._options = FetchOptions(
            max_partition_fetch_bytes=max_partition_fetch_bytes,
            fetch_max_bytes=fetch_max_bytes,
            buffer_memory=buffer_memory,
            read_committed=read_committed,
            allow_auto_create_topics=False,
        )

    @property
    def schema(self) -> "pa.Schema":
        """The schema of the batches."""
        return self._decoder.schema

    async def batches(self) -> "AsyncIterator[pa.RecordBatch]":
        """The same as `batches_by_partition`, without the partitions."""
        async for _, batch in self.batches_by_partition():
            yield batch

    async def batches_by_partition(self) -> "AsyncIterator[tuple[TopicPartition, pa.RecordBatch]]":
        """Arrow batches of up to a few megabytes, each of one partition; those of a partition come in order.

        Raises `OffsetOutOfRangeError` if records of a range are gone, and `RequestTimedOutError` if nothing comes for
        `timeout_ms`, as at the end of a log; by default that is how long a request may take.
        """
        signal = Signal()
        subscription = Subscription()
        subscription.reads_columns = True
        subscription.assign_by_user([place for place, (start, end) in self._ranges.items() if start < end])
        for place, state in subscription.assigned.items():
            # A fetch of what nobody wants would wait for it, and all requests after it on its connection too.
            start, state.stop_offset = self._ranges[place]
            state.seek(start)
        handout = Handout(subscription, Decoder(), signal)
        handout.closed = False
        replies = Replies(self._cluster, subscription, resets=False)
        fetcher = Fetcher(self._cluster, subscription, self._options, signal, replies, handout.report)
        fetcher.start()
        try:
            while subscription.assigned:
                place, found = await self._next(subscription, handout)
                for batch in found:
                    yield place, batch
        except OffsetOutOfRangeError as error:
            wanted = "; ".join(f"{place} from {start} to {end}" for place, (start, end) in self._ranges.items())
            raise OffsetOutOfRangeError(f"{error.message} has no records any more; wanted were {wanted}") from error
        finally:
            await fetcher.close()

    async def _next(
        self, subscription: Subscription, handout: Handout
    ) -> "tuple[TopicPartition, list[pa.RecordBatch]]":
        def take() -> "tuple[TopicPartition, list[pa.RecordBatch]] | None":
            for state in handout.turns():
                end = self._ranges[state.partition][1]
                found = self._decoder.take(state, stop_offset=end)
                if (state.position or 0) >= end:
                    subscription.remove([state.partition])
                handout.there_is_room()
                return state.partition, found
            return None

        found = await handout.wait_for(take, (), self._timeout_ms / 1000)
        if found is None:
            left = ", ".join(map(str, subscription.assigned))
            raise RequestTimedOutError(f"nothing more came of {left} in {self._timeout_ms} ms")
        return found
