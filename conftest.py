"""What the examples of the clients use without saying so: a broker of their own, and clients of it.

`run(lambda admin: admin.list_topics())` in an example of an asyncio client makes a client, has the function call it,
and stops it. In those of `ottla.sync` there are `producer`, `consumer` and `admin`, already started. The broker begins
empty; only where one reads, the topic `orders` has three records.
"""

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from ottla.testing import TestBroker

# How long examples take says more about what else the machine does than about the code.
settings.register_profile("ottla", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ottla")

CLIENTS = {"ottla.client.admin": "Admin", "ottla.client.producer": "Producer", "ottla.client.consumer": "Consumer"}
READERS = (
    "ottla.client.consumer",
    "ottla.client.ranges",
    "ottla.client.table",
    "ottla.sync.consumer",
    "ottla.sync.table",
)
OTHERS = ("ottla.client.ranges", "ottla.client.table", "ottla.sync")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where several processes run the tests, have those share one that share what is slow to start.

    That is one Spark, Java's clients, and one broker of each release of Kafka; all else stays together by module.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Together(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return Together(config, log) if config.getvalue("dist") == "loadscope" else None


def group_of(nodeid: str) -> str:
    """What a test shares with others of the same process.

    >>> group_of("tests/spark/test_batch.py::test_a")
    'spark'
    >>> group_of("tests/client/test_table.py::test_a[kafka-4-eager]")
    'kafka-4'
    """
    path = nodeid.partition("::")[0]
    if path.startswith("tests/spark/"):
        return "spark"
    if path.startswith("tests/interop/") and "java" in path:
        return "java"
    peer = re.search(r"\[(?:.*-)?(kafka-(?:4|3\.9))\b", nodeid)
    return path if peer is None else peer[1]


@pytest.fixture(autouse=True)
def client_examples(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give an example the names that it uses."""
    name = request.node.name
    if not (isinstance(request.node, pytest.DoctestItem) and name.startswith((*CLIENTS, *OTHERS))):
        yield
        return
    # What a module has itself comes first.
    globs = request.node.dtest.globs
    source = "".join(example.source for example in request.node.dtest.examples)
    wanted = {word for word in re.findall(r"\w+", source) if word not in globs}
    with ExitStack() as stack:
        stage = Stage(stack, name)
        for word in wanted:
            if (found := stage.find(word)) is not None:
                globs[word] = found
        yield


class Stage:
    """Makes what an example needs, when it needs it."""

    def __init__(self, stack: ExitStack, example: str) -> None:
        self._stack = stack
        self._example = example
        self._broker: TestBroker | None = None

    @property
    def broker(self) -> "TestBroker":
        """A broker, with three records if the example is about reading."""
        if self._broker is None:
            from ottla.testing import TestBroker

            # Whoever connects without a word may do everything, so that other examples work as ever.
            ruled = {"authorizer.class.name": "ottla", "super.users": "User:ANONYMOUS"}
            settings = ruled if self._example.endswith("_acls") else {}
            self._broker = self._stack.enter_context(TestBroker(settings))
            if self._example.startswith(READERS):
                asyncio.run(self._fill(self._broker.bootstrap_servers))
        return self._broker

    async def _fill(self, bootstrap_servers: str) -> None:
        from ottla import Producer

        async with Producer(bootstrap_servers=bootstrap_servers) as producer:
            for value in (b"one", b"two", b"three"):
                await producer.send("orders", value)

    def find(self, word: str) -> Any:
        """What a name stands for in an example, or None."""
        if word == "run":
            return self.run
        if word == "broker":
            return self.broker
        if word in ("admin", "producer", "consumer") and self._example.startswith("ottla.sync"):
            # Only here, as other tests look at what an import loads.
            from ottla import sync

            return self._stack.enter_context(self._client(sync, word.capitalize()))
        return self._names().get(word)

    def _names(self) -> dict[str, Any]:
        import ottla
        from ottla import sync
        from ottla.client import admin
        from ottla.client.offsets import OffsetSpec

        homes: list[Any] = [admin, ottla, *([sync] if self._example.startswith("ottla.sync") else [])]
        public = {name: getattr(home, name) for home in homes for name in home.__all__}
        return {"asyncio": asyncio, "OffsetSpec": OffsetSpec, **public}

    def run(self, work: Callable[[Any], Any]) -> Any:
        """What a function gives that is called with a client."""
        # Filling the broker takes an event loop of its own.
        assert self.broker
        return asyncio.run(self._run(work))

    async def _run(self, work: Callable[[Any], Any]) -> Any:
        import ottla

        kind = next(kind for room, kind in CLIENTS.items() if self._example.startswith(room))
        async with self._client(ottla, kind) as client:
            found = work(client)
            return await found if inspect.isawaitable(found) else found

    def _client(self, home: Any, kind: str) -> Any:
        servers = self.broker.bootstrap_servers
        if kind == "Consumer":
            return home.Consumer("orders", bootstrap_servers=servers, group_id="readers", auto_offset_reset="earliest")
        return getattr(home, kind)(bootstrap_servers=servers)
