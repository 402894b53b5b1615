"""Throws cases at targets and watches what they do."""

import faulthandler
import resource
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from ottla.wire.errors import ProtocolError

from .hostile import hostile
from .target import LIMIT, Target
from .targets import all_targets

BYTES_PER_BYTE = 96
"""The most memory that decoding may take for each byte of input (or of what it decompresses to, within the limit)."""
SLACK_BYTES = 16 << 10
INFLATED_SLACK_BYTES = 16 * LIMIT
MOST_RESIDENT_BYTES = 48 << 20
"""By how much one case may make the process grow: what native code allocates shows nowhere else."""
SLOWEST_SECONDS = 2.0
HANG_SECONDS = 60.0
"""After so long in a few cases the process says where it is and ends."""
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


def run_cases(targets: Iterable[Target], cases_each: int, seed: int, hang_seconds: float = HANG_SECONDS) -> Outcome:
    """Throw so many hostile inputs, times its weight, at each target."""
    outcome = Outcome(Counter(), Counter(), [])
    try:
        for target in targets:
            random = Random(f"{seed}/{target.group}/{target.name}")
            for case in range(cases_each * target.weight):
                if case % 10 == 0:
                    faulthandler.dump_traceback_later(hang_seconds, exit=True, file=sys.__stderr__ or 2)
                    sound = target.make(random)
                    # It would be no test if sound bytes were refused; it also fills what caches there are.
                    target.take(sound)
                data = hostile(random, sound)
                if target.mend is not None and random.randrange(2):
                    data = target.mend(data)
                _one(target, data, outcome, weighed=case % WEIGHED_ONE_IN == 0)
    finally:
        faulthandler.cancel_dump_traceback_later()
    return outcome


def run_slice(index: int, cases_each: int, seed: int) -> Outcome:
    """The part of all targets that one of `SLICES` jobs takes."""
    return run_cases(all_targets()[index::SLICES], cases_each, seed)


def _one(target: Target, data: bytes, outcome: Outcome, *, weighed: bool) -> None:
    what = None
    resident = peak_resident_bytes()
    started = time.perf_counter()
    if weighed:
        tracemalloc.start()
    try:
        target.take(data)
        outcome.taken[target.group] += 1
    except ProtocolError as error:
        outcome.refused[target.group] += 1
        if error.offset is None and error.where is None:
            what = f"does not say where: {error}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        what = f"{type(error).__name__}: {error}"
    if weighed:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if peak > BYTES_PER_BYTE * len(data) + (INFLATED_SLACK_BYTES if target.inflates else SLACK_BYTES):
            what = f"{peak} bytes of memory for {len(data)} bytes of input"
    elif time.perf_counter() - started > SLOWEST_SECONDS:
        what = f"took {time.perf_counter() - started:.1f} s"
    grown = peak_resident_bytes() - resident
    if target.inflates and grown > MOST_RESIDENT_BYTES:
        what = f"the process grew by {grown} bytes for {len(data)} bytes of input"
    if what is not None:
        outcome.findings.append(Finding(f"{target.group}: {target.name}", what, data.hex()))


def peak_resident_bytes() -> int:
    """The most memory that the process has had so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
