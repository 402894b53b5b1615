"""The proxy itself: a thread with an event loop inside, blocking methods outside."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from random import Random
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from ottla.wire import api as wire_api
from ottla.wire.frame import decode_request
from tests.peers.ports import ReservedPort

from .actions import Action, Ending, Exchange
from .addresses import addresses, decode_if_it_names_brokers, encode
from .journal import Journal
from .lane import Traffic
from .link import Link
from .rules import KEYS, QUICK_FAULTS, Fault, RandomAction, Rule, Rules, key_of

T = TypeVar("T")
Milliseconds = float | tuple[float, float]

CALL_SECONDS = 30.0


class Delays(NamedTuple):
    """How late frames are, on one connection or on all."""

    request_ms: Milliseconds = 0
    reply_ms: Milliseconds = 0
    seed: int = 0
    connection: int | None = None


class Front:
    """The address that stands for one broker."""

    def __init__(self, host: str, accept: Callable[[socket.socket], None]) -> None:
        self._host = host
        self._accept = accept
        self._reserved = ReservedPort(host)
        self.port = self._reserved.number
        self._listening: socket.socket | None = None

    def open(self) -> None:
        """Listen."""
        if self._listening is None:
            self._listening = socket.create_server((self._host, self.port), backlog=100)
            self._listening.setblocking(False)
            asyncio.get_running_loop().add_reader(self._listening, self._take, self._listening)

    def _take(self, listening: socket.socket) -> None:
        # A client may have left before it was taken.
        with suppress(OSError):
            client, _ = listening.accept()
            client.setblocking(False)
            self._accept(client)

    def refuse(self) -> None:
        """Stop listening; the port stays reserved."""
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
            self._listening = None

    def close(self) -> None:
        """Let the port go."""
        self.refuse()
        self._reserved.close()


class FaultProxy:
    """Stands between clients and the broker at an address, and every other broker that the broker names.

    >>> from ottla.testing import TestBroker
    >>> from tests.faults import cut_reply
    >>> with TestBroker() as broker, FaultProxy(broker.bootstrap_servers) as proxy:
    ...     rule = proxy.on("Produce", nth=3, action=cut_reply(after=10))
    ...     settings = {"bootstrap.servers": proxy.bootstrap_servers}

    Nothing goes wrong unless it is asked for. What went wrong is counted in `faults` by the action's name, and told in
    `report()`. All methods can be called from any thread, except the proxy's own.
    """

    def __init__(self, broker: str, *, host: str = "127.0.0.1") -> None:
        self.journal = Journal()
        self.traffic: Traffic
        self.host = host
        self.port = 0
        broker_host, _, broker_port = broker.rpartition(":")
        self._broker = (broker_host, int(broker_port))
        self._fronts: dict[tuple[str, int], Front] = {}
        self._links: dict[Link, asyncio.Task[None]] = {}
        self._rules = Rules()
        self._delays: list[Delays] = []
        self._watchers: list[Callable[[Exchange, bytes], None]] = []
        self._refusing = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)

    # What goes wrong.

    def on(self, api: str | int | None, action: Action, *, nth: int = 1, times: int | None = 1) -> Rule:
        """Do something to the nth request of an API from now on, counted over all connections, and to `times` in all.

        The API is given by name or key, None is any; with `times=None` every request from the nth on is meant. Where
        several rules apply the first one acts, though all of them count the request.
        """
        rule = Rule(key_of(api), action, nth, times)
        self._call(self._rules.add, rule)
        return rule

    def random_faults(self, seed: int, rate: float, actions: Sequence[RandomAction] = QUICK_FAULTS) -> None:
        """Have that share of all requests fail in one of these ways."""
        self._call(self._rules.leave_to_chance, seed, rate, actions)

    def delay(
        self,
        *,
        request_ms: Milliseconds = 0,
        reply_ms: Milliseconds = 0,
        seed: int = 0,
        connection: int | None = None,
    ) -> None:
        """Delay every frame by a time, or by one between two that chance names; on one connection or on each.

        Frames of a connection stay in order. Those under way are not affected. Delays that were asked for add up.
        """
        self._call(self._delays.append, Delays(request_ms, reply_ms, seed, connection))

    def throttle(self, bytes_per_second: int | None) -> None:
        """Let no more through, in each direction of each connection; None lifts it."""
        self._call(setattr, self.traffic, "bytes_per_second", bytes_per_second)

    def refuse(self) -> None:
        """Refuse new connections; those that exist stay."""
        self._call(self._refuse)

    def accept(self) -> None:
        """Take connections again, at the same address."""
        self._call(self._open_all)

    def freeze(self) -> None:
        """Let nothing through, either way: connections are accepted and never answered."""
        self._call(self.traffic.moving.clear)

    def thaw(self) -> None:
        """Let things go on, those that were held up first."""
        self._call(self.traffic.moving.set)

    def cut(self, *, reset: bool = False) -> int:
        """Cut all connections, and return when they are gone, with how many there were."""
        return self._run(self._cut(Ending.RST if reset else Ending.FIN))

    def calm(self) -> None:
        """Let nothing go wrong any more. Faults that requests are in for already still happen."""
        self._call(self._rules.clear)
        self._call(self._delays.clear)
        self._call(self._watchers.clear)
        self.throttle(None)
        self.thaw()
        self.accept()

    # What went wrong.

    @property
    def bootstrap_servers(self) -> str:
        """The proxy's address, as `host:port`."""
        return f"{self.host}:{self.port}"

    @property
    def faults(self) -> Counter[str]:
        """How often each action took place, by its name."""
        return self.journal.faults

    @property
    def requests(self) -> Counter[str]:
        """How many requests came, by the API's name."""
        return self.journal.requests

    @property
    def connections(self) -> int:
        """How many connections clients have made."""
        return self.journal.connections

    @property
    def open_connections(self) -> int:
        """How many of them there are now."""
        return len(self._links)

    def report(self) -> str:
        """What happened last, for the message of a test that fails."""
        return "\n".join([f"the proxy's faults: {dict(self.faults)}", *self.journal.lines()])

    def watch(self, api: str, see: Callable[[Any], None]) -> None:
        """Have every request of an API, decoded, seen by a function, in the proxy's thread and before it goes on."""
        key = KEYS[api]

        def decoded(exchange: Exchange, frame: bytes) -> None:
            if exchange.key == key:
                see(decode_request(wire_api.request(key), exchange.version, frame[4:])[1])

        self._call(self._watchers.append, decoded)

    # What links ask.

    def see(self, exchange: Exchange, frame: bytes) -> None:
        """Show a request to those who watch."""
        for watcher in self._watchers:
            watcher(exchange, frame)

    def choose(self, exchange: Exchange) -> Fault | None:
        """What a request is in for."""
        return self._rules.choose(exchange)

    def delays_ms(self, exchange: Exchange) -> tuple[float, float]:
        """How late a request and its reply are."""
        request_ms = reply_ms = 0.0
        for delays in self._delays:
            if delays.connection in (None, exchange.connection):
                random = Random(f"{delays.seed}/{exchange.connection}/{exchange.sequence}")
                request_ms += _draw(delays.request_ms, random)
                reply_ms += _draw(delays.reply_ms, random)
        return request_ms, reply_ms

    def lead_back(self, exchange: Exchange, frame: bytes) -> bytes:
        """A reply in which all brokers have the proxy's addresses."""
        response = decode_if_it_names_brokers(exchange, frame)
        if response is None:
            return frame
        for place in addresses(exchange, response):
            front = self._front((place.host, place.port))
            place.host, place.port = self.host, front.port
        return encode(exchange, response)

    # Inside the loop.

    def _front(self, broker: tuple[str, int]) -> Front:
        front = self._fronts.get(broker)
        if front is None:
            front = self._fronts[broker] = Front(self.host, lambda client: self._accept(client, broker))
            if not self._refusing:
                front.open()
        return front

    def _accept(self, client: socket.socket, broker: tuple[str, int]) -> None:
        self.journal.connections += 1
        link = Link(self, self.journal.connections, client, broker)
        task = asyncio.ensure_future(link.run())
        self._links[link] = task
        task.add_done_callback(lambda _: self._links.pop(link))

    def _begin(self) -> None:
        self.traffic = Traffic()
        self.port = self._front(self._broker).port

    def _refuse(self) -> None:
        self._refusing = True
        for front in self._fronts.values():
            front.refuse()

    def _open_all(self) -> None:
        self._refusing = False
        for front in self._fronts.values():
            front.open()

    async def _cut(self, ending: Ending) -> int:
        tasks = list(self._links.values())
        for link in self._links:
            link.end(ending)
        await asyncio.gather(*tasks)
        return len(tasks)

    async def _finish(self) -> None:
        for front in self._fronts.values():
            front.close()
        await self._cut(Ending.RST)

    # Between the threads.

    def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        async def call() -> T:
            return function(*arguments)

        return self._run(call())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_SECONDS)

    def start(self) -> Self:
        """Listen."""
        self._thread.start()
        self._call(self._begin)
        return self

    def close(self) -> None:
        """Cut all connections and stop. What the proxy itself did wrong is raised."""
        try:
            self._run(self._finish())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CALL_SECONDS)
            self._loop.close()
        if self.journal.failures:
            raise ExceptionGroup("the proxy failed", self.journal.failures)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(self.report())
        self.close()


def _draw(milliseconds: Milliseconds, random: Random) -> float:
    return random.uniform(*milliseconds) if isinstance(milliseconds, tuple) else milliseconds
