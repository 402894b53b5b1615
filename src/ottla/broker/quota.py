"""Quotas in force: what each client uses, over which time, and how long it has to pause when that is too much.

As in Kafka, whoever is above its limit gets its reply at once, is told how long to wait, and is not read from for that
long; and who has used less may use at once what it has saved, over `quota.window.num` windows of
`quota.window.size.seconds` less one. Kafka measures by windows and lets go of whole ones, after which clients rush;
here use drains evenly. Where no quota is set nothing is measured.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.cluster.quota import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    QuotaEntity,
    QuotaValues,
)
from ottla.meta.quotas import Alter, QuotaStore

if TYPE_CHECKING:
    from ottla.broker.request import Request
    from ottla.ports import Clock

MOST_METERS = 10_000
"""Of users, of nobodies, and of addresses, each; those that were not used for longest are forgotten first."""

NOBODY = "ANONYMOUS"
"""The user who did not say who he is: any number of them, with client ids that they make up."""

NO_BOUND = 2**31 - 1
"""Connections a second that are no limit."""

PRODUCE, FETCH = 0, 1

Key = tuple[str, str, str]
"""What is measured, the user and the client id, each empty where a quota does not tell them apart."""


class Meter:
    """What somebody has used and not yet made up for by waiting.

    It drains at the rate that is allowed. What was saved by using less, over `span_s` at most, may be used at once.

    >>> meter = Meter(span_s=10.0)
    >>> meter.add(1000.0, 100.0, now_s=0.0)
    0.0
    >>> meter.add(300.0, 100.0, now_s=1.0)
    2.0
    """

    __slots__ = ("_at_s", "_level", "_span_s")

    def __init__(self, span_s: float) -> None:
        self._span_s = span_s
        self._level = 0.0
        self._at_s = 0.0

    def add(self, amount: float, limit: float, now_s: float) -> float:
        """So much was used now, where so much a second is allowed; how many seconds are to be waited."""
        self._level = self._drained(limit, now_s) + amount
        self._at_s = now_s
        return max(0.0, self._level / limit - self._span_s)

    def is_full(self, limit: float, now_s: float) -> bool:
        """Whether nothing may be used now."""
        return self._drained(limit, now_s) >= limit * self._span_s

    def _drained(self, limit: float, now_s: float) -> float:
        return max(0.0, self._level - limit * (now_s - self._at_s))


class Meters:
    """Meters by what they measure, of so many and no more."""

    def __init__(self, span_s: float, most: int) -> None:
        self._span_s = span_s
        self._most = most
        self._meters: OrderedDict[Key, Meter] = OrderedDict()

    def __len__(self) -> int:
        return len(self._meters)

    def __contains__(self, key: Key) -> bool:
        return key in self._meters

    def __getitem__(self, key: Key) -> Meter:
        """A meter, which is made if there is none."""
        meter = self._meters.get(key)
        if meter is None:
            return self.put(key, Meter(self._span_s))
        self._meters.move_to_end(key)
        return meter

    def put(self, key: Key, meter: Meter) -> Meter:
        """Have a meter that was elsewhere."""
        if len(self._meters) >= self._most:
            self._meters.popitem(last=False)
        self._meters[key] = meter
        return meter

    def pop(self, key: Key) -> Meter | None:
        """Have it no more."""
        return self._meters.pop(key, None)


class Quotas:
    """The limits of a cluster, and what this broker's clients use."""

    def __init__(self, store: QuotaStore, clock: "Clock", *, windows: int, window_s: int) -> None:
        self._store = store
        self._clock = clock
        self._window_s = float(window_s)
        self._span_s = max(1, windows - 1) * self._window_s
        self._limits: dict[QuotaEntity, QuotaValues] = {}
        # Strangers can be as many as they like, but push out only each other's.
        self._users, self._nobodies, self._addresses = (Meters(self._span_s, MOST_METERS) for _ in range(3))
        self.active = False
        """Whether any limit is set for clients; if not, nobody needs to ask."""
        self._of_addresses = False
        self._connections = Meter(self._span_s)
        self._connections_a_second = float(NO_BOUND)

    @property
    def limits(self) -> Mapping[QuotaEntity, QuotaValues]:
        """All limits that are set."""
        return self._limits

    async def load(self) -> None:
        """Read the limits from the store."""
        self._set(await self._store.load())

    async def alter(self, entity: QuotaEntity, alter: Alter) -> None:
        """Change the limits of an entity; they hold from then on."""
        altered = await self._store.alter(entity, alter)
        limits = {**self._limits, entity: altered}
        self._set({each: values for each, values in limits.items() if values})

    def _set(self, limits: dict[QuotaEntity, QuotaValues]) -> None:
        self._limits = limits
        self.active = any(entity[0][0] != IP for entity in limits)
        self._of_addresses = any(entity[0][0] == IP for entity in limits)

    # Clients.

    def limit(self, key: str, user: str, client_id: str) -> tuple[float, Key] | None:
        """The limit that holds for a client, and what it is measured by; None if there is none.

        The more precise one wins: what is said of a user before what is said of all, and of both before one.
        """
        for entity, measured in (
            (((CLIENT_ID, client_id), (USER, user)), (key, user, client_id)),
            (((CLIENT_ID, None), (USER, user)), (key, user, client_id)),
            (((USER, user),), (key, user, "")),
            (((CLIENT_ID, client_id), (USER, None)), (key, user, client_id)),
            (((CLIENT_ID, None), (USER, None)), (key, user, client_id)),
            (((USER, None),), (key, user, "")),
            (((CLIENT_ID, client_id),), (key, "", client_id)),
            (((CLIENT_ID, None),), (key, "", client_id)),
        ):
            found = self._limits.get(entity, {}).get(key)
            if found is not None:
                return found, measured
        return None

    def used(self, request: "Request", size: int, response: Any, took_s: float) -> float:
        """A request of so many bytes was answered after so long; for how many seconds its client has to pause."""
        now_s = self._clock.monotonic()
        user = request.caller.principal.partition(":")[2]
        client_id = request.client_id or ""
        pause_s = 0.0
        if request.api_key == PRODUCE:
            pause_s = self._measure(PRODUCER_BYTE_RATE, user, client_id, size, now_s)
        elif request.api_key == FETCH and response is not None:
            pause_s = self._measure(CONSUMER_BYTE_RATE, user, client_id, _records_bytes(response), now_s)
        # Somebody who takes all the time there is pauses for a window at most: there will be time again.
        busy_s = self._measure(REQUEST_PERCENTAGE, user, client_id, took_s * 100, now_s)
        return max(pause_s, min(busy_s, self._window_s))

    def most_fetched(self, request: "Request") -> int | None:
        """What one fetch may bring at most, so that it uses up no more than can be saved; None for no bound."""
        found = self.limit(CONSUMER_BYTE_RATE, request.caller.principal.partition(":")[2], request.client_id or "")
        return None if found is None else max(1, int(found[0] * self._span_s))

    def _measure(self, key: str, user: str, client_id: str, amount: float, now_s: float) -> float:
        found = self.limit(key, user, client_id)
        if found is None:
            return 0.0
        limit, measured = found
        return self._meter(measured, is_known=user != NOBODY).add(amount, limit, now_s)

    def _meter(self, key: Key, *, is_known: bool) -> Meter:
        if not is_known:
            return self._users[key] if key in self._users else self._nobodies[key]
        # A client id that users share with nobodies is measured once, and a user's from then on.
        shared = self._nobodies.pop(key)
        return self._users[key] if shared is None else self._users.put(key, shared)

    # Connections.

    def limit_connections(self, a_second: float) -> None:
        """So many a second may be opened from now on, from all addresses together."""
        self._connections_a_second = a_second

    def refusal(self, host: str) -> str | None:
        """Why somebody from an address may not connect now; counts those who may."""
        limit = self._of_address(host) if self._of_addresses else None
        if limit is None and self._connections_a_second >= NO_BOUND:
            return None
        now_s, used = self._clock.monotonic(), []
        if limit is not None:
            meter = self._addresses[CONNECTION_CREATION_RATE, host, ""]
            if meter.is_full(limit, now_s):
                return "clients connect from there more often than its quota allows"
            used.append((meter, limit))
        if self._connections_a_second < NO_BOUND:
            if self._connections.is_full(self._connections_a_second, now_s):
                return "clients connect more often than max.connection.creation.rate allows"
            used.append((self._connections, self._connections_a_second))
        for meter, bound in used:
            meter.add(1, bound, now_s)
        return None

    def _of_address(self, host: str) -> float | None:
        values = self._limits.get(((IP, host),)) or self._limits.get(((IP, None),))
        return None if values is None else values.get(CONNECTION_CREATION_RATE)


def _records_bytes(response: Any) -> int:
    return sum(
        len(partition.records)
        for topic in response.responses
        for partition in topic.partitions
        if partition.records is not None
    )
