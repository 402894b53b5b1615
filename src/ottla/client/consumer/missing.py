"""Topics and partitions that a consumer wants to read and that do not exist."""

import logging
from collections.abc import Iterable

from ottla.client.types import TopicPartition
from ottla.wire.api.metadata import MetadataResponse
from ottla.wire.errors import ErrorCode

log = logging.getLogger(__name__)


class MissingTopics:
    """Tells of each topic or partition that is missing once, and again if it existed meanwhile: nothing else would."""

    def __init__(self) -> None:
        self._told: set[str | TopicPartition] = set()

    def look(self, response: MetadataResponse, partitions: Iterable[TopicPartition] = ()) -> None:
        """Take what a broker says of the topics that are wanted, or of those of partitions that are."""
        partitions = tuple(partitions)
        for topic in response.topics:
            name = topic.name or ""
            if not topic.error_code:
                self._told.discard(name)
                there = {one.partition_index for one in topic.partitions}
                self._look_for(there, [one for one in partitions if one.topic == name])
            elif topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and name not in self._told:
                self._told.add(name)
                log.warning(
                    "topic %r does not exist (yet); it is read as soon as it does: create it, or see whether the name "
                    "is right",
                    name,
                )

    def _look_for(self, there: set[int], wanted: Iterable[TopicPartition]) -> None:
        for one in wanted:
            if one.partition in there:
                self._told.discard(one)
            elif one not in self._told:
                self._told.add(one)
                log.warning(
                    "%s does not exist (yet), topic %r has %d partitions; it is read as soon as it does: add "
                    "partitions, or see whether the number is right",
                    one,
                    one.topic,
                    len(there),
                )
