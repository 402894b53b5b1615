"""The two lists of a suite: tests that must pass, and tests that are left out for a reason."""

from collections.abc import Iterable, Mapping
from pathlib import Path


def read_allowed(path: Path) -> frozenset[str]:
    """Read the ids of the tests that must pass.

    A test id may hold spaces, so a line is an id and nothing else.
    """
    return frozenset(_lines(path))


def read_left_out(path: Path) -> dict[str, str]:
    """Read which tests are left out, each with its reason: lines of `reason: test id`."""
    reasons = {}
    for line in _lines(path):
        reason, separator, test = line.partition(": ")
        if not separator:
            raise ValueError(f"{path.name}: {line!r} gives no reason; write `reason: test id`")
        reasons[test] = reason
    return reasons


def grow(allowed: Path, left_out: Path, passed: Iterable[str]) -> list[str]:
    """Add tests to the allow list, take them from the other one, and return which are new. Nothing is ever dropped."""
    before = read_allowed(allowed)
    after = before | frozenset(passed)
    reasons = {test: reason for test, reason in read_left_out(left_out).items() if test not in after}
    allowed.write_text(_text(after))
    left_out.write_text(_text(format_left_out(reasons)))
    return sorted(after - before)


def format_left_out(reasons: Mapping[str, str]) -> list[str]:
    """Write lines that `read_left_out` reads.

    >>> format_left_out({"tests/test_group.py::test_join": "groups"})
    ['groups: tests/test_group.py::test_join']
    """
    return [f"{reason}: {test}" for test, reason in reasons.items()]


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in sorted(lines))
