"""Apache Kafka as a broker in tests: one node, broker and controller in one process."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from ottla.wire.api.metadata import MetadataRequest
from tests.interop.raw_client import RawClient
from tests.java.program import compiled, jars

from .ports import ReservedPort

KAFKA_4 = "4.3.1"
"""The newest release whose broker is published."""
KAFKA_3 = "3.9.2"

SOURCE = Path(__file__).parent / "java" / "Broker.java"
# The log is what a failed start is explained with; warnings do for that.
OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xmx400m",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
CLUSTER_ID = "b3R0bGEtdGVzdHMtcGVlcg"
START_SECONDS = 120.0
STOP_SECONDS = 60.0

ONE_NODE: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "auto.create.topics.enable": "true",
    "log.retention.ms": "-1",
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
}
"""What a cluster of one needs, and what suits tests: nobody waits for members that might still come, nor for long until
the controller believes that a killed broker is gone and lets it in again; and records with timestamps of long ago stay
longer than the five minutes until retention looks at them."""


class KafkaBroker:
    """A Kafka broker of a given release, in a process of its own that ends with this one, however that ends.

    >>> with KafkaBroker(KAFKA_4, {"num.partitions": "4"}) as broker:  # doctest: +SKIP
    ...     broker.bootstrap_servers
    '127.0.0.1:41873'

    Its data goes to a temporary folder, which is removed when it is closed.
    """

    def __init__(self, version: str = KAFKA_4, settings: Mapping[str, str] | None = None) -> None:
        self.version = version
        self.host = "127.0.0.1"
        self._ports = [ReservedPort(self.host), ReservedPort(self.host)]
        self.port, self._controller_port = (port.number for port in self._ports)
        self.folder = Path(tempfile.mkdtemp(prefix=f"kafka-{version}-"))
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """What clients call it: `host:port`."""
        return f"{self.host}:{self.port}"

    @property
    def process_id(self) -> int | None:
        """The process that is the broker, while there is one."""
        return None if self._process is None else self._process.pid

    def start(self) -> Self:
        """Start the broker and return when it answers. After a stop or a kill it has the same port and data."""
        assert self._process is None, "the broker runs already"
        libraries = jars(self.version, "broker")
        class_path = f"{compiled(libraries, SOURCE)}:{libraries}/*"
        properties = self.folder / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in self._all_settings().items()))
        with self._log_file.open("ab") as output:
            self._process = subprocess.Popen(
                ["java", *OPTIONS, "-cp", class_path, SOURCE.stem, str(properties), CLUSTER_ID],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                # An interrupt from the keyboard is for the tests, which then stop the broker.
                start_new_session=True,
            )
        try:
            self._wait_until_it_answers(self._process)
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Stop the broker cleanly; its data stays."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the broker at once, as a crash would; its data stays."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """End the broker and remove its folder."""
        try:
            self.kill()
        finally:
            for port in self._ports:
                port.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        """What the broker complained of."""
        return self._log_file.read_text(errors="replace")

    @property
    def _log_file(self) -> Path:
        return self.folder / "output.log"

    def _all_settings(self) -> dict[str, str]:
        broker, controller = self.bootstrap_servers, f"{self.host}:{self._controller_port}"
        return {
            **ONE_NODE,
            "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{broker}",
            "controller.quorum.voters": f"{ONE_NODE['node.id']}@{controller}",
            "log.dirs": str(self.folder / "data"),
            **self._settings,
        }

    def _wait_until_it_answers(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._knows_itself():
            if process.poll() is not None:
                raise RuntimeError(
                    f"Kafka {self.version} ended with status {process.returncode}:\n{self.log()[-5000:]}"
                )
            if time.monotonic() > deadline:
                raise TimeoutError(f"Kafka {self.version} did not answer in {START_SECONDS} s:\n{self.log()[-5000:]}")
            time.sleep(0.05)

    def _knows_itself(self) -> bool:
        """Whether the broker lists itself among the brokers, which is when its controller lets it serve clients."""
        try:
            with RawClient((self.host, self.port)) as client:
                return bool(client.call(MetadataRequest(topics=[]), 1).brokers)
        except OSError:
            return False

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with process:
            process.send_signal(how)
            try:
                process.wait(STOP_SECONDS)
            finally:
                process.kill()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
