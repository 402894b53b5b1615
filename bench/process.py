"""A broker in a process of its own, seen from outside: how long it takes to start, and what it holds."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
STOP_SECONDS = 120


def cpu_seconds_of_children(pid: int) -> dict[int, float]:
    """The processor time of each process that comes from that one, children of children too, itself aside."""
    children: dict[int, list[tuple[int, float]]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            # It has just ended.
            continue
        parent = int(stat.rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append((int(folder.name), _cpu_seconds(stat)))
    found: dict[int, float] = {}
    parents = [pid]
    while parents:
        for child, seconds in children.get(parents.pop(), []):
            found[child] = seconds
            parents.append(child)
    return found


def _cpu_seconds(stat: str) -> float:
    """What a process has used by itself, from its line in /proc."""
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICKS_PER_SECOND


class BrokerProcess:
    """`ottla serve` on a free port, from `start` to a clean `stop`."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self._folder = folder
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None
        self.port = 0
        self.process_seconds = 0.0
        """From the command to the ready line, the interpreter's own start included."""
        self.start_seconds = 0.0
        """What the broker itself says it took."""

    def start(self) -> Self:
        """Start it, and return when it is ready."""
        command = [sys.executable, "-m", "ottla", "serve", "--listen", "127.0.0.1:0", "--data", str(self._folder)]
        for setting in self._settings:
            command += ["--set", setting]
        began = time.perf_counter()
        process = self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        self.process_seconds = time.perf_counter() - began
        if " ready at " not in line:
            raise RuntimeError(f"the broker did not start: {line!r}; run {' '.join(command)} to see why")
        address, _, rest = line.partition(" ready at ")[2].partition(",")
        self.port = int(address.rpartition(":")[2])
        self.start_seconds = int(rest.rpartition("(")[2].removesuffix(" ms)\n")) / 1000
        return self

    def stop(self) -> float:
        """Stop it cleanly; how many seconds that took."""
        process = self._process
        if process is None:
            return 0.0
        self._process = None
        began = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            assert process.stdout is not None
            process.stdout.close()
        return time.perf_counter() - began

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return "127.0.0.1", self.port

    @property
    def _proc(self) -> Path:
        return Path(f"/proc/{self.pid}")

    @property
    def resident_bytes(self) -> int:
        """The memory that it has now."""
        return int((self._proc / "statm").read_text().split()[1]) * PAGE_BYTES

    @property
    def cpu_seconds(self) -> float:
        """The processor time that it has taken."""
        return _cpu_seconds((self._proc / "stat").read_text())

    @property
    def open_data_files(self) -> int:
        """How many files of its data folder are open, those of its metadata and its lock aside."""
        prefix = f"{self._folder.resolve()}/"
        found = 0
        for link in (self._proc / "fd").iterdir():
            try:
                target = os.readlink(link)
            except FileNotFoundError:
                continue
            found += "/" in target.removeprefix(prefix) and target.startswith(prefix)
        return found
