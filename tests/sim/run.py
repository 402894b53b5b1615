"""Runs many simulated machines, one per seed, and says which of them broke a promise."""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from tests.sim.world import Outcome, World

STOPS: Final = 3
"""How often each machine stops: by a power cut, a kill or in good order."""


class Broken(NamedTuple):
    """A seed, and the promise that was broken."""

    seed: int
    reason: str


class Report(NamedTuple):
    """All runs of one policy."""

    policy: str
    seeds: int
    seen: Outcome
    broken: list[Broken]


def run(
    policy: str,
    seeds: Iterable[int],
    on_seed: Callable[[], object] = lambda: None,
    kind: Callable[[str, int], World] = World,
) -> Report:
    """Run a machine for each seed."""
    seen, broken, count = Outcome(), list[Broken](), 0
    for seed in seeds:
        count += 1
        world = kind(policy, seed)
        try:
            world.run(STOPS)
        except Exception as error:  # noqa: BLE001
            # Whatever goes wrong in there is a finding, and the other seeds are worth their run.
            broken.append(Broken(seed, f"{type(error).__name__}: {error}"))
        seen = Outcome(*map(sum, zip(seen, world.outcome, strict=True)))
        on_seed()
    return Report(policy, count, seen, broken)
