"""Topics that a consumer wants to read and that do not exist."""

import logging

from ottla.wire.api.metadata import MetadataResponse
from ottla.wire.errors import ErrorCode

log = logging.getLogger(__name__)


class MissingTopics:
    """Tells of each topic that is missing once, and again only if it has existed meanwhile: nothing else would."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def look(self, response: MetadataResponse) -> None:
        """Take what a broker says of the topics that are wanted."""
        for topic in response.topics:
            name = topic.name or ""
            if not topic.error_code:
                self._told.discard(name)
            elif topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and name not in self._told:
                self._told.add(name)
                log.warning(
                    "topic %r does not exist (yet); it is read as soon as it does: create it, or see whether the name "
                    "is right",
                    name,
                )
