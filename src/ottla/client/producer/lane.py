"""The way to one broker, as a producer has it."""

import asyncio
from collections import deque

from ottla.client.producer.accumulator import PartitionQueue
from ottla.client.producer.options import ProducerOptions
from ottla.net import Connection
from ottla.net.vigil import Vigil


class Lane:
    """A connection to a broker, and what is to be sent over it."""

    __slots__ = ("busy", "connection", "in_flight", "node_id", "ready", "version", "vigil")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.ready: deque[PartitionQueue] = deque()
        self.connection: Connection | None = None
        self.version = 0
        """Of Produce, the latest that both sides have."""
        self.in_flight = 0
        self.busy = False
        """Whether a task has to be done before anything can be sent."""
        self.vigil = Vigil(asyncio.get_running_loop())
        """While this broker is to answer a single record, and nothing else."""

    def open_connection(self, options: ProducerOptions) -> Connection | None:
        """The connection, if it can be used; one that was idle for long the broker may be about to close."""
        connection = self.connection
        if connection is None or connection.closed or connection.idle_ms > options.connections_max_idle_ms:
            return None
        return connection
