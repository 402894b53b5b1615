"""What the examples of the clients use without saying so: a broker of their own, and clients of it.

`run(lambda admin: admin.list_topics())` in an example of an asyncio client makes a client, has the function call it,
and stops it. In those of `ottla.sync` there are `producer`, `consumer` and `admin`, already started. The broker begins
empty; only where one reads, the topic `orders` has three records.
"""

import asyncio
import gc
import inspect
import os
import re
import sysconfig
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from ottla.testing import TestBroker

# How long examples take says more about what else the machine does than about the code. `make properties` has more.
settings.register_profile("ottla", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("many", settings.get_profile("ottla"), max_examples=1000)
settings.load_profile("ottla")

# Some modules are compiled as they stand, and what was imported is not the file that examples were looked for in.
os.environ["PY_IGNORE_IMPORTMISMATCH"] = "1"

CLIENTS = {"ottla.client.admin": "Admin", "ottla.client.producer": "Producer", "ottla.client.consumer": "Consumer"}
READERS = (
    "ottla.client.consumer",
    "ottla.client.ranges",
    "ottla.client.table",
    "ottla.sync.consumer",
    "ottla.sync.table",
)
OTHERS = ("ottla.client.ranges", "ottla.client.table", "ottla.sync")

LONGEST = (
    "spark streams",
    "spark",
    "java",
    "kafka-4",
    "kafka-3.9",
    "tests/unit/cli/test_demo.py",
    "tests/interop/test_group_storms.py",
    "tests/packaging/test_install.py",
    "tests/suites/test_suites.py",
    "tests/crash/test_kill.py",
    "tests/conformance/test_conformance.py",
    "tests/faults/test_group_faults.py",
    "tests/sim/groups/test_histories.py",
    "tests/client/test_admin_faults.py",
    "tests/fuzz/test_hostile_bytes.py",
)
"""The groups of tests that take longest, so that none of them begins when all others are done."""

SPARK_STREAMS = ("test_batch", "test_streaming", "test_sink", "test_progress")
"""Tests of Spark that take half of the time of all of them."""


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test what was compiled before its sources were last changed."""
    from ottla.native import PURE_PYTHON

    sources = config.rootpath / "src"
    built = sources / f"ottla__mypyc{sysconfig.get_config_var('EXT_SUFFIX')}"
    if PURE_PYTHON or not built.exists():
        return
    for line in (sources / "ottla/compiled.txt").read_text().splitlines():
        if line and not line.startswith("#") and (sources / line).stat().st_mtime > built.stat().st_mtime:
            raise pytest.UsageError(f"src/{line} is newer than what was compiled of it; run `make setup`")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have the garbage collector leave alone what collecting the tests made: much, and it stays until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where several processes run the tests, have those share one that share what is slow to start.

    That is one of two Sparks, Java's clients, and one broker of each release of Kafka; all else stays together by
    module. Those that take longest come first, and then those of whom there are most.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Together(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            longest = next((group for group in LONGEST if group in self.workqueue), None)
            if longest is not None:
                self.workqueue.move_to_end(longest, last=False)
            super()._assign_work_unit(node)

    return Together(config, log) if config.getvalue("dist") == "loadscope" else None


def group_of(nodeid: str) -> str:
    """What a test shares with others of the same process.

    >>> group_of("tests/spark/test_batch.py::test_a")
    'spark streams'
    >>> group_of("tests/client/test_table.py::test_a[kafka-4-eager]")
    'kafka-4'
    """
    path = nodeid.partition("::")[0]
    if path.startswith("tests/spark/"):
        return "spark streams" if path.removeprefix("tests/spark/").startswith(SPARK_STREAMS) else "spark"
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
