"""What got worse since a recorded run. Ratios are compared, not seconds: another day the machine is another."""

from dataclasses import dataclass

from .results import Report, Result, Spread

LEAST_CHANGE = 0.15
"""What a few short rounds may be off by, however close together they are."""


@dataclass(frozen=True)
class Change:
    """How a ratio has changed; a factor above 1 is for the better."""

    before: Spread
    now: Spread
    factor: float
    is_worse: bool


@dataclass(frozen=True)
class Verdict:
    """One figure, held against Kafka and against the machine's limit, as far as both runs had them."""

    title: str
    to_peer: Change | None
    to_limit: Change | None

    @property
    def is_worse(self) -> bool:
        """Whether Ottla lost ground to all that it is held against: a bad minute of one of them does not do that."""
        found = [change for change in (self.to_peer, self.to_limit) if change is not None]
        return bool(found) and all(change.is_worse for change in found)


def verdicts(recorded: Report, now: Report) -> list[Verdict]:
    """On all figures that both runs have."""
    before = {(result.line, result.figure.name): result for result in recorded.results}
    return [
        _verdict(earlier, result, now.peer or "")
        for result in now.results
        if (earlier := before.get((result.line, result.figure.name))) is not None
    ]


def _verdict(earlier: Result, result: Result, peer: str) -> Verdict:
    better = result.figure.more_is_better
    return Verdict(
        f"{result.title}: {result.figure.name}",
        _change(earlier.ratio(peer), result.ratio(peer), better),
        _change(earlier.ratio_to_limit(), result.ratio_to_limit(), better),
    )


def _change(before: Spread | None, now: Spread | None, more_is_better: bool) -> Change | None:
    if before is None or now is None:
        return None
    factor = now.median / before.median if more_is_better else before.median / now.median
    # Worse is what lies outside what the recorded rounds had among themselves, and by more than chance explains.
    outside = now.median < before.low if more_is_better else now.median > before.high
    return Change(before, now, factor, outside and factor < 1 - LEAST_CHANGE)
