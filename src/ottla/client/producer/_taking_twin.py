"""Taking records in plain Python: the same as `_taking`, only slower."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ottla.client.checks import as_bytes
from ottla.client.producer._taking_types import Headers, Untaken

if TYPE_CHECKING:
    from ottla.client.producer.batch import PendingBatch
    from ottla.client.producer.partitioners import Routes


class Receipt:
    """Where a record is: in which batch, which record of it, and what its timestamp is."""

    __slots__ = ("_batch", "_index", "_timestamp_ms")

    def __init__(self, batch: "PendingBatch", index: int, timestamp_ms: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp_ms = timestamp_ms


Kind = TypeVar("Kind", bound=Receipt)


class Taker(Generic[Kind]):
    """Puts records into open batches, and gives a receipt of that kind for each. Nothing is waited for."""

    __slots__ = ("_kind", "_now_ms", "key_serializer", "routes", "value_serializer")

    def __init__(
        self,
        kind: type[Kind],
        key_serializer: Callable[[Any], bytes] | None,
        value_serializer: Callable[[Any], bytes] | None,
        now_ms: Callable[[], int],
    ) -> None:
        self.routes: dict[str, Routes] = {}
        """Of the topics that are known."""
        self.key_serializer = key_serializer
        self.value_serializer = value_serializer
        self._kind = kind
        self._now_ms = now_ms

    def take(
        self, topic: str, value: Any, key: Any, partition: int | None, timestamp_ms: int | None, headers: Headers | None
    ) -> "Kind | Untaken":
        """Put a record into the open batch of its partition, if there is one that it fits in."""
        if value is not None:
            if self.value_serializer is not None:
                value = self.value_serializer(value)
            if value.__class__ is not bytes and value is not None:
                value = as_bytes(value, "value", self.value_serializer)
        if key is not None:
            if self.key_serializer is not None:
                key = self.key_serializer(key)
            if key.__class__ is not bytes and key is not None:
                key = as_bytes(key, "key", self.key_serializer)
        if timestamp_ms is None:
            timestamp_ms = self._now_ms()
        if headers is None:
            headers = ()
        routes = self.routes.get(topic)
        queue = None
        if routes is not None and (partition is None or partition in routes.topic.leaders):
            if key is None and partition is None:
                queue = routes.current
            if queue is None:
                queue = routes.of(key, partition)
            batch = queue.open
            if batch is not None:
                index = batch.append(timestamp_ms, key, value, headers)
                if index is not None:
                    if headers:
                        batch.has_headers = True
                    return self._kind(batch, index, timestamp_ms)
        return Untaken(queue, topic, value, key, partition, timestamp_ms, headers)
