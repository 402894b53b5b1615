"""Topics come, grow, change and go: checked against the image, written to the catalog, then done on this disk.

One change at a time: each is checked against the image that the one before it left.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.internal_topics import check_not_internal, usual_configs, usual_counts
from ottla.cluster.change import USUAL, grown_topic, new_topic
from ottla.cluster.image import PartitionImage, TopicImage
from ottla.cluster.names import check_topic_name
from ottla.config.topic import TopicConfig
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


PARTITIONS_PER_TURN = 200
"""How many are made at once; the event loop looks after others in between."""


class NewTopic(NamedTuple):
    """A topic that somebody wants. A manual assignment, by partition, takes the place of the two counts."""

    name: str
    partition_count: int = USUAL
    replication_factor: int = USUAL
    assignment: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str] | None = None


class Topics:
    """What can be done to topics."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.one_at_a_time = asyncio.Lock()
        """Held while topics or what they inherit change."""

    async def create(
        self,
        name: str,
        *,
        partition_count: int = USUAL,
        replication_factor: int = USUAL,
        configs: Mapping[str, str] | None = None,
    ) -> TopicImage:
        """Create a topic; a KafkaError if that cannot be done."""
        (made,) = await self.create_all([NewTopic(name, partition_count, replication_factor, configs=configs)])
        if isinstance(made, KafkaError):
            raise made
        return made

    async def create_all(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[TopicImage | KafkaError]:
        """Create topics, or only see whether that could be done. Each succeeds or fails for itself, in this order."""
        async with self.one_at_a_time:
            # Thousands of partitions take a while, and the image does not change meanwhile.
            planned = await asyncio.get_running_loop().run_in_executor(None, self._plan, wanted)
            if validate_only:
                return planned
            topics = [plan for plan in planned if isinstance(plan, TopicImage)]
            made = dict(zip((topic.name for topic in topics), await self._make(topics), strict=True))
            return [made[plan.name] if isinstance(plan, TopicImage) else plan for plan in planned]

    def _plan(self, wanted: Sequence[NewTopic]) -> list[TopicImage | KafkaError]:
        broker = self._broker
        planned: list[TopicImage | KafkaError] = []
        for one in map(self._with_defaults, wanted):
            try:
                topic = new_topic(
                    broker.image,
                    one.name,
                    broker.chance,
                    broker.config,
                    partition_count=one.partition_count,
                    replication_factor=one.replication_factor,
                    assignment=one.assignment,
                    configs=one.configs,
                )
            except KafkaError as error:
                planned.append(error)
            else:
                planned.append(topic)
        return planned

    def _with_defaults(self, one: NewTopic) -> NewTopic:
        broker = self._broker
        configs = {**usual_configs(one.name, broker.config), **(one.configs or {})}
        if one.assignment:
            return one._replace(configs=configs)
        count, factor = usual_counts(one.name, broker.config, broker.image)
        return one._replace(
            partition_count=count if one.partition_count == USUAL else one.partition_count,
            replication_factor=factor if one.replication_factor == USUAL else one.replication_factor,
            configs=configs,
        )

    async def _make(self, topics: Sequence[TopicImage]) -> list[TopicImage | KafkaError]:
        broker = self._broker
        made: list[TopicImage | KafkaError] = []
        for topic, error in zip(topics, await broker.catalog.create_topics(topics), strict=True):
            made.append(topic if error is None else error)
            # Of the broker's own topics, folders are made when there is something to put in them.
            if error is None and not topic.is_internal:
                try:
                    await self._make_folders(topic, topic.partitions)
                except KafkaError as failure:
                    # A topic without all its folders would be in the way of the next attempt.
                    await broker.catalog.delete_topic(topic.name, topic.topic_id)
                    with suppress(OSError):
                        await broker.logs.delete(topic)
                    made[-1] = failure
        broker.image = broker.image.with_topics(*(topic for topic in made if isinstance(topic, TopicImage)))
        return made

    async def _make_folders(self, topic: TopicImage, partitions: Sequence[PartitionImage]) -> None:
        for first in range(0, len(partitions), PARTITIONS_PER_TURN):
            await self._broker.logs.create(topic, partitions[first : first + PARTITIONS_PER_TURN])

    async def create_automatically(self, name: str) -> TopicImage:
        """Create a topic because somebody asked for its metadata."""
        return await self.create(name)

    def why_missing(self, name: str | None) -> ErrorCode:
        """The code for a topic that is not there: it might not even be possible."""
        try:
            check_topic_name(name or "")
        except KafkaError as error:
            return error.code
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def delete(self, name: str) -> None:
        """Delete a topic with all its records."""
        check_not_internal(name)
        broker = self._broker
        async with self.one_at_a_time:
            topic = self.existing(name)
            await broker.logs.begin_deletion(topic)
            await broker.catalog.delete_topic(topic.name, topic.topic_id)
            broker.image = broker.image.without_topic(name)
            await broker.logs.delete(topic)

    async def grow(
        self,
        name: str,
        partition_count: int,
        assignment: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Add partitions, so that there are so many in all."""
        check_not_internal(name)
        broker = self._broker
        async with self.one_at_a_time:
            before = self.existing(name)
            topic = grown_topic(broker.image, name, partition_count, broker.chance, assignment)
            if not validate_only:
                added = topic.partitions[len(before.partitions) :]
                topic = await broker.catalog.add_partitions(name, topic.topic_id, added)
                await self._make_folders(topic, added)
                broker.image = broker.image.with_topic(topic)

    async def alter_configs(
        self, name: str, change: Callable[[Mapping[str, str]], Mapping[str, str]], *, validate_only: bool = False
    ) -> None:
        """Replace a topic's configs by what `change` makes of them."""
        broker = self._broker
        async with self.one_at_a_time:
            topic = self.existing(name)
            # Building a config checks every value, and what they mean together.
            config = TopicConfig.of(dict(change(topic.configs)), broker.config)
            if not validate_only:
                changed = await broker.catalog.alter_topic_configs(name, topic.topic_id, change)
                broker.image = broker.image.with_topic(changed)
                broker.logs.configure(changed, config)

    def existing(self, name: str) -> TopicImage:
        """The topic of that name."""
        topic = self._broker.image.topics.get(name)
        if topic is None:
            raise KafkaError(self.why_missing(name), f"there is no topic {name!r}")
        return topic

    def existing_by_id(self, topic_id: bytes) -> TopicImage:
        """The topic of that id."""
        topic = self._broker.image.topic_by_id(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {topic_id.hex()}")
        return topic
