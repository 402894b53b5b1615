"""What others may see of a broker over HTTP: its metrics, whether it serves clients, and whether it is alive.

/metrics for Prometheus; /ready is 200 while clients are served and 503 before and after; /live is 200 as long as the
event loop turns. Questions come in on threads, and are handed to the event loop, whose answers they wait for.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import TimeoutError as TookTooLongError
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from ottla import __version__
from ottla.metrics.family import Family
from ottla.metrics.http_port import HttpPort, Page
from ottla.ports import Clock
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.gauges import Gauges

T = TypeVar("T")

SCRAPE_S = 10.0
"""How long a scrape may take on the event loop, the time that Prometheus waits by default."""

TURN_S = 2.0
"""How long an event loop that is alive may take until it has a moment."""

PAUSE_S = 0.0005

INDEX = b"ottla: /metrics for Prometheus, /ready and /live for health checks\n"

Render = Callable[[list[Family], str], tuple[bytes, str]]


class Sight:
    """The HTTP port of a broker."""

    READY = "ready"

    def __init__(self, host: str, port: int, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._host = host
        self._wanted_port = port
        self._port: HttpPort | None = None
        self._one_at_a_time = threading.Lock()
        self._render: Render = lambda families, accept: (b"", "")
        self.status = "starting"
        """What the broker does; `ready` once it serves clients."""
        self.gauges: Gauges | None = None
        """What looks around in the broker, once there is one."""

    @property
    def address(self) -> str:
        """Host and port to ask."""
        port = self._wanted_port if self._port is None else self._port.port
        host = self._host or "localhost"
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def open(self) -> None:
        """Listen."""
        try:
            await self._loop.run_in_executor(None, self._open)
        except OSError as error:
            message = f"ottla.metrics.listen: cannot listen on {self.address}: {error.strerror or error}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, message) from error

    def _open(self) -> None:
        # Here, in a thread, and not for those who want no metrics: prometheus-client takes a while to load.
        from ottla.metrics.exposition import process_metrics, render

        more = process_metrics()
        pauses = threading.Event()
        self._render = lambda families, accept: render(families, accept, lambda: pauses.wait(PAUSE_S), more)
        self._port = HttpPort(self._host, self._wanted_port, self._answer)

    async def close(self) -> None:
        """Listen no more."""
        port, self._port = self._port, None
        if port is not None:
            await self._loop.run_in_executor(None, port.close)

    # In threads.

    def _answer(self, path: str, accept: str) -> Page | None:
        if path == "/metrics":
            return self._metrics(accept)
        if path == "/ready":
            return _health(self.status if self._turns() else "stalled", self.READY)
        if path == "/live":
            return _health("alive" if self._turns() else "stalled", "alive")
        return Page(INDEX) if path == "/" else None

    def _metrics(self, accept: str) -> Page:
        if not self._one_at_a_time.acquire(timeout=SCRAPE_S):
            return _health("busy with the scrapes of others")
        try:
            families = self._from_loop(self._look(self._clock.monotonic()), SCRAPE_S)
            if families is None:
                return _health("stalled")
            return Page(*self._render(families, accept))
        finally:
            self._one_at_a_time.release()

    def _turns(self) -> bool:
        return self._from_loop(_turn(), TURN_S) is True

    def _from_loop(self, question: Coroutine[Any, Any, T], timeout_s: float) -> T | None:
        """What the event loop answers, or None if it does not in time."""
        try:
            asked = asyncio.run_coroutine_threadsafe(question, self._loop)
        except RuntimeError:
            # The loop is closed already.
            question.close()
            return None
        try:
            return asked.result(timeout_s)
        except TookTooLongError:
            asked.cancel()
            return None

    # On the event loop.

    async def _look(self, asked_at: float) -> list[Family]:
        delay = Family("ottla_event_loop_delay_seconds", "gauge", "How long the scrape waited for the event loop.")
        delay.add(self._clock.monotonic() - asked_at)
        ready = Family("ottla_ready", "gauge", "Whether clients are served.")
        ready.add(int(self.status == self.READY))
        build = Family("ottla_build_info", "gauge", "The version that runs.", "version")
        build.add(__version__, 1)
        return [build, ready, delay, *(await self.gauges.look() if self.gauges is not None else ())]


async def _turn() -> bool:
    return True


def _health(status: str, good: str | None = None) -> Page:
    found = HTTPStatus.OK if status == good else HTTPStatus.SERVICE_UNAVAILABLE
    return Page(f"{status}\n".encode(), status=found)
