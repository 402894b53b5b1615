"""What a line of the comparison is: one load, the figures that it gives, and what they should be."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from .plain import Mode, Plain
from .server import Server

Values = Mapping[str, float]
"""By the name of the figure."""


@dataclass(frozen=True)
class Figure:
    """Something that is measured, and the aim: Ottla's ratio to Kafka 4 and its share of the machine's limit."""

    name: str
    unit: str
    more_is_better: bool
    aim: float | None = None
    """At least this many times Kafka's, or, where less is better, at most."""
    limit_aim: float | None = None


class Line(ABC):
    """One load, run on each contender in turn, round after round."""

    name: str
    """What `--only` calls it: words with slashes."""
    title: str
    figures: tuple[Figure, ...]
    limit_modes: tuple[Mode, ...] = ()
    most_rounds: int | None = None
    fresh: ClassVar[bool] = False
    """Whether each run needs a broker that has not started yet, in an empty folder."""

    def suits(self, kind: type[Server]) -> bool:
        """Whether a contender can take part."""
        return True

    def fetch(self) -> None:  # noqa: B027
        """What has to be fetched once, while there is a network to fetch it from."""

    @abstractmethod
    def run(self, server: Server, scale: float) -> Values:
        """Load a broker; with a scale below 1 accordingly less."""

    def limit(self, plain: Plain, mode: Mode, scale: float) -> Values:
        """The same bytes to and from a process that is no broker."""
        raise NotImplementedError(f"{self.name} has no limit")


def microseconds(name: str, aim: float | None = None) -> Figure:
    """A latency, less of which is better."""
    return Figure(name, "us", more_is_better=False, aim=aim)


def percentiles(seconds: list[float]) -> Values:
    """The three that are told of latencies, in microseconds."""
    ordered = sorted(seconds)
    return {
        name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e6
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
    }
