"""Who takes part: Ottla, Apache Kafka of two generations, librdkafka's mock cluster, franz-go's kfake, Nisshi.

Nobody syncs appends to the disk, which is the default of Ottla and of Kafka, and is said to both once more; Nisshi's
SQLite syncs now and then, which nothing turns off. Ottla and Kafka remove deleted topics at once, so that the disk
holds one topic at a time and none has to be written.
"""

import hashlib
import os
import re
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
    # Prepared batches have the timestamps of 2023, and both look every five minutes for what is older than a week.
    "log.retention.ms": "-1",
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

NISSHI = "0.8.1"
NISSHI_FEATURES = "dynostore,libsql"
NISSHI_RUST = (1, 96)
"""The oldest compiler that it can be built with."""
TOOLCHAINS: tuple[list[str], ...] = ([], ["+nightly"])
"""What is said to rustc and cargo, in the order in which they are asked for their age."""
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

    @classmethod
    def build(cls) -> None:
        """Fetch it."""
        cls._jars()

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
        return f"{self._jars()}/*"

    @classmethod
    def _jars(cls) -> Path:
        return jars(cls.version, "broker")


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

    @classmethod
    def build(cls) -> None:
        """A small program around the package."""
        cls._program()

    def command(self) -> list[str]:
        """With its data in a folder."""
        (self.folder / "data").mkdir(exist_ok=True)
        return [str(self._program()), "-port", str(self.port), "-data", str(self.folder / "data")]

    @staticmethod
    def _program() -> Path:
        def build(directory: Path) -> None:
            directory.mkdir()
            command = ["go", "build", "-o", str(directory / "kfake"), "."]
            subprocess.run(command, cwd=KFAKE_SOURCE, check=True)

        sources = b"".join(path.read_bytes() for path in sorted(KFAKE_SOURCE.iterdir()))
        return download(f"kfake-{hashlib.sha256(sources).hexdigest()[:8]}", build) / "kfake"


class Nisshi(Server):
    """A broker in Rust that leaves storage to others: here to SQLite, with a row for each record.

    Its storage in memory is much faster, but forgets everything with its process.
    """

    title = f"Nisshi {NISSHI}"
    # Rows become batches of its own making when they are read, and the first partition may fill the whole reply.
    keeps_batches = False
    share = 0.05

    @classmethod
    def build(cls) -> None:
        """From crates.io, over 500 crates: a quarter of an hour on two cores."""
        cls._program()

    def command(self) -> list[str]:
        """With nothing said but where it listens and where its records go."""
        (self.folder / "data").mkdir(exist_ok=True)
        url = f"tcp://{self.bootstrap}"
        where = ["--listener-url", url, "--advertised-listener-url", url]
        # The third slash does not belong to the path, which would be relative without its own.
        storage = f"sqlite:///{self.folder.absolute() / 'data' / 'nisshi.db'}"
        return [str(self._program()), "broker", *where, "--storage-engine", storage, "--silent"]

    @staticmethod
    def _program() -> Path:
        return download(f"nisshi-{NISSHI}", _install_nisshi) / "bin" / "nisshi"


def at_hand() -> list[type[Server]]:
    """Those that can run on this machine; Ottla first, and what it is held against second."""
    found: list[type[Server]] = [Ottla]
    if java_is_available():
        found += [Kafka4, Kafka3]
    found.append(Mock)
    if shutil.which("go"):
        found.append(Kfake)
    if nisshi_toolchain() is not None:
        found.append(Nisshi)
    return found


def nisshi_toolchain() -> list[str] | None:
    """What to say to cargo so that it takes a compiler that is new enough for Nisshi; None if there is none."""
    if not shutil.which("cargo") or not shutil.which("rustc"):
        return None
    # Asked for a toolchain that is not there, some would fetch it.
    environment = {**os.environ, "RUSTUP_AUTO_INSTALL": "0"}
    for toolchain in TOOLCHAINS:
        command = ["rustc", *toolchain, "--version"]
        asked = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if not asked.returncode and rust_version(asked.stdout) >= NISSHI_RUST:
            return toolchain
    return None


def rust_version(told: str) -> tuple[int, ...]:
    """What rustc says of its version, up to the minor one.

    >>> rust_version("rustc 1.97.0-nightly (e50aa6fba 2026-05-19)")
    (1, 97)
    """
    found = re.match(r"rustc (\d+)\.(\d+)", told)
    return tuple(map(int, found.groups())) if found else ()


def _install_nisshi(directory: Path) -> None:
    toolchain = nisshi_toolchain()
    if toolchain is None:
        raise RuntimeError(f"Nisshi {NISSHI} needs Rust {'.'.join(map(str, NISSHI_RUST))}")
    target = directory / "target"
    what = ["nisshi", "--version", NISSHI, "--locked", "--no-default-features", "--features", NISSHI_FEATURES]
    where = ["--root", str(directory), "--target-dir", str(target)]
    done = subprocess.run(["cargo", *toolchain, "install", *what, *where], capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("error")]
        raise RuntimeError("; ".join(errors) or f"cargo ended with status {done.returncode}")
    shutil.rmtree(target, ignore_errors=True)
