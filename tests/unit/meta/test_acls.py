"""Rules of access in a metadata store."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from ottla.cluster.acl import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)
from ottla.meta.acls import ROOT, AclRules
from ottla.meta.catalog import Catalog
from ottla.meta.memory import open_memory
from ottla.meta.store import Conflict, Create, MetaStore, StoreError
from ottla.ports import SystemChance
from ottla.wire.errors import KafkaError

ORDERS = ResourcePattern(ResourceType.TOPIC, "orders")
READ = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, ORDERS)
WRITE = replace(READ, operation=ACLOperation.WRITE)


def run(story: Callable[[MetaStore], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        return await story(open_memory().connect())

    return asyncio.run(main())


def test_rules_outlast_the_catalog_that_wrote_them() -> None:
    names = ["orders", "*", "a/b", "..", "zahlung-ü-🎉", "x" * 1000]
    patterns = [
        ResourcePattern(kind, name, how)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP)
        for name in names
        for how in (ACLResourcePatternType.LITERAL, ACLResourcePatternType.PREFIXED)
    ]
    rules = {pattern: frozenset({replace(READ, resource_pattern=pattern)}) for pattern in patterns}

    async def story(store: MetaStore) -> None:
        catalog = await Catalog.open(store, SystemChance())
        for pattern, some in rules.items():
            await catalog.acls.add(pattern, some)
        assert (await (await Catalog.open(store, SystemChance())).load()).acls == rules

    run(story)


def test_a_rule_more_or_less_changes_nothing_else() -> None:
    async def story(store: MetaStore) -> None:
        kept = AclRules(store)
        assert await kept.add(ORDERS, [READ]) == {READ}
        assert await kept.add(ORDERS, [READ, WRITE]) == {READ, WRITE}
        assert await kept.remove(ORDERS, [READ]) == {WRITE}
        assert await kept.load() == {ORDERS: {WRITE}}
        assert await kept.remove(ORDERS, [READ, WRITE]) == frozenset()
        assert await kept.load() == {}
        assert await store.children(ROOT) == []

    run(story)


def test_a_change_by_somebody_else_at_the_same_time_is_not_lost() -> None:
    async def story(store: MetaStore) -> None:
        kept = AclRules(store)
        others = [replace(READ, principal=f"User:{index}") for index in range(20)]
        await asyncio.gather(*(AclRules(store).add(ORDERS, [other]) for other in others), kept.add(ORDERS, [WRITE]))
        assert await kept.load() == {ORDERS: {WRITE, *others}}

    run(story)


def test_more_rules_about_a_resource_than_fit_are_refused() -> None:
    many = [replace(READ, principal=f"User:{index:0900}") for index in range(1200)]

    async def story(store: MetaStore) -> None:
        kept = AclRules(store)
        await kept.add(ORDERS, [READ])
        with pytest.raises(KafkaError, match="1201 rules about 'orders'"):
            await kept.add(ORDERS, many)
        assert await kept.load() == {ORDERS: {READ}}

    run(story)


def test_an_entry_that_somebody_else_wrote_is_named() -> None:
    async def story(store: MetaStore) -> None:
        await store.commit(Create(ROOT, b""), Create(f"{ROOT}/TOPIC-LITERAL-orders", b'{"format":1,"rules":[["a"]]}'))
        with pytest.raises(StoreError, match="/acls/TOPIC-LITERAL-orders"):
            await AclRules(store).load()

    run(story)


def test_a_store_that_is_always_changed_by_others_is_told_of() -> None:
    async def story(store: MetaStore) -> None:
        async def never(*changes: object) -> None:
            raise Conflict(ROOT, "was changed")

        store.commit = never  # type: ignore[method-assign]
        with pytest.raises(StoreError, match="overloaded"):
            await AclRules(store).add(ORDERS, [READ])

    run(story)
