"""A client that does nothing wrong, and must not notice those who do."""

import threading
import time
from types import TracebackType
from typing import Self

from ottla.record import Batch, batches, records
from ottla.record.build import build_batch
from ottla.record.kernels import Record
from tests.interop.raw_client import LATEST, RawClient

TOPIC = "good"


class GoodClient(threading.Thread):
    """Appends numbers and reads each back until the end of the `with` block, which raises what went wrong meanwhile."""

    def __init__(self, address: tuple[str, int], pause_seconds: float = 0.0) -> None:
        super().__init__(name="good-client", daemon=True)
        self._address = address
        self._pause_seconds = pause_seconds
        self._stop_asked = threading.Event()
        self._failure: BaseException | None = None
        self.round_trips: list[float] = []
        """Seconds that one record took to be appended and read back."""

    def run(self) -> None:
        """Work until told to stop."""
        try:
            with RawClient(self._address) as client:
                client.topic(TOPIC)
                first = client.offset(TOPIC, LATEST)
                while not self._stop_asked.wait(self._pause_seconds):
                    began = time.perf_counter()
                    self._round_trip(client, first + len(self.round_trips))
                    self.round_trips.append(time.perf_counter() - began)
        except BaseException as error:  # noqa: BLE001 - handed to whoever started it
            self._failure = error

    def _round_trip(self, client: RawClient, number: int) -> None:
        value = b"%d" % number
        offset = client.produce(TOPIC, build_batch([Record(0, 1_700_000_000_000 + number, None, value)]))
        assert offset == number, f"record {number} was appended at {offset}"
        (batch,) = batches(client.fetch(TOPIC, offset))
        assert isinstance(batch, Batch)
        assert [record.value for record in records(batch)] == [value]

    def __enter__(self) -> Self:
        self.start()
        while not self.round_trips and self.is_alive():
            time.sleep(0.001)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_asked.set()
        self.join()
        if self._failure is not None and error is None:
            raise self._failure

    def slowest(self) -> float:
        """The longest round trip."""
        return max(self.round_trips)
