"""Being told when partitions come and go."""

import inspect
from collections.abc import Awaitable, Iterable
from typing import Any

from ottla.client.checks import shown
from ottla.client.consumer.membership.identity import in_listener
from ottla.client.types import TopicPartition


class ConsumerRebalanceListener:
    """Told when the group gives partitions to a consumer, and takes them from it. Methods may be plain or `async`.

    Heartbeats go on meanwhile. What a method raises, the user gets from his next call of the consumer; if that has
    stopped, the log has it.

    >>> class Printer(ConsumerRebalanceListener):
    ...     def on_partitions_assigned(self, assigned):
    ...         print("now mine:", *sorted(assigned))
    >>> Printer().on_partitions_assigned({TopicPartition("orders", 3)})
    now mine: orders-3
    """

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> Awaitable[None] | None:
        """Before partitions go to another member. They can still be committed.

        >>> class Printer(ConsumerRebalanceListener):
        ...     def on_partitions_revoked(self, revoked):
        ...         print("to be given up:", *sorted(revoked))
        >>> Printer().on_partitions_revoked({TopicPartition("orders", 3)})
        to be given up: orders-3
        """
        return None

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> Awaitable[None] | None:
        """After partitions have come, before they are read: `seek` chooses where. Called in each rebalance.

        >>> async def read_last(consumer):
        ...     class Seeker(ConsumerRebalanceListener):
        ...         def on_partitions_assigned(self, assigned):
        ...             for partition in assigned:
        ...                 consumer.seek(partition, 2)
        ...     consumer.subscribe(["orders"], listener=Seeker())
        ...     return (await consumer.getone()).value
        >>> run(read_last)
        b'three'
        """
        return None

    def on_partitions_lost(self, lost: set[TopicPartition]) -> Awaitable[None] | None:
        """After partitions have gone, perhaps to another member already; calls `on_partitions_revoked` by default.

        >>> class Printer(ConsumerRebalanceListener):
        ...     def on_partitions_lost(self, lost):
        ...         print("gone:", *sorted(lost))
        >>> Printer().on_partitions_lost({TopicPartition("orders", 3)})
        gone: orders-3
        """
        return self.on_partitions_revoked(lost)


def check_listener(listener: object) -> None:
    """Refuse what cannot be told of partitions. One of another library will do.

    >>> check_listener(print)
    Traceback (most recent call last):
    TypeError: listener is <built-in function print>, a builtin_function_or_method; give a ConsumerRebalanceListener
    """
    for method in ("on_partitions_revoked", "on_partitions_assigned"):
        if not callable(getattr(listener, method, None)):
            raise TypeError(f"listener is {shown(listener)}; give a ConsumerRebalanceListener")


async def tell(listener: Any, method: str, partitions: Iterable[TopicPartition]) -> None:
    """Call a method of a listener, which may be one written for another library, and wait for it."""
    if not hasattr(listener, method) and method == "on_partitions_lost":
        method = "on_partitions_revoked"
    token = in_listener.set(True)
    try:
        called = getattr(listener, method)(set(partitions))
        if inspect.isawaitable(called):
            await called
    finally:
        in_listener.reset(token)
