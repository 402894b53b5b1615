"""Rules of access in the metadata store: one entry for each resource that has some.

| path | what |
|---|---|
| `/acls/TYPE-PATTERN-NAME` | the rules about a resource, or about all whose names begin so; the name percent-encoded |
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import quote

from ottla.cluster.acl import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    Acls,
    ResourcePattern,
    ResourceType,
)
from ottla.meta.encoding import decode_json, encode_json
from ottla.meta.store import Change, Conflict, Create, Delete, Entry, MetaStore, Set, StoreError, TooLargeError
from ottla.wire.errors import ErrorCode, KafkaError

ROOT = "/acls"
# Each attempt that fails means that another one succeeded.
_ATTEMPTS = 100


class AclRules:
    """Rules of access in a metadata store.

    >>> import asyncio
    >>> from ottla.meta.memory import open_memory
    >>> orders = ResourcePattern(ResourceType.TOPIC, "orders")
    >>> rule = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders)
    >>> async def main() -> None:
    ...     rules = AclRules(open_memory().connect())
    ...     await rules.add(orders, [rule])
    ...     print(await rules.load() == {orders: {rule}}, await rules.remove(orders, [rule]), await rules.load())
    >>> asyncio.run(main())
    True frozenset() {}
    """

    def __init__(self, store: MetaStore) -> None:
        self._store = store

    async def load(self) -> Acls:
        """All rules."""
        entries = await self._store.entries(ROOT)
        return dict(_decode(f"{ROOT}/{key}", entry.value) for key, entry in entries.items())

    async def add(self, pattern: ResourcePattern, rules: Collection[ACL]) -> frozenset[ACL]:
        """Add rules about some resources; all that there are then."""
        return await self._change(pattern, lambda kept: kept.union(rules))

    async def remove(self, pattern: ResourcePattern, rules: Collection[ACL]) -> frozenset[ACL]:
        """Remove rules about some resources; all that there are then."""
        return await self._change(pattern, lambda kept: kept.difference(rules))

    async def _change(
        self, pattern: ResourcePattern, change: Callable[[frozenset[ACL]], frozenset[ACL]]
    ) -> frozenset[ACL]:
        path = _path(pattern)
        for _ in range(_ATTEMPTS):
            entry = await self._store.get(path)
            kept = frozenset() if entry is None else _decode(path, entry.value)[1]
            changed = change(kept)
            try:
                if changed != kept:
                    await self._store.commit(*await self._changes(path, entry, pattern, changed))
            except Conflict:
                continue
            except TooLargeError as error:
                message = f"{len(changed)} rules about {pattern.resource_name!r}: {error}; use prefixes or fewer rules"
                raise KafkaError(ErrorCode.INVALID_REQUEST, message) from error
            return changed
        raise StoreError(f"{path} was changed by others {_ATTEMPTS} times in a row; the metadata store is overloaded")

    async def _changes(
        self, path: str, entry: Entry | None, pattern: ResourcePattern, rules: frozenset[ACL]
    ) -> list[Change]:
        if entry is not None:
            return [Set(path, _encode(pattern, rules), entry.version) if rules else Delete(path, entry.version)]
        # The entry above all came with this kind of entry: catalogs of an earlier version do not have it.
        above: list[Change] = [Create(ROOT, b"")] if await self._store.get(ROOT) is None else []
        return [*above, Create(path, _encode(pattern, rules))]


def _path(pattern: ResourcePattern) -> str:
    name = quote(pattern.resource_name, safe="", errors="surrogatepass")
    return f"{ROOT}/{pattern.resource_type.name}-{pattern.pattern_type.name}-{name}"


def _encode(pattern: ResourcePattern, rules: frozenset[ACL]) -> bytes:
    rows = sorted((rule.principal, rule.host, rule.operation.name, rule.permission_type.name) for rule in rules)
    return encode_json(
        {
            "type": pattern.resource_type.name,
            "name": pattern.resource_name,
            "pattern": pattern.pattern_type.name,
            "rules": rows,
        }
    )


def _decode(path: str, value: bytes) -> tuple[ResourcePattern, frozenset[ACL]]:
    fields: dict[str, Any] = decode_json(path, value)
    try:
        pattern = ResourcePattern(
            ResourceType[fields["type"]], str(fields["name"]), ACLResourcePatternType[fields["pattern"]]
        )
        return pattern, frozenset(
            ACL(principal, host, ACLOperation[operation], ACLPermissionType[permission], pattern)
            for principal, host, operation, permission in fields["rules"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} holds {value[:50]!r}, which are no rules of access") from error
