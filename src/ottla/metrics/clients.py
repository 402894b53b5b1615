"""Counters of single clients, of so many and no more: anybody can make up a client id with every request."""

from typing import Protocol

from ottla.metrics.tally import ClientTally

MOST_CLIENTS = 1000
LONGEST_ID = 100
OTHERS = "(others)"
"""The name under which all clients count that there is no room for."""
STRANGERS = "(strangers)"
"""The same for those who have yet to say who they are: client ids that they make up take no room."""


class ClientCounters(ClientTally):
    """The counters of the clients of one principal that share a client id."""

    __slots__ = ("_clients",)

    def __init__(self, clients: "Clients", principal: str, client_id: str) -> None:
        super().__init__(principal, client_id)
        self._clients = clients

    def leave(self) -> None:
        """A connection is closed, or counts for somebody else."""
        self._clients.leave(self)


class Tracked(Protocol):
    """A connection as this module sees it."""

    principal: str
    client: ClientCounters | None


class Clients:
    """The counters of clients, found by principal and client id.

    Those of clients that have left are kept until somebody else needs the room; whoever finds none is counted with the
    others.

    >>> clients = Clients(limit=1)
    >>> class Connection:
    ...     principal, client = "User:alice", None
    >>> first, second = Connection(), Connection()
    >>> clients.enter(first, "app").client_id, clients.enter(second, "made-up").client_id
    ('app', '(others)')
    >>> first.client.leave()
    >>> clients.enter(second, "made-up").client_id, len(clients)
    ('made-up', 1)
    """

    def __init__(self, limit: int = MOST_CLIENTS) -> None:
        self._limit = limit
        self._known: dict[tuple[str, str], ClientCounters] = {}
        self._gone: dict[ClientCounters, None] = {}
        """Those without a connection, the one that left first in front."""
        self.others = ClientCounters(self, "", OTHERS)
        self.strangers = ClientCounters(self, "", STRANGERS)
        self.bytes_in_forgotten = 0
        """What those had received and sent whose counters are no more."""
        self.bytes_out_forgotten = 0

    def __len__(self) -> int:
        return len(self._known)

    def all(self) -> list[ClientCounters]:
        """Everyone there is, and the others and strangers if there are any."""
        return [*self._known.values(), *(one for one in (self.others, self.strangers) if one.requests)]

    def enter(self, connection: Tracked, client_id: str | None, *, as_stranger: bool = False) -> ClientCounters:
        """Have a connection count for this client id from now on, or for all strangers."""
        found = self.strangers if as_stranger else self._find(connection.principal, (client_id or "")[:LONGEST_ID])
        if found is not connection.client:
            if connection.client is not None:
                connection.client.leave()
            connection.client = found
            found.connections += 1
            self._gone.pop(found, None)
        return found

    def leave(self, client: ClientCounters) -> None:
        """Somebody has a connection less."""
        client.connections -= 1
        if not client.connections and client not in (self.others, self.strangers):
            self._gone[client] = None

    def _find(self, principal: str, client_id: str) -> ClientCounters:
        found = self._known.get((principal, client_id))
        if found is not None:
            return found
        if len(self._known) >= self._limit:
            if not self._gone:
                return self.others
            oldest = next(iter(self._gone))
            del self._gone[oldest], self._known[oldest.principal, oldest.client_id]
            self.bytes_in_forgotten += oldest.bytes_in
            self.bytes_out_forgotten += oldest.bytes_out
        found = self._known[principal, client_id] = ClientCounters(self, principal, client_id)
        return found
