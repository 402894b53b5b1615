"""What an oracle is: somebody else's encoder, fed through its own objects."""

import fcntl
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from .codecs import Codec
from .plain import Names, to_plain
from .samples import Limits

PROJECT = Path(__file__).resolve().parents[2]
DOWNLOADS = PROJECT / ".oracles"
EVERY_KIND = frozenset({"request", "response", "header", "data"})


def download(name: str, fetch: Callable[[Path], None]) -> Path:
    """The directory of that name, filled by `fetch` on first use; a fetch that was cut short is begun anew."""
    directory = DOWNLOADS / name
    DOWNLOADS.mkdir(exist_ok=True)
    # Tests run in several processes, and one of them fetches while the others wait.
    with (DOWNLOADS / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.is_dir():
            partial = DOWNLOADS / f"{name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            fetch(partial)
            partial.rename(directory)
    return directory


class OracleError(Exception):
    """The oracle would not encode a message that it claims to know."""


class Oracle(Protocol):
    """Somebody else's codec."""

    name: str
    limits: Limits

    def covers(self, codec: Codec) -> bool:
        """Whether the oracle knows this message in this version."""
        ...

    def encode(self, codec: Codec, message: Any) -> bytes:
        """The message's bytes, made by their encoder from their objects."""
        ...

    def close(self) -> None:
        """Let go of processes."""
        ...


class ProgramOracle:
    """An oracle in a process of its own, which answers each line of JSON with one line.

    A line without a body asks whether the message is known: `yes` or `no`. With a body it asks for the message's
    bytes: hexadecimal digits, or an exclamation mark and a reason.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        limits: Limits,
        names: Names,
        *,
        kinds: frozenset[str] = EVERY_KIND,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.limits = limits
        self._kinds = kinds
        self._names = names
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, encoding="utf-8"
        )

    def covers(self, codec: Codec) -> bool:
        """Ask the program."""
        return codec.kind in self._kinds and self._ask(codec, {}) == "yes"

    def encode(self, codec: Codec, message: Any) -> bytes:
        """Have the program encode the message."""
        answer = self._ask(codec, {"body": to_plain(message, codec.version, self._names)})
        if answer.startswith("!"):
            raise OracleError(answer[1:])
        return bytes.fromhex(answer)

    def close(self) -> None:
        """End the program: it stops where its input does."""
        self._process.communicate(timeout=30)

    def _ask(self, codec: Codec, more: dict[str, Any]) -> str:
        line = {"kind": codec.kind, "key": codec.key, "name": codec.name, "version": codec.version, **more}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(line) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise OracleError(f"{self.name} ended with status {self._process.wait()} at {codec}")
        return answer.rstrip("\n")
