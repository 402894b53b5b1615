"""Who takes part: Ottla, Apache Kafka of two generations, librdkafka's mock cluster, franz-go's kfake.

Nobody syncs appends to the disk, which is the default of Ottla and of Kafka, and is said to both once more. Ottla and
Kafka remove deleted topics at once, so that the disk holds one topic at a time and none has to be written.
"""

import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.conformance.oracle import download
from tests.java.program import is_available as java_is_available
from tests.java.program import jars
from tests.peers.kafka import CLUSTER_ID, KAFKA_3, KAFKA_4, ONE_NODE
from tests.peers.ports import ReservedPort

from bench.caller import Caller

from .server import POLL_SECONDS, START_SECONDS, Server

SETTINGS = {
    "log.flush.interval.messages": str(2**63 - 1),
    "log.segment.delete.delay.ms": "100",
}

KAFKA_OPTIONS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
"""The heap and the options that kafka-server-start.sh gives where nobody says otherwise; of its logs only warnings."""

KFAKE_SOURCE = Path(__file__).parent / "kfake"


class Ottla(Server):
    """`ottla serve`."""

    title = "Ottla"

    def command(self) -> list[str]:
        """The command that users type, with the settings that all share."""
        settings = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
        data = str(self.folder / "data")
        serve = [sys.executable, "-m", "ottla", "serve", "--listen", self.bootstrap, "--data", data]
        return [*serve, "--log-level", "warning", *settings]


class Kafka(Server):
    """Apache Kafka, one node that is broker and controller, as its own start script would run it."""

    version: str

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._controller_port = ReservedPort()
        self.session_timeout_ms = 4_000
        """A short one lets a killed broker in again soon; one that is paused needs one that lasts."""

    def prepare(self) -> None:
        """Format its folder."""
        controller = f"127.0.0.1:{self._controller_port.number}"
        settings = {
            **ONE_NODE,
            **SETTINGS,
            "broker.session.timeout.ms": str(self.session_timeout_ms),
            # Until then it removes no files either.
            "log.initial.task.delay.ms": "100",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.quorum.voters": f"{ONE_NODE['node.id']}@{controller}",
            "log.dirs": str(self.folder / "data"),
        }
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        format_it = ["kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(self._properties)]
        done = subprocess.run(
            ["java", "-cp", self._class_path, *format_it], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{self.title} could not format its folder:\n{done.stdout}{done.stderr}")

    def command(self) -> list[str]:
        """The Java that kafka-server-start.sh would start."""
        return ["java", *KAFKA_OPTIONS, "-cp", self._class_path, "kafka.Kafka", str(self._properties)]

    def close(self) -> None:
        """Let the controller's port go too."""
        super().close()
        self._controller_port.close()

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _class_path(self) -> str:
        return f"{jars(self.version, 'broker')}/*"


class Kafka4(Kafka):
    """The newest release whose broker is published; what all ratios are to."""

    version = KAFKA_4
    title = f"Kafka {KAFKA_4}"


class Kafka3(Kafka):
    """The last release of the generation before."""

    version = KAFKA_3
    title = f"Kafka {KAFKA_3}"


class Mock(Server):
    """The cluster inside librdkafka: in memory, with four partitions a topic, and forgetful of all but the last."""

    title = "librdkafka mock"
    keeps_records = False
    starts_again = False
    most_partitions = 1
    serves_java = False

    def command(self) -> list[str]:
        """A process that has a client with a cluster inside."""
        return [sys.executable, "-m", "bench.brokers.mock", str(self._port_file)]

    def start(self) -> "Mock":
        """Its port is its own choice, and is known once it runs."""
        self.launch()
        deadline = time.monotonic() + START_SECONDS
        while not self._port_file.exists():
            self.check_alive()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.title} did not start in {START_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)
        self.port = int(self._port_file.read_text())
        return self

    def delete_topic(self, name: str) -> None:
        """It cannot, and it keeps little of a topic anyhow."""

    def _create(self, caller: Caller, name: str, partitions: int) -> None:
        """It makes topics when they are asked for."""

    @property
    def _port_file(self) -> Path:
        return self.folder / "port"


class Kfake(Server):
    """The broker that franz-go is tested with: Go, with its data in memory and in a folder."""

    title = "kfake"
    starts_again = False

    def prepare(self) -> None:
        """Build it, once for all runs."""
        self._program()

    def command(self) -> list[str]:
        """A small program around the package."""
        (self.folder / "data").mkdir(exist_ok=True)
        return [str(self._program()), "-port", str(self.port), "-data", str(self.folder / "data")]

    def _program(self) -> Path:
        def build(directory: Path) -> None:
            directory.mkdir()
            command = ["go", "build", "-o", str(directory / "kfake"), "."]
            subprocess.run(command, cwd=KFAKE_SOURCE, check=True)

        sources = b"".join(path.read_bytes() for path in sorted(KFAKE_SOURCE.iterdir()))
        return download(f"kfake-{hashlib.sha256(sources).hexdigest()[:8]}", build) / "kfake"


def at_hand() -> list[type[Server]]:
    """Those that can run on this machine; Ottla first, and what it is held against second."""
    found: list[type[Server]] = [Ottla]
    if java_is_available():
        found += [Kafka4, Kafka3]
    found.append(Mock)
    if shutil.which("go"):
        found.append(Kfake)
    return found
