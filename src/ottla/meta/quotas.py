"""Quotas in the metadata store: `/quotas/ENTITY` has the limits of one entity, whose name is percent-encoded."""

from collections.abc import Callable
from urllib.parse import quote

from ottla.cluster.quota import QuotaEntity, QuotaValues
from ottla.meta.encoding import decode_json, encode_json
from ottla.meta.store import Change, Conflict, Create, Delete, Entry, MetaStore, Set, StoreError

ROOT = "/quotas"
# Each attempt that fails means that another one succeeded.
_ATTEMPTS = 100

Alter = Callable[[QuotaValues], QuotaValues]
"""From what there is to what shall be; called anew if somebody else was faster, so it must have no effects."""


class QuotaStore:
    """The limits that are kept.

    >>> import asyncio
    >>> from ottla.meta.memory import open_memory
    >>> async def main() -> None:
    ...     quotas = QuotaStore(open_memory().connect())
    ...     await quotas.alter((("user", "alice"),), lambda before: {"producer_byte_rate": 1024.0})
    ...     print(await quotas.load())
    >>> asyncio.run(main())
    {(('user', 'alice'),): {'producer_byte_rate': 1024.0}}
    """

    def __init__(self, store: MetaStore) -> None:
        self._store = store

    async def load(self) -> dict[QuotaEntity, QuotaValues]:
        """All that there are."""
        entries = await self._store.entries(ROOT)
        return dict(_decode(f"{ROOT}/{key}", entry) for key, entry in entries.items())

    async def alter(self, entity: QuotaEntity, alter: Alter) -> QuotaValues:
        """Change the limits of an entity, and return them."""
        path = _path(entity)
        for _ in range(_ATTEMPTS):
            if await self._store.get(ROOT) is None:
                await self._make_root()
            entry = await self._store.get(path)
            altered = alter({} if entry is None else _decode(path, entry)[1])
            try:
                await self._store.commit(*_changes(path, entity, entry, altered))
            except Conflict:
                continue
            return altered
        raise StoreError(f"{path} was changed by others {_ATTEMPTS} times in a row; the metadata store is overloaded")

    async def _make_root(self) -> None:
        try:
            await self._store.commit(Create(ROOT, encode_json({})))
        except Conflict:
            # Somebody else has made it.
            return


def _path(entity: QuotaEntity) -> str:
    """Where the limits of an entity are.

    >>> _path((("client-id", "a/b"), ("user", None)))
    '/quotas/client-id=a%2Fb,user'
    """
    parts = [
        kind if name is None else f"{kind}={quote(name, safe='', errors='surrogatepass')}" for kind, name in entity
    ]
    return f"{ROOT}/{','.join(parts)}"


def _changes(path: str, entity: QuotaEntity, entry: Entry | None, altered: QuotaValues) -> tuple[Change, ...]:
    if not altered:
        return () if entry is None else (Delete(path, entry.version),)
    value = encode_json({"entity": [list(part) for part in entity], "limits": dict(altered)})
    return (Create(path, value) if entry is None else Set(path, value, entry.version),)


def _decode(path: str, entry: Entry) -> tuple[QuotaEntity, QuotaValues]:
    fields = decode_json(path, entry.value)
    try:
        entity = tuple((str(kind), None if name is None else str(name)) for kind, name in fields["entity"])
        return entity, {str(key): float(value) for key, value in fields["limits"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} holds something else than quotas: {error}") from error
