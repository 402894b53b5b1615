"""Rows of a table on their way."""

import asyncio
from typing import TYPE_CHECKING

from ottla.client.errors import RequestTimedOutError
from ottla.sync.loop import Background
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.client.producer.arrow import TableDelivery as ClientTableDelivery
    from ottla.client.producer.arrow import TableMetadata


class TableDelivery:
    """What `send_arrow` gives: the rows of a table on their way.

    A failure that nobody has asked for is raised by `flush` and `stop`.

    >>> import pyarrow as pa
    >>> delivery = producer.send_arrow(pa.table({"value": [b"one", b"two"]}), "orders")
    >>> delivery.get().offsets
    {TopicPartition(topic='orders', partition=0): (0, 1)}
    """

    __slots__ = ("_background", "_delivery", "rows")

    def __init__(self, background: Background, delivery: "ClientTableDelivery") -> None:
        self._background = background
        self._delivery = delivery
        self.rows = delivery.rows
        """How many rows it is of."""

    def __repr__(self) -> str:
        return repr(self._delivery)

    def done(self) -> bool:
        """Whether it is known what became of all rows.

        >>> import pyarrow as pa
        >>> delivery = producer.send_arrow(pa.table({"value": [b"one"]}), "orders")
        >>> producer.flush()
        >>> delivery.done()
        True
        """
        return self._delivery.done()

    def get(self, timeout: float | None = None) -> "TableMetadata":
        """Wait until all rows are acknowledged and say where they went, or raise why some were not.

        After `timeout` seconds it raises `RequestTimedOutError`; the rows are still on their way then.

        >>> import pyarrow as pa
        >>> producer.send_arrow(pa.table({"value": [b"one"]}), "orders").get().rows
        1
        """
        error = self.exception(timeout)
        if error is not None:
            raise error.with_traceback(None)
        return self._delivery.result()

    def result(self, timeout: float | None = None) -> "TableMetadata":
        """The same as `get`.

        >>> import pyarrow as pa
        >>> producer.send_arrow(pa.table({"value": [b"one"]}), "orders").result().rows
        1
        """
        return self.get(timeout)

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Wait until it is known what became of all rows, and say why some were not delivered; None if all were.

        >>> import pyarrow as pa
        >>> print(producer.send_arrow(pa.table({"value": [b"one"]}), "orders").exception())
        None
        """
        if not self._delivery.done():
            self._background.call(self._settled, timeout)
        return self._delivery.exception()

    async def _settled(self, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._delivery
        except TimeoutError:
            raise RequestTimedOutError(
                f"not all of {self.rows} rows were acknowledged within {timeout_s} s; they are still on their way"
            ) from None
        except KafkaError:
            # Whoever waits looks at the outcome.
            pass
