"""The Java administration client of some release, driven from Python."""

from pathlib import Path
from typing import Any

from tests.java import JavaProgram, jars

from .java_client import release

HERE = Path(__file__).parent / "java"
SOURCES = [HERE / name for name in ("Administration.java", "GroupAdministration.java", "Calls.java")]


class JavaAdmin:
    """The other end of `Administration.java`: `admin.call(servers, "create_topic", topic="orders")`."""

    def __init__(self, version: str) -> None:
        self.release = release(version)
        self._program = JavaProgram(jars(version), *SOURCES)

    def close(self) -> None:
        """End the process."""
        self._program.close()

    def call(self, servers: str, action: str, **fields: Any) -> Any:
        """What the client answers, or `JavaError` with its exception."""
        return self._program.ask({"do": action, "servers": servers, **fields})
