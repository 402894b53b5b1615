"""Throws cases at targets and watches what they do."""

import time
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from ottla.wire.errors import ProtocolError

from .hostile import hostile
from .targets import LIMIT, Target, all_targets

BYTES_PER_BYTE = 64
"""The most memory that decoding may take for each byte of input (or of what it decompresses to, within the limit)."""
SLACK_BYTES = 1 << 20
SLOWEST_SECONDS = 2.0
WEIGHED_ONE_IN = 50
"""Memory is traced in one case of so many: tracing makes a case many times slower."""


SLICES = 64
"""Into how many jobs a long run is cut."""


class Finding(NamedTuple):
    """A case that should not be: what happened, and how to make it happen again."""

    target: str
    what: str
    data: str


class Outcome(NamedTuple):
    """How many inputs were taken for a message and how many were refused, by group; and what was wrong."""

    taken: Counter[str]
    refused: Counter[str]
    findings: list[Finding]


def run_cases(targets: Iterable[Target], cases_each: int, seed: int) -> Outcome:
    """Throw so many hostile inputs at each target."""
    outcome = Outcome(Counter(), Counter(), [])
    for target in targets:
        random = Random(f"{seed}/{target.group}/{target.name}")
        sound = target.make(random)
        for case in range(cases_each):
            if case % 10 == 0:
                sound = target.make(random)
            _one(target, hostile(random, sound), outcome, weighed=case % WEIGHED_ONE_IN == 0)
    return outcome


def run_slice(index: int, cases_each: int, seed: int) -> Outcome:
    """The part of all targets that one of `SLICES` jobs takes."""
    return run_cases(all_targets()[index::SLICES], cases_each, seed)


def _one(target: Target, data: bytes, outcome: Outcome, *, weighed: bool) -> None:
    what = None
    started = time.perf_counter()
    if weighed:
        tracemalloc.start()
    try:
        target.take(data)
        outcome.taken[target.group] += 1
    except ProtocolError:
        outcome.refused[target.group] += 1
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        what = f"{type(error).__name__}: {error}"
    if weighed:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        allowed = BYTES_PER_BYTE * len(data) + SLACK_BYTES
        if target.group not in ("frames", "embedded") and not target.group.startswith("messages"):
            allowed += 16 * LIMIT
        if peak > allowed:
            what = f"{peak} bytes of memory for {len(data)} bytes of input"
    elif time.perf_counter() - started > SLOWEST_SECONDS:
        what = f"took {time.perf_counter() - started:.1f} s"
    if what is not None:
        outcome.findings.append(Finding(f"{target.group}: {target.name}", what, data.hex()))
