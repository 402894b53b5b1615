"""Clients by other people behind one interface, with a table of what each of them cannot do at all.

Java's have test modules of their own, since there are many versions of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from typing import ClassVar

from ottla.record import Codec, Record

PATIENCE_S = 20
LARGE = 5_000_000
LIMIT = 6_000_000
"""What clients and brokers are set to where a message of LARGE bytes is to pass."""


class Ability(Enum):
    """What some client or other lacks."""

    TIMESTAMPS = "write a record with a time of one's own choice"
    NEITHER = "write a record with neither key nor value"
    NULL_HEADERS = "write a header without a value"
    ADMINISTRATION = "create, describe, alter and delete topics"


class Client(ABC):
    """One client. A topic's records are in partition 0."""

    name: ClassVar[str]
    lacks: ClassVar[dict[Ability, str]] = {}

    def __init__(self, servers: str) -> None:
        self.servers = servers

    @abstractmethod
    def write(self, topic: str, records: Sequence[Record], codec: Codec = Codec.NONE) -> None:
        """Append records, and return when they are acknowledged."""

    @abstractmethod
    def read(self, topic: str, offset: int, count: int) -> list[Record]:
        """Records from an offset on."""

    @abstractmethod
    def read_since(self, topic: str, timestamp: int, count: int) -> list[Record]:
        """Records from the first one on that is not older than this."""

    @abstractmethod
    def read_new(self, topic: str, when_at_end: Callable[[], None], count: int) -> list[Record]:
        """Go to the end, have something written, and read it."""


class Administrator(ABC):
    """The administration client of a client."""

    name: ClassVar[str]

    def __init__(self, servers: str) -> None:
        self.servers = servers

    @abstractmethod
    def create(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        """Make a topic."""

    @abstractmethod
    def partitions(self, topic: str) -> int:
        """How many partitions a topic is described with."""

    @abstractmethod
    def topics(self) -> set[str]:
        """The names of all topics."""

    @abstractmethod
    def config(self, topic: str, name: str) -> str:
        """A topic's config as it is described."""

    @abstractmethod
    def set_config(self, topic: str, name: str, value: str) -> None:
        """Alter a topic's config."""

    @abstractmethod
    def grow(self, topic: str, partitions: int) -> None:
        """Have a topic of so many partitions in total."""

    @abstractmethod
    def delete_records(self, topic: str, before: int) -> None:
        """Delete the records of partition 0 before an offset."""

    @abstractmethod
    def delete(self, topic: str) -> None:
        """Delete a topic."""
