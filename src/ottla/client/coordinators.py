"""Which broker looks after a group or a transactional id."""

from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import Any, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.connections import Lane
from ottla.client.errors import check
from ottla.net import Connection, ConnectionLostError, RequestTimedOutError
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")

FIRST_VERSION_WITH_MANY = 4

_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Kind(IntEnum):
    """What is coordinated."""

    GROUP = 0
    TRANSACTION = 1


class Coordinators:
    """Finds coordinators, and remembers them until a broker says that it is not the one (any more)."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found: dict[tuple[Kind, str], int] = {}

    async def connection(self, key: str, *, kind: Kind = Kind.GROUP, lane: Lane = Lane.GENERAL) -> Connection:
        """A connection to the coordinator of a group or transactional id."""
        node_id = self._found.get((kind, key))
        if node_id is None:
            node_id = self._found[kind, key] = await self.find(key, kind=kind)
        try:
            return await self._cluster.broker(node_id, lane)
        except KafkaError:
            self.forget(key, kind=kind)
            raise

    def forget(self, key: str, *, kind: Kind = Kind.GROUP) -> None:
        """Look for the coordinator again before it is used next."""
        self._found.pop((kind, key), None)

    async def ask(
        self,
        key: str,
        operation: Callable[[Connection], Awaitable[T]],
        *,
        kind: Kind = Kind.GROUP,
        lane: Lane = Lane.GENERAL,
    ) -> T:
        """Do something with the coordinator once. If it turns out to be another one, that is looked for the next time.

        `Cluster.retrying` around it tries again.
        """
        try:
            return await operation(await self.connection(key, kind=kind, lane=lane))
        except KafkaError as error:
            lost = isinstance(error, (ConnectionLostError, RequestTimedOutError))
            if lost or error.code in _MOVED:
                self.forget(key, kind=kind)
            raise

    async def find(self, key: str, *, kind: Kind = Kind.GROUP) -> int:
        """Ask which broker it is; its node id."""
        connection = await self._cluster.any_broker()
        request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
        response: Any = await connection.request(request)
        if connection.version_of(FindCoordinatorRequest) >= FIRST_VERSION_WITH_MANY:
            (response,) = response.coordinators
        what = "group" if kind is Kind.GROUP else "transactional id"
        check(response.error_code, response.error_message or f"coordinator of {what} {key!r}")
        # It may be a broker that metadata has not told of yet.
        self._cluster.picture.brokers.setdefault(response.node_id, (response.host, response.port))
        return int(response.node_id)
