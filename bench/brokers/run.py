"""Contenders in turn, round after round: while one works, the others stand still."""

import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar, cast

from .line import Line, Values
from .peers import Kafka, Kafka4, Ottla
from .plain import Mode, Plain
from .results import Report, Result
from .server import Server

MODE_TITLES = {
    Mode.SOCKETS: "sockets",
    Mode.FILE: "sockets, CRC, file",
    Mode.FROM_FILE: "sockets, file",
    Mode.PROCESS: "a Python that answers",
    Mode.CHECK: "a file read, CRC",
}
OTHERS_ROUNDS = 2
"""Those that no ratio is to take part in fewer rounds."""
LONG_SESSION_MS = 24 * 3_600_000
"""For brokers that stand still meanwhile, lest their controller misses them."""
FAILURES = (OSError, RuntimeError, ValueError, subprocess.SubprocessError)
Told = Callable[[str], object]
Save = Callable[[Report], object]
AnyServer = TypeVar("AnyServer", bound=Server)


class Arena:
    """The contenders that run from line to line, beside each other in one folder, and one that is no broker."""

    def __init__(self, kinds: Sequence[type[Server]], folder: Path, tell: Told) -> None:
        self.kinds = list(kinds)
        self.failures: list[str] = []
        self._folder = folder
        self._tell = tell
        self._standing: dict[type[Server], Server] = {}
        self._stack = ExitStack()
        self._fresh = 0

    def __enter__(self) -> "Arena":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def build(self, lines: Sequence[Line]) -> None:
        """Have everybody built, and all fetched that lines need; who cannot be built is told at the end, and the others
        go on."""
        for kind in tuple(self.kinds):
            self._tell(f"building what is not built yet: {kind.title}")
            try:
                kind.build()
            except FAILURES as error:
                self.kinds.remove(kind)
                self.failures.append(f"{kind.title} takes no part, for it could not be built: {_reason(error)}")
        for line in lines:
            if any(map(line.suits, self.kinds)):
                self._tell(f"fetching what is not there yet: {line.title}")
                try:
                    line.fetch()
                except FAILURES as error:
                    self.failures.append(f"{line.title}: what it needs could not be fetched: {_reason(error)}")

    def results(self, line: Line, rounds: int, scale: float) -> list[Result]:
        """All contenders on one line. A first round warms everybody up and does not count."""
        kinds = [kind for kind in self.kinds if line.suits(kind)]
        rounds = min(rounds, line.most_rounds or rounds)
        warm_ups = 0 if line.fresh else 1
        found: dict[str, list[Values]] = {kind.title: [] for kind in kinds}
        limits: dict[str, list[Values]] = {MODE_TITLES[mode]: [] for mode in line.limit_modes}
        for number in range(-warm_ups, rounds):
            counts = number >= 0
            awaited = [kind for kind in kinds if kind in (Ottla, Kafka4) or number < OTHERS_ROUNDS]
            for kind in awaited if number % 2 == 0 else awaited[::-1]:
                self._tell(f"{line.title}: {kind.title}")
                work = self._with_fresh if line.fresh else self._with_standing
                values = self._guarded(line, kind, partial(work, line, kind, scale))
                if counts:
                    found[kind.title].append(values)
            for mode in line.limit_modes:
                self._tell(f"{line.title}: no broker, {MODE_TITLES[mode]}")
                values = self._guarded(line, Plain, partial(self._limit, line, mode, scale))
                if counts:
                    limits[MODE_TITLES[mode]].append(values)
        return [
            Result(line.name, line.title, figure, _column(found, figure.name), _column(limits, figure.name))
            for figure in line.figures
        ]

    def _guarded(self, line: Line, kind: type[Server], work: Callable[[], Values]) -> Values:
        """One run; whatever goes wrong is told at the end, and the others go on."""
        try:
            return work()
        except FAILURES as error:
            self._drop(kind)
            self.failures.append(f"{line.title}: {kind.title}: {_reason(error)}")
            return {}

    def _limit(self, line: Line, mode: Mode, scale: float) -> Values:
        with self._awake(Plain) as plain:
            return line.limit(plain, mode, scale)

    def _with_standing(self, line: Line, kind: type[Server], scale: float) -> Values:
        with self._awake(kind) as server:
            return line.run(server, scale)

    def _with_fresh(self, line: Line, kind: type[Server], scale: float) -> Values:
        self._fresh += 1
        server = kind(self._folder / f"{kind.__name__}-{self._fresh}")
        try:
            return line.run(server, scale)
        finally:
            server.close()

    @contextmanager
    def _awake(self, kind: type[AnyServer]) -> Iterator[AnyServer]:
        server = cast(AnyServer | None, self._standing.get(kind))
        if server is None:
            self._fresh += 1
            folder = self._folder / f"{kind.__name__}-{self._fresh}"
            server = kind(folder)
            if isinstance(server, Kafka):
                server.session_timeout_ms = LONG_SESSION_MS
            self._standing[kind] = self._stack.enter_context(server)
        else:
            server.resume()
        try:
            yield server
        finally:
            server.pause()

    def _drop(self, kind: type[Server]) -> None:
        """A broker after a failure is not to be trusted with the next line."""
        server = self._standing.pop(kind, None)
        if server is not None:
            server.close()


def compare(
    lines: Sequence[Line],
    kinds: Sequence[type[Server]],
    folder: Path,
    rounds: int,
    scale: float,
    tell: Told,
    save: Save,
    enter_network: Callable[[], str],
) -> Report:
    """Measure lines, one after another; what there is so far is saved after each.

    `enter_network` says what all that is measured goes through, and is called when nothing has to be fetched any more.
    """
    results: list[Result] = []
    began = time.monotonic()
    peer = Kafka4.title if Kafka4 in kinds else None
    with Arena(kinds, folder, tell) as arena:

        def report() -> Report:
            duration = f"{(time.monotonic() - began) / 60:.1f} minutes"
            machine = {**this_machine(), "network": network, "duration": duration}
            return Report(machine, rounds, scale, peer, list(results), list(arena.failures))

        arena.build(lines)
        network = enter_network()
        for line in lines:
            results += arena.results(line, rounds, scale)
            save(report())
    return report()


def this_machine() -> dict[str, str]:
    """What figures depend on."""
    models = [line.partition(":")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    memory_kb = int(Path("/proc/meminfo").read_text().split()[1])
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": f"{len(models)} x {models[0].strip() if models else platform.machine()}",
        "memory": f"{memory_kb / 2**20:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": sys.version.split()[0],
        Ottla.title: version("ottla"),
        "confluent-kafka": version("confluent-kafka"),
    }


def _reason(error: Exception) -> str:
    return (str(error).strip() or repr(error)).splitlines()[-1]


def _column(found: Mapping[str, Sequence[Values]], figure: str) -> dict[str, list[float | None]]:
    return {title: [values.get(figure) for values in rounds] for title, rounds in found.items()}
