"""Rules of access come and go: written to the catalog, then into the picture of the cluster. One change at a time."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ottla.cluster.acl import ACL, ACLFilter, ResourcePattern
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


class RuleChanges:
    """What can be done to rules."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._one_at_a_time = asyncio.Lock()

    async def create(self, rules: Iterable[ACL]) -> dict[ACL, KafkaError]:
        """Add rules, which are sound; those that could not be added. Those about one resource are added together."""
        failed: dict[ACL, KafkaError] = {}
        async with self._one_at_a_time:
            for pattern, some in _by_pattern(rules).items():
                try:
                    kept = await self._broker.catalog.acls.add(pattern, some)
                except KafkaError as error:
                    failed.update(dict.fromkeys(some, error))
                else:
                    self._show(pattern, kept)
        return failed

    async def delete(self, filters: Sequence[ACLFilter]) -> list[list[ACL]]:
        """Remove what the filters match; for each filter what that was, also where another one has it too."""
        async with self._one_at_a_time:
            every = [rule for rules in self._broker.image.acls.values() for rule in rules]
            matching = [[rule for rule in every if wanted.matches(rule)] for wanted in filters]
            for pattern, some in _by_pattern(rule for rules in matching for rule in rules).items():
                self._show(pattern, await self._broker.catalog.acls.remove(pattern, some))
        return matching

    def _show(self, pattern: ResourcePattern, kept: frozenset[ACL]) -> None:
        self._broker.image = self._broker.image.with_acls(pattern, kept)


def _by_pattern(rules: Iterable[ACL]) -> dict[ResourcePattern, list[ACL]]:
    found: dict[ResourcePattern, list[ACL]] = {}
    for rule in rules:
        found.setdefault(rule.resource_pattern, []).append(rule)
    return found
