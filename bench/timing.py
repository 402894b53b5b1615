"""Timing side by side: contenders take turns in every round, and what counts is the ratio within a round.

Machines are noisy, and noise that lasts longer than a round hits every contender in it alike.
"""

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Self

Work = Callable[[], object]


class Ratio(NamedTuple):
    """How many times as long a peer takes: the median over the rounds, and the middle half of them."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, found: Sequence[float]) -> Self:
        """Of the ratios within rounds; one round has no spread.

        >>> str(Ratio.of([2.0, 1.0, 1.2, 1.1, 1.3]))
        '1.20 (1.05-1.65)'
        """
        low, median, high = statistics.quantiles(found, n=4) if len(found) > 1 else [found[0]] * 3
        return cls(median, low, high)

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}-{self.high:.2f})"


class Line(NamedTuple):
    """One line of a comparison: seconds per call by contender, and each peer's ratio to the first contender."""

    title: str
    seconds: dict[str, float]
    ratios: dict[str, Ratio]


def stay_on_one_core() -> None:
    """Keep this process on one core, so that a figure is that of one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def compare(title: str, contenders: Mapping[str, Work], *, rounds: int, round_seconds: float) -> Line:
    """Time contenders in turn, round after round; the first is the one that the others are held against."""
    repeats = {name: _calls_per(round_seconds, work) for name, work in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    gc.collect()
    for number in range(rounds):
        order = list(contenders) if number % 2 == 0 else list(contenders)[::-1]
        for name in order:
            times[name].append(_time(contenders[name], repeats[name]))
    ours = times[next(iter(contenders))]
    return Line(
        title,
        {name: statistics.median(found) for name, found in times.items()},
        {
            name: Ratio.of([theirs / mine for theirs, mine in zip(found, ours, strict=True)])
            for name, found in times.items()
        },
    )


def _calls_per(seconds: float, work: Work) -> int:
    work()
    once = min(_time(work, 1) for _ in range(3))
    return max(1, int(seconds / max(once, 1e-9)))


def _time(work: Work, repeats: int) -> float:
    started = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - started) / repeats
