"""The Java client of some release, driven from Python."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ottla.record import Record
from tests.java import JavaProgram, jars

from .java_members import Deed, JavaMember
from .java_records import from_fields, to_fields

SOURCES = [Path(__file__).parent / "java" / name for name in ("Client.java", "Members.java", "Calls.java")]

TOKEN_LOGIN = Path(__file__).parent / "java" / "TokenLogin.java"
FIRST_WITH_TOKENS = (2,)

NEWEST = "4.4.0"
VERSIONS = (NEWEST, "3.9.2", "2.8.2", "0.11.0.3", "0.10.2.2", "0.9.0.1")
"""The newest client, and older ones that each speak a protocol of their time.

2.8 knows no topic ids; 0.11 is the first with headers and idempotence; 0.10.2 writes the format before batches and asks
which versions a broker has; 0.9 writes the first format and asks nothing.
"""


def release(version: str) -> tuple[int, ...]:
    """A version as numbers, which compare."""
    return tuple(map(int, version.split(".")))


class Consumed(NamedTuple):
    """The position after a seek, and the records from there on."""

    position: int
    records: list[Record]


class Offsets(NamedTuple):
    """Where a partition begins and ends, and (offset, timestamp) of the first record from each time on."""

    beginning: int
    end: int
    times: list[tuple[int, int] | None]


class JavaClient:
    """The other end of `Client.java`. Keyword arguments are the client's settings, dots as underscores."""

    def __init__(self, version: str) -> None:
        self.release = release(version)
        more = [TOKEN_LOGIN] if self.release >= FIRST_WITH_TOKENS else []
        self.program = JavaProgram(jars(version), *SOURCES, *more)

    def close(self) -> None:
        """End the process."""
        self.program.close()

    def produce(
        self, servers: str, topic: str, records: Iterable[Record], *, partition: int = 0, **settings: Any
    ) -> list[int | str]:
        """Send records: for each the offset that it got, or the client's exception."""
        fields = [to_fields(record) for record in records]
        question = {"do": "produce", "topic": topic, "partition": partition, "records": fields}
        outcomes: list[int | str] = self.program.ask({**question, "config": _config(servers, settings)})
        return outcomes

    def consume(
        self, servers: str, topic: str, count: int, *, start: int | str = 0, partition: int = 0, **settings: Any
    ) -> Consumed:
        """Read `count` records or more of one partition from an offset, the `beginning` or the `end` on."""
        question = {"do": "consume", "topic": topic, "partition": partition, "from": start, "count": count}
        answer = self.program.ask({**question, "config": _consumer_config(servers, settings)})
        return Consumed(answer["position"], [from_fields(fields) for fields in answer["records"]])

    def offsets(self, servers: str, topic: str, times: Sequence[int], *, partition: int = 0) -> Offsets:
        """Look up where a partition begins and ends, and the first records from some times on."""
        question = {"do": "offsets", "topic": topic, "partition": partition, "times": list(times)}
        answer = self.program.ask({**question, "config": _consumer_config(servers, {})})
        found = [None if pair is None else tuple(pair) for pair in answer["times"]]
        return Offsets(answer["beginning"], answer["end"], found)

    def join(
        self, servers: str, group: str, *, commits_later: bool = False, always_commits: bool = False, **settings: Any
    ) -> JavaMember:
        """A member of a group that reads a `topic`, or those that match a `pattern` of Java or of `re2`.

        It commits when it is told to, by a call that waits or by one that does not, or always what it has just read.
        """
        subscription = {name: settings.pop(name) for name in ("topic", "pattern", "re2") if name in settings}
        config = _consumer_config(servers, {"group_id": group, "auto_offset_reset": "earliest", **settings})
        number = self.program.ask({"do": "join", **subscription, "always_commits": always_commits, "config": config})
        return JavaMember(self.program.ask, number, commits_later=commits_later)

    def journal(self) -> list[Deed]:
        """What the members have done since this was asked for last."""
        return [Deed(*deed) for deed in self.program.ask({"do": "journal"})]


def _config(servers: str, settings: dict[str, Any]) -> dict[str, Any]:
    return {"bootstrap.servers": servers, **{name.replace("_", "."): value for name, value in settings.items()}}


def _consumer_config(servers: str, settings: dict[str, Any]) -> dict[str, Any]:
    # A client that closes waits for its last fetch, which waits for more records.
    return _config(servers, {"enable_auto_commit": "false", "fetch_max_wait_ms": 50, **settings})
