"""Members of a storm as processes: started, left, killed, stopped and gone on with."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

from .group_storm_check import Event
from .group_storm_member import CLIENTS, HEARTBEAT_MS, SESSION_MS

ROOT = Path(__file__).parents[2]
LEAVE_S = 30.0
KCAT = "kcat"
ALL_CLIENTS = (*CLIENTS, KCAT)


class MemberProcess:
    """A member that runs in a process of its own, and the events it has told of."""

    def __init__(self, client: str, name: str, address: str, group: str, topic: str) -> None:
        self.name = name
        self._events: list[Event] = []
        self.leaving = False
        self._read = _read_kcat if client == KCAT else _read_json
        command = (
            _kcat_command(address, group, topic)
            if client == KCAT
            else [
                *(sys.executable, "-m", "tests.interop.group_storm_member", client),
                *("--address", address, "--group", group, "--topic", topic),
            ]
        )
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._thread = Thread(target=self._listen, name=f"storm-{name}")
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # A killed process may have died in the middle of a line.
            if line.endswith("\n"):
                self._events.append(self._read(self.name, line))

    def _note(self, kind: str) -> None:
        self._events.append(Event(self.name, time.monotonic_ns(), kind))

    @property
    def events(self) -> list[Event]:
        """What it said, and what was done to it, in the order in which it was."""
        return sorted(self._events, key=lambda event: event.at_ns)

    @property
    def has_spoken(self) -> bool:
        """Whether it has said anything at all."""
        return any(event.kind != "leaving" for event in self._events)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def leave(self) -> None:
        """Have it leave the group; it takes its time, see `finish`."""
        self.leaving = True
        self._note("leaving")
        self._process.send_signal(signal.SIGTERM)

    def pause(self) -> None:
        self._note("paused")
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._note("resumed")
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once, also if it is paused."""
        self._process.kill()
        self._process.wait()

    def finish(self) -> int:
        """Wait for the end of one that was told to leave or was killed; its exit status."""
        try:
            return self._process.wait(LEAVE_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._thread.join()
            if self._process.stdout is not None:
                self._process.stdout.close()


def _read_json(member: str, line: str) -> Event:
    try:
        said = json.loads(line)
    except ValueError:
        # Not ours: what a client or Python itself writes to standard error.
        return Event(member, time.monotonic_ns(), "noise", detail=line.rstrip())
    rest = {
        name: value for name, value in said.items() if name not in ("kind", "at_ns", "partitions", "spans", "offsets")
    }
    return Event(
        member,
        said["at_ns"],
        said["kind"],
        tuple(said.get("partitions", ())),
        tuple((partition, first, last) for partition, first, last in said.get("spans", ())),
        {int(partition): offset for partition, offset in said.get("offsets", {}).items()},
        json.dumps(rest) if rest else "",
    )


def _kcat_command(address: str, group: str, topic: str) -> list[str]:
    return [
        *("kcat", "-b", address, "-u", "-f", "%p %o %s\n"),
        *("-X", "auto.offset.reset=earliest", "-X", "auto.commit.interval.ms=300"),
        *("-X", f"heartbeat.interval.ms={HEARTBEAT_MS}", "-X", f"session.timeout.ms={SESSION_MS}"),
        *("-G", group, topic),
    ]


_RECORD = re.compile(r"(\d+) (\d+) (.*)\n")
_REBALANCED = re.compile(r"% Group .* rebalanced \(memberid .*\): (assigned|revoked|lost): (.*)\n")


def _read_kcat(member: str, line: str) -> Event:
    at_ns = time.monotonic_ns()
    if record := _RECORD.fullmatch(line):
        partition, offset = int(record[1]), int(record[2])
        if record[3] != str(offset):
            return Event(member, at_ns, "wrong", detail=line.rstrip())
        return Event(member, at_ns, "got", spans=((partition, offset, offset),))
    if rebalanced := _REBALANCED.fullmatch(line):
        partitions = tuple(int(number) for number in re.findall(r"\[(\d+)\]", rebalanced[2]))
        return Event(member, at_ns, rebalanced[1], partitions)
    return Event(member, at_ns, "noise", detail=line.rstrip())
