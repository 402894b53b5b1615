"""The way to one broker, as a producer has it."""

from collections import deque

from ottla.client.producer.accumulator import PartitionQueue
from ottla.client.producer.options import ProducerOptions
from ottla.net import Connection


class Lane:
    """A connection to a broker, and what is to be sent over it."""

    __slots__ = ("busy", "connection", "in_flight", "node_id", "ready", "version")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.ready: deque[PartitionQueue] = deque()
        self.connection: Connection | None = None
        self.version = 0
        """Of Produce, the latest that both sides have."""
        self.in_flight = 0
        self.busy = False
        """Whether a task has to be done before anything can be sent."""

    def open_connection(self, options: ProducerOptions) -> Connection | None:
        """The connection, if it can be used; one that was idle for long the broker may be about to close."""
        connection = self.connection
        if connection is None or connection.closed or connection.idle_ms > options.connections_max_idle_ms:
            return None
        return connection
