"""Fetches jars with Maven, and asks programs in Java."""

import hashlib
import json
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.oracle import download

HERE = Path(__file__).parent
# What starts soonest: these programs live for seconds.
OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m")

PATIENCE_SECONDS = 60.0
"""A program that takes longer over an answer is killed, so that a test fails and does not hang."""


class JavaError(Exception):
    """What a program answered instead of a result: the name of Java's exception, and its message."""


def is_available() -> bool:
    """Whether there are Maven and Java to run."""
    return all(shutil.which(program) is not None for program in ("mvn", "java", "javac"))


def skip_without_maven(loss: str) -> pytest.MarkDecorator:
    """The mark for tests that are skipped where there is no Maven, with what is lost by that."""
    return pytest.mark.skipif(not is_available(), reason=f"NO mvn OR java ON THE PATH: {loss}")


def jars(version: str, profile: str | None = None) -> Path:
    """The folder of Kafka's jars of that release, those of a profile in `pom.xml` among them."""

    def fetch(directory: Path) -> None:
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(HERE / "pom.xml"), f"-Dkafka.version={version}"]
        command += [f"-P{profile}"] if profile else []
        command += [f"-DoutputDirectory={directory}", "dependency:copy-dependencies"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    return download(f"kafka-{version}-{profile or 'clients'}-{_digest(HERE / 'pom.xml')}", fetch)


def compiled(jars: Path, *sources: Path) -> Path:
    """The folder of the classes that these sources become with those jars; compiling takes longer than most tests."""

    def compile_them(directory: Path) -> None:
        command = ["javac", *(f"-J{option}" for option in OPTIONS), "-proc:none", "-nowarn", "-Xlint:none"]
        subprocess.run([*command, "-cp", f"{jars}/*", "-d", str(directory), *map(str, sources)], check=True)

    return download(f"{sources[0].stem}-{jars.name}-{_digest(*sources)}", compile_them)


def _digest(*files: Path) -> str:
    """Tells files from what they were before they were edited."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def java_command(*class_path: Path | str) -> list[str]:
    """How Java is started here, up to the name of the class."""
    return ["java", *OPTIONS, "-cp", ":".join(map(str, class_path))]


class JavaProgram:
    """A program whose `main` calls `Answers.serve`: each question gets its answer. `main` is in the first source.

    >>> with JavaProgram(jars("4.4.0"), Path("Doubling.java")) as program:  # doctest: +SKIP
    ...     program.ask({"number": 21})
    42
    """

    def __init__(self, jars: Path, *sources: Path) -> None:
        self._name = sources[0].stem
        command = [*java_command(compiled(jars, *sources, HERE / "Answers.java"), f"{jars}/*"), self._name]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def ask(self, question: Any) -> Any:
        """Put one question and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        impatience = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        impatience.start()
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        finally:
            impatience.cancel()
        assert line, f"{self._name} ended with status {self._process.wait()}"
        answer = json.loads(line)
        if "error" in answer:
            raise JavaError(answer["error"])
        return answer["answer"]

    def close(self) -> None:
        """End the process: it stops where its input does."""
        try:
            self._process.communicate(timeout=30)
        finally:
            self._process.kill()

    def pause(self) -> None:
        """Stop the process where it is, until it is to go on."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """End a pause."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the process at once, so that it has no time for anything."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> "JavaProgram":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
