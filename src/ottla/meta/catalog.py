"""What Ottla keeps in the metadata store, and how it changes: each change is one commit.

| path | what |
|---|---|
| `/cluster` | the cluster's id, made once |
| `/topics/NAME` | a topic: id, partitions, configs; under its folded name, so that two that collide cannot both be |
| `/broker-configs/default`, `/broker-configs/ID` | configs set while brokers run, for all of them or for one |
| `/producer-ids` | the first producer id that was never handed out |
| `/acls/...` | rules of access, in `meta/acls.py` |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from ottla.cluster.change import collision
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.cluster.names import check_topic_name, folded
from ottla.meta.acls import AclRules
from ottla.meta.encoding import decode_json, decode_topic, encode_id, encode_json, encode_topic
from ottla.meta.store import (
    LARGEST_COMMIT,
    Change,
    Conflict,
    Create,
    Delete,
    Entry,
    MetaStore,
    Set,
    StoreError,
    TooLargeError,
)
from ottla.ports import Chance
from ottla.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")

MOST_TOPICS_PER_COMMIT = 100
PRODUCER_ID_BLOCK = 1000
"""Producer ids that a broker takes at a time."""

CLUSTER, TOPICS, BROKER_CONFIGS, PRODUCER_IDS = "/cluster", "/topics", "/broker-configs", "/producer-ids"
_DEFAULT = "default"
# Each attempt that fails means that another one succeeded; so many in a row mean that something else is wrong.
_ATTEMPTS = 100

Alter = Callable[[Mapping[str, str]], Mapping[str, str]]
"""From what is set to what shall be set; called anew if somebody else was faster, so it must have no effects."""


def topic_path(name: str) -> str:
    """Where a topic is kept; INVALID_TOPIC_EXCEPTION if nothing can be called that.

    >>> topic_path("orders.eu")
    '/topics/orders_eu'
    """
    check_topic_name(name)
    return f"{TOPICS}/{folded(name)}"


class Catalog:
    """The cluster's lasting state in a metadata store. Changes return the new picture of what was changed.

    >>> import asyncio
    >>> from ottla.meta.memory import open_memory
    >>> from ottla.ports import SystemChance
    >>> async def main() -> None:
    ...     catalog = await Catalog.open(open_memory().connect(), SystemChance())
    ...     await catalog.create_topic(TopicImage("orders", bytes(16), (PartitionImage(0, 1, 0, (1,), (1,)),)))
    ...     print(list((await catalog.load()).topics), await catalog.allocate_producer_ids())
    >>> asyncio.run(main())
    ['orders'] range(0, 1000)
    """

    def __init__(self, store: MetaStore, cluster_id: str) -> None:
        self.store = store
        self.cluster_id = cluster_id
        self.acls = AclRules(store)

    @classmethod
    async def open(cls, store: MetaStore, chance: Chance) -> Catalog:
        """The catalog in a store; made, with a cluster id, if there is none."""

        def attempt(entry: Entry | None) -> tuple[tuple[Change, ...], str]:
            if entry is not None:
                return (), str(decode_json(CLUSTER, entry.value)["id"])
            cluster_id = encode_id(chance.uuid())
            roots = (Create(TOPICS, b""), Create(BROKER_CONFIGS, b""), Create(PRODUCER_IDS, encode_json({"next": 0})))
            return (Create(CLUSTER, encode_json({"id": cluster_id})), *roots), cluster_id

        return cls(store, await _update(store, CLUSTER, attempt))

    async def load(self) -> ClusterImage:
        """All topics and rules of access. The brokers, which come and go, are not part of it."""
        entries = await self.store.entries(TOPICS)
        topics = (decode_topic(f"{TOPICS}/{key}", entry.value) for key, entry in entries.items())
        return ClusterImage(self.cluster_id, acls=await self.acls.load()).with_topics(*topics)

    async def create_topic(self, topic: TopicImage) -> TopicImage:
        """Write a new topic; TOPIC_ALREADY_EXISTS, or INVALID_TOPIC_EXCEPTION if its name collides with another."""
        path = topic_path(topic.name)

        def attempt(entry: Entry | None) -> tuple[tuple[Change, ...], TopicImage]:
            if entry is None:
                return (Create(path, encode_topic(topic)),), topic
            other = decode_topic(path, entry.value).name
            if other != topic.name:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, collision(topic.name, other))
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {topic.name!r} exists already")

        return await _update(self.store, path, attempt)

    async def create_topics(self, topics: Sequence[TopicImage]) -> list[KafkaError | None]:
        """Write new topics, many with one commit; for each None, or what `create_topic` would have raised."""
        outcomes: list[KafkaError | None] = []
        # A topic of thousands of partitions is a long text.
        for group in await asyncio.to_thread(list, _commits_of(topics)):
            try:
                await self.store.commit(*(change for _, change in group))
                outcomes += [None] * len(group)
            except (Conflict, TooLargeError):
                outcomes += [await self._create_alone(topic) for topic, _ in group]
        return outcomes

    async def _create_alone(self, topic: TopicImage) -> KafkaError | None:
        try:
            await self.create_topic(topic)
        except KafkaError as error:
            return error
        return None

    async def delete_topic(self, name: str, topic_id: bytes) -> None:
        """Remove a topic; UNKNOWN_TOPIC_OR_PARTITION if it is not there, UNKNOWN_TOPIC_ID if another has its name."""
        path = topic_path(name)

        def attempt(entry: Entry | None) -> tuple[tuple[Change, ...], None]:
            found, _ = _existing(name, topic_id, entry)
            return (Delete(path, found.version),), None

        await _update(self.store, path, attempt)

    async def change_topic(self, name: str, topic_id: bytes, change: Callable[[TopicImage], TopicImage]) -> TopicImage:
        """Put a changed topic in place of the one that is there, whoever else changes it at the same time.

        `change` is called anew if somebody else was faster, so it must have no effects.
        """
        path = topic_path(name)

        def attempt(entry: Entry | None) -> tuple[tuple[Change, ...], TopicImage]:
            found, topic = _existing(name, topic_id, entry)
            changed = change(topic)
            return (() if changed == topic else (Set(path, encode_topic(changed), found.version),)), changed

        return await _update(self.store, path, attempt)

    async def add_partitions(self, name: str, topic_id: bytes, partitions: Sequence[PartitionImage]) -> TopicImage:
        """Append partitions to a topic; INVALID_PARTITIONS if others were added in the meantime."""

        def grow(topic: TopicImage) -> TopicImage:
            count = len(topic.partitions)
            if [partition.index for partition in partitions] != list(range(count, count + len(partitions))):
                message = f"topic {name!r} has {count} partitions by now; look again and retry"
                raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
            return replace(topic, partitions=(*topic.partitions, *partitions))

        return await self.change_topic(name, topic_id, grow)

    async def alter_topic_configs(self, name: str, topic_id: bytes, alter: Alter) -> TopicImage:
        """Change what is set for a topic; `alter` checks what it makes."""

        def change(topic: TopicImage) -> TopicImage:
            return replace(topic, configs=MappingProxyType(dict(alter(topic.configs))))

        return await self.change_topic(name, topic_id, change)

    async def load_broker_configs(self, node_id: int | None) -> Mapping[str, str]:
        """What is set for one broker, or with None for all of them."""
        path = _broker_path(node_id)
        return _configs(path, await self.store.get(path))

    async def list_broker_configs(self) -> list[int | None]:
        """The brokers for which something is set; None stands for all of them."""
        return [None if key == _DEFAULT else int(key) for key in await self.store.children(BROKER_CONFIGS)]

    async def alter_broker_configs(self, node_id: int | None, alter: Alter) -> Mapping[str, str]:
        """Change what is set for one broker, or with None for all of them; `alter` checks what it makes."""
        path = _broker_path(node_id)

        def attempt(entry: Entry | None) -> tuple[tuple[Change, ...], Mapping[str, str]]:
            configs = MappingProxyType(dict(alter(_configs(path, entry))))
            value = encode_json({"configs": dict(configs)})
            if entry is None:
                return ((Create(path, value),) if configs else ()), configs
            return ((Set(path, value, entry.version) if configs else Delete(path, entry.version)),), configs

        return await _update(self.store, path, attempt)

    async def allocate_producer_ids(self) -> range:
        """A block of producer ids that nobody had before or gets after, also after a crash."""

        def attempt(entry: Entry | None) -> tuple[tuple[Change, ...], range]:
            if entry is None:
                raise StoreError(f"{PRODUCER_IDS} is missing; the metadata store is damaged")
            first = int(decode_json(PRODUCER_IDS, entry.value)["next"])
            block = range(first, first + PRODUCER_ID_BLOCK)
            return (Set(PRODUCER_IDS, encode_json({"next": block.stop}), entry.version),), block

        return await _update(self.store, PRODUCER_IDS, attempt)


async def _update(store: MetaStore, path: str, attempt: Callable[[Entry | None], tuple[tuple[Change, ...], T]]) -> T:
    """Read an entry, commit the changes that follow from it, and start over if somebody else was faster."""
    for _ in range(_ATTEMPTS):
        changes, result = attempt(await store.get(path))
        try:
            if changes:
                await store.commit(*changes)
        except Conflict:
            continue
        except TooLargeError as error:
            message = f"{path} would take {error}; ask for fewer partitions or shorter configs"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message) from error
        return result
    raise StoreError(f"{path} was changed by others {_ATTEMPTS} times in a row; the metadata store is overloaded")


def _commits_of(topics: Sequence[TopicImage]) -> Iterator[list[tuple[TopicImage, Create]]]:
    """New topics in groups of which each fits in one commit, if it is more than one topic."""
    group: list[tuple[TopicImage, Create]] = []
    size = 0
    for topic in topics:
        change = Create(topic_path(topic.name), encode_topic(topic))
        size += len(change.value)
        if group and (size > LARGEST_COMMIT or len(group) == MOST_TOPICS_PER_COMMIT):
            yield group
            group, size = [], len(change.value)
        group.append((topic, change))
    if group:
        yield group


def _existing(name: str, topic_id: bytes, entry: Entry | None) -> tuple[Entry, TopicImage]:
    topic = decode_topic(topic_path(name), entry.value) if entry is not None else None
    if entry is None or topic is None or topic.name != name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    if topic.topic_id != topic_id:
        message = f"topic {name!r} was deleted, and another one of that name has id {encode_id(topic.topic_id)}"
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, message)
    return entry, topic


def _broker_path(node_id: int | None) -> str:
    return f"{BROKER_CONFIGS}/{_DEFAULT if node_id is None else node_id}"


def _configs(path: str, entry: Entry | None) -> Mapping[str, str]:
    return MappingProxyType(decode_json(path, entry.value)["configs"] if entry is not None else {})
