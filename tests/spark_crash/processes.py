"""Processes by their parentage: what belongs to one that was started here can be found and ended by id."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

PAUSE_SECONDS = 0.05


class Running(NamedTuple):
    """A process."""

    pid: int
    parent: int
    command: str


def processes() -> dict[int, Running]:
    """All that run now, by id. Those that have ended and were not waited for do not."""
    # `-ww`: else commands may be cut to the width of a terminal, even where there is none.
    text = subprocess.run(["ps", "-eww", "-o", "pid=,ppid=,stat=,args="], capture_output=True, text=True, check=True)
    found = {}
    for line in text.stdout.splitlines():
        pid, parent, state, *command = line.split(None, 3)
        if not state.startswith("Z"):
            found[int(pid)] = Running(int(pid), int(parent), *command)
    return found


def descendants(*roots: int) -> list[Running]:
    """Children of these processes, their children and so on."""
    running = processes()
    found: dict[int, Running] = {}
    families = set(roots)
    while more := [one for one in running.values() if one.parent in families and one.pid not in found]:
        found |= {one.pid: one for one in more}
        families |= found.keys()
    return list(found.values())


def ancestors(pid: int) -> list[Running]:
    """The process, its parent and so on."""
    running = processes()
    found = []
    while (one := running.get(pid)) is not None:
        found.append(one)
        pid = one.parent
    return found


def kill(pids: Iterable[int]) -> None:
    """SIGKILL, for those that are still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def end_family(process: subprocess.Popen[str]) -> None:
    """Kill a process that was started here, and all that it has started."""
    family = [one.pid for one in descendants(process.pid)]
    kill([process.pid, *family])
    process.wait()


def wait_until(is_so: Callable[[], bool], seconds: float, what: str) -> None:
    """Return when something is so; raises if it takes too long."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(PAUSE_SECONDS)
