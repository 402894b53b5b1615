"""Topics come, grow, change and go: checked against the image, written to the catalog, then done on this disk.

One change at a time: each is checked against the image that the one before it left.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.cluster.change import USUAL, grown_topic, new_topic
from ottla.cluster.image import TopicImage
from ottla.cluster.names import check_topic_name
from ottla.config.topic import TopicConfig
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


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
        assignment: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> TopicImage:
        """Create a topic, or only see whether that could be done."""
        broker = self._broker
        async with self.one_at_a_time:
            topic = new_topic(
                broker.image,
                name,
                broker.chance,
                broker.config,
                partition_count=partition_count,
                replication_factor=replication_factor,
                assignment=assignment,
                configs=configs,
            )
            if not validate_only:
                await broker.catalog.create_topic(topic)
                try:
                    await broker.logs.create(topic, topic.partitions)
                except KafkaError:
                    # A topic without folders would be in the way of the next attempt.
                    await broker.catalog.delete_topic(topic.name, topic.topic_id)
                    raise
                broker.image = broker.image.with_topic(topic)
        return topic

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
        broker = self._broker
        async with self.one_at_a_time:
            topic = self.existing(name)
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
        broker = self._broker
        async with self.one_at_a_time:
            before = self.existing(name)
            topic = grown_topic(broker.image, name, partition_count, broker.chance, assignment)
            if not validate_only:
                added = topic.partitions[len(before.partitions) :]
                topic = await broker.catalog.add_partitions(name, topic.topic_id, added)
                await broker.logs.create(topic, added)
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
