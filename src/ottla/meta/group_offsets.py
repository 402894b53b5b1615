"""Offsets that the oldest clients commit: OffsetCommit v0 keeps them in the metadata store, apart from all others.

| path | what |
|---|---|
| `/group-offsets/GROUP/TOPIC` | what a group has committed for a topic: its id, and by partition offset and text |

Names are percent-encoded, since a group may be called anything. A topic that is made anew under the name of one that
was deleted has no offsets of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from ottla.cluster.image import TopicImage
from ottla.meta.encoding import decode_json, encode_id, encode_json
from ottla.meta.store import Change, Conflict, Create, Entry, MetaStore, Set, StoreError, TooLargeError
from ottla.wire.errors import ErrorCode, KafkaError

ROOT = "/group-offsets"
# Each attempt that fails means that another one succeeded.
_ATTEMPTS = 100


class KeptOffset(NamedTuple):
    """An offset, and what the client wanted to have kept with it."""

    offset: int
    metadata: str


Kept = tuple[TopicImage, Mapping[int, KeptOffset]]
"""Offsets of a topic by partition."""


class GroupOffsets:
    """Offsets of groups in a metadata store.

    >>> import asyncio
    >>> from ottla.meta.memory import open_memory
    >>> async def main() -> None:
    ...     offsets = GroupOffsets(open_memory().connect())
    ...     orders = TopicImage("orders", bytes(16), ())
    ...     await offsets.commit("billing", [(orders, {0: KeptOffset(7, "")})])
    ...     await offsets.commit("billing", [(orders, {1: KeptOffset(8, "at noon")})])
    ...     print(await offsets.fetch("billing", orders))
    >>> asyncio.run(main())
    {0: KeptOffset(offset=7, metadata=''), 1: KeptOffset(offset=8, metadata='at noon')}
    """

    def __init__(self, store: MetaStore) -> None:
        self._store = store

    async def fetch(self, group_id: str, topic: TopicImage) -> dict[int, KeptOffset]:
        """What a group has committed for a topic, by partition."""
        path = _path(group_id, topic.name)
        return _decode(path, await self._store.get(path), topic)

    async def commit(self, group_id: str, offsets: Sequence[Kept]) -> None:
        """Keep offsets for a group, all of them or none; INVALID_COMMIT_OFFSET_SIZE if they are too many."""
        for _ in range(_ATTEMPTS):
            changes = await self._changes(group_id, offsets)
            try:
                await self._store.commit(*changes)
            except Conflict:
                continue
            except TooLargeError as error:
                raise KafkaError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, str(error)) from error
            return
        raise StoreError(f"the offsets of group {group_id!r} were changed by others {_ATTEMPTS} times in a row")

    async def _changes(self, group_id: str, offsets: Sequence[Kept]) -> list[Change]:
        changes: list[Change] = []
        for topic, added in offsets:
            path = _path(group_id, topic.name)
            entry = await self._store.get(path)
            if entry is None and not changes:
                # All entries of a group are below one, which the first commit makes.
                changes += await self._missing(_path(group_id))
            value = _encode(topic, {**_decode(path, entry, topic), **added})
            changes.append(Create(path, value) if entry is None else Set(path, value, entry.version))
        return changes

    async def _missing(self, path: str) -> list[Change]:
        return [Create(above, b"") for above in (ROOT, path) if await self._store.get(above) is None]


def _path(group_id: str, topic: str | None = None) -> str:
    group = f"{ROOT}/{_quoted(group_id)}"
    return group if topic is None else f"{group}/{_quoted(topic)}"


def _quoted(name: str) -> str:
    """A name as part of a path, where it can be neither empty nor consist of dots.

    >>> _quoted("a/b"), _quoted(".."), _quoted("")
    ('=a%2Fb', '=..', '=')
    """
    return "=" + quote(name, safe="", errors="surrogatepass")


def _encode(topic: TopicImage, offsets: Mapping[int, KeptOffset]) -> bytes:
    return encode_json(
        {"id": encode_id(topic.topic_id), "offsets": {str(index): kept for index, kept in offsets.items()}}
    )


def _decode(path: str, entry: Entry | None, topic: TopicImage) -> dict[int, KeptOffset]:
    if entry is None:
        return {}
    fields = decode_json(path, entry.value)
    try:
        if fields["id"] != encode_id(topic.topic_id):
            return {}
        return {
            int(index): KeptOffset(int(offset), metadata) for index, (offset, metadata) in fields["offsets"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} holds {entry.value[:50]!r}, which are no offsets") from error
