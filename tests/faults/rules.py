"""Which request gets which fault."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from ottla.wire import api

from .actions import (
    Action,
    Exchange,
    cut_reply,
    cut_request,
    delay,
    duplicate_reply,
    stray_reply,
)

KEYS = {api.api_name(key): key for key in api.MODULES}
WAIT_S = 20.0

RandomAction = Callable[[Random], Action]

QUICK_FAULTS: Sequence[RandomAction] = (
    lambda random: cut_request(0, reset=random.random() < 0.5),
    lambda random: cut_request(random.random(), reset=random.random() < 0.5),
    lambda random: cut_request(1.0, reset=random.random() < 0.5),
    lambda random: cut_reply(0, reset=random.random() < 0.5),
    lambda random: cut_reply(random.random(), reset=random.random() < 0.5),
    lambda random: duplicate_reply(),
    lambda random: stray_reply(),
    lambda random: delay(request_ms=random.uniform(0, 50), reply_ms=random.uniform(0, 50)),
)
"""Faults that a client notices by itself; those that it learns of from a timeout take a test's time."""


@dataclass
class Rule:
    """An action for some of the requests of an API."""

    key: int | None
    action: Action
    nth: int
    times: int | None
    seen: int = 0
    """How many requests of the API there were since the rule was made."""
    taken: int = 0
    done: int = 0
    """How often the action took place."""
    _happened: threading.Condition = field(default_factory=threading.Condition, repr=False)

    def takes(self, exchange: Exchange) -> bool:
        """Whether this request is one of those; it counts as one from now on."""
        if self.key is not None and exchange.key != self.key:
            return False
        self.seen += 1
        if self.seen < self.nth or (self.times is not None and self.taken >= self.times):
            return False
        self.taken += 1
        return True

    def happened(self) -> None:
        """The action took place once more."""
        with self._happened:
            self.done += 1
            self._happened.notify_all()

    def wait(self, count: int = 1, timeout_s: float = WAIT_S) -> None:
        """Wait until the action took place that often; a test that hopes for a fault in vain fails here."""
        with self._happened:
            if not self._happened.wait_for(lambda: self.done >= count, timeout_s):
                raise TimeoutError(f"in {timeout_s} s: {self}, which should have been done {count} times")


class Fault(NamedTuple):
    """An action that a request is in for, and the rule that says so, if it is not by chance."""

    action: Action
    rule: Rule | None = None


class Rules:
    """What was asked for: rules first, in their order, and chance for the other requests."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._seed = 0
        self._rate = 0.0
        self._actions: Sequence[RandomAction] = QUICK_FAULTS

    def add(self, rule: Rule) -> None:
        """Obey one more rule."""
        self._rules.append(rule)

    def leave_to_chance(self, seed: int, rate: float, actions: Sequence[RandomAction]) -> None:
        """Have that share of requests fail; which ones, and how, depends on the seed and their place alone."""
        self._seed, self._rate, self._actions = seed, rate, actions

    def clear(self) -> None:
        """Forget all."""
        self._rules.clear()
        self._rate = 0.0

    def choose(self, exchange: Exchange) -> Fault | None:
        """What this request is in for."""
        taken = [rule for rule in self._rules if rule.takes(exchange)]
        if taken:
            return Fault(taken[0].action, taken[0])
        if self._rate > 0:
            random = Random(f"{self._seed}/{exchange.connection}/{exchange.sequence}")
            if random.random() < self._rate:
                return Fault(random.choice(self._actions)(random))
        return None


def key_of(name_or_key: str | int | None) -> int | None:
    """The key of an API that is given by name or by key; None is any API."""
    if isinstance(name_or_key, str):
        if name_or_key not in KEYS:
            raise ValueError(f"there is no API {name_or_key!r}; names are written like 'FindCoordinator'")
        return KEYS[name_or_key]
    return name_or_key
