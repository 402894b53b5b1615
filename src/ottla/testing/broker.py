"""A broker on a thread of its own, so that blocking clients in the test can talk to it."""

import asyncio
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any

from ottla.broker.server import Server
from ottla.cluster.image import Endpoint
from ottla.config.broker import BrokerConfig
from ottla.config.listener import ListenerAddress, parse_listener

HOST = "127.0.0.1"
START_SECONDS = 30.0

QUICK: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}
"""Settings that suit tests: nobody waits for members that might still come."""


def _as_text(value: object) -> str:
    """A setting as it stands in a file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class TestBroker:
    """A real broker in this process.

    >>> with TestBroker() as broker:
    ...     host, port = broker.bootstrap_servers.split(":")
    >>> host
    '127.0.0.1'

    Its data goes to a temporary folder and is removed with it, unless a folder is given. Any setting of a broker can be
    given by Kafka's name: `TestBroker({"num.partitions": "4"})`. Its listeners too, with TLS for example:

    >>> TLS = {"listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0", "ssl.keystore.location": "broker.pem"}
    >>> with TestBroker(TLS) as broker:  # doctest: +SKIP
    ...     broker.bootstrap_servers == str(broker.endpoints["SSL"])
    True
    """

    __test__ = False

    def __init__(
        self, settings: Mapping[str, str | int | float | bool] | None = None, *, folder: str | None = None
    ) -> None:
        self._settings = {name: _as_text(value) for name, value in (settings or {}).items()}
        self._temporary = None if folder is not None else tempfile.TemporaryDirectory(prefix="ottla-")
        self.folder = folder if folder is not None else self._temporary.name if self._temporary else ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self.host = HOST
        self.port = 0
        self.endpoints: dict[str, Endpoint] = {}
        """The addresses that clients are told, by the names of the listeners."""
        self.ports: dict[str, int] = {}
        """Where it listens, by the names of the listeners."""
        self.metrics_address = ""
        """Host and port of its metrics, if `ottla.metrics.listen` is set."""

    @property
    def bootstrap_servers(self) -> str:
        """What clients call it: `host:port`, of the first listener."""
        return f"{self.host}:{self.port}"

    def start(self) -> "TestBroker":
        """Start the broker and return when it listens. After a stop it starts again on the same port and data."""
        self._ready.clear()
        self._failure = None
        self._thread = threading.Thread(target=self._run, name="ottla-test-broker", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            raise TimeoutError(f"the broker did not start within {START_SECONDS} s")
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """Stop the broker cleanly; its data stays."""
        if self._thread is None:
            return
        if self._loop is not None and self._stop is not None:
            # One that could not start has ended already, with its loop.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._thread = None

    def close(self) -> None:
        """Stop the broker and remove its temporary folder."""
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - handed to whoever started it
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        settings: dict[str, Any] = {
            **QUICK,
            "listeners": f"PLAINTEXT://{HOST}:0",
            "log.dirs": self.folder,
            **self._settings,
        }
        settings["listeners"] = ",".join(map(str, self._listeners(settings["listeners"])))
        async with Server(BrokerConfig(settings)) as server:
            self.host, self.port = server.host, server.port
            self.endpoints, self.ports = server.endpoints, server.ports
            self.metrics_address = "" if server.sight is None else server.sight.address
            self._ready.set()
            await self._stop.wait()

    def _listeners(self, wanted: str) -> Iterator[ListenerAddress]:
        """Where to listen: where it did before it was stopped, if any free port will do."""
        for text in wanted.split(","):
            address = parse_listener("listeners", text.strip())
            yield replace(address, port=address.port or self.ports.get(address.name, 0))

    def __enter__(self) -> "TestBroker":
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
