"""What was measured, and what follows from it: ratios within rounds, shares of the limit, and whether aims are met."""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from .line import Figure

OURS = "Ottla"
Rounds = Sequence[float | None]
"""One value a round; None where a contender failed."""


@dataclass(frozen=True)
class Spread:
    """The median over the rounds, the lowest and the highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, found: Iterable[float | None]) -> Self | None:
        """Of those that there are.

        >>> Spread.of([3.0, None, 1.0, 1.5])
        Spread(median=1.5, low=1.0, high=3.0)
        """
        known = [value for value in found if value is not None]
        return cls(statistics.median(known), min(known), max(known)) if known else None


@dataclass(frozen=True)
class Result:
    """One figure of one line: what each contender had in each round."""

    line: str
    title: str
    figure: Figure
    values: Mapping[str, Rounds]
    limits: Mapping[str, Rounds] = field(default_factory=dict)
    """The same load with no broker, by what was done with the bytes; the last is the closest to what a broker does."""

    def ratio(self, peer: str) -> Spread | None:
        """Ottla's to a peer's, within rounds."""
        return Spread.of(_quotients(self.values.get(OURS, ()), self.values.get(peer, ())))

    def ratio_to_limit(self) -> Spread | None:
        """Ottla's to what the machine does with no broker, within rounds."""
        if not self.limits:
            return None
        return Spread.of(_quotients(self.values.get(OURS, ()), list(self.limits.values())[-1]))

    def meets_aim(self, peer: str) -> bool | None:
        """Whether the median ratio is where it should be; None if there is no aim, or nothing to hold it against."""
        ratio, aim = self.ratio(peer), self.figure.aim
        if ratio is None or aim is None:
            return None
        return ratio.median >= aim if self.figure.more_is_better else ratio.median <= aim

    def meets_limit_aim(self) -> bool | None:
        """Whether the share of the limit is as large as it should be."""
        share, aim = self.ratio_to_limit(), self.figure.limit_aim
        return None if share is None or aim is None else share.median >= aim


def _quotients(ours: Rounds, theirs: Rounds) -> list[float | None]:
    # A processor time of less than a tick of the clock is none, and nothing is a multiple of it.
    return [mine / other if mine and other else None for mine, other in zip(ours, theirs, strict=False)]


@dataclass(frozen=True)
class Report:
    """A whole run: where and when, what was measured, and what did not work."""

    machine: Mapping[str, str]
    rounds: int
    scale: float
    peer: str | None
    """What all ratios are to."""
    results: Sequence[Result]
    failures: Sequence[str] = ()

    def to_json(self) -> str:
        """For a file that a later run is compared with."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        results = [Result(**{**each, "figure": Figure(**each["figure"])}) for each in data.pop("results")]
        return cls(**data, results=results)

    def with_rest_of(self, earlier: "Report", order: Sequence[str]) -> "Report":
        """This run, and of an earlier one the lines that this one has not; in the order of the lines' names.

        ValueError if they went through different networks, for such lines do not belong into one table.
        """
        mine = {result.line for result in self.results}
        together = [*self.results, *(result for result in earlier.results if result.line not in mine)]
        before, now = earlier.machine.get("network"), self.machine.get("network")
        if before != now:
            raise ValueError(f"the lines to be kept were measured through {before or 'a network not noted'}, not {now}")
        together.sort(key=lambda result: order.index(result.line) if result.line in order else len(order))
        return replace(self, results=together, peer=self.peer or earlier.peer)

    @classmethod
    def load(cls, path: Path) -> Self:
        """From a file."""
        return cls.from_json(path.read_text())
