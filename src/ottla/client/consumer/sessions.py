"""Fetch sessions (KIP-227): a broker remembers what is fetched, and is told what has changed."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.types import TopicPartition
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

FIRST_VERSION_WITH_SESSIONS = 7
LAST_VERSION_WITH_NAMES = 12

NO_SESSION = 0
FULL = 0
"""The epoch of a request that names all partitions, and begins a session."""
WITHOUT_SESSION = -1
LARGEST_EPOCH = 2**31 - 1


class Wanted(NamedTuple):
    """What to fetch of a partition."""

    offset: int
    max_bytes: int
    leader_epoch: int
    topic_id: bytes


class FetchSession:
    """What one broker was told last.

    >>> session, partition = FetchSession(), TopicPartition("orders", 0)
    >>> first = session.request({partition: Wanted(0, 1000, 4, bytes(16))}, version=12)
    >>> first.session_id, first.session_epoch, len(first.topics)
    (0, 0, 1)
    >>> session.accepted(77)
    >>> second = session.request({partition: Wanted(0, 1000, 4, bytes(16))}, version=12)
    >>> second.session_id, second.session_epoch, len(second.topics)
    (77, 1, 0)
    """

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = FULL
        self._told: dict[TopicPartition, Wanted] = {}
        self._by_id = False

    @property
    def is_open(self) -> bool:
        """Whether the broker remembers what is fetched, and sees to it that all partitions get their turn."""
        return self._epoch != FULL

    def request(self, wanted: Mapping[TopicPartition, Wanted], version: int) -> FetchRequest:
        """What to tell the broker, so that it fetches just these."""
        by_id = version > LAST_VERSION_WITH_NAMES
        if by_id is not self._by_id:
            self.begin_anew()
        self._by_id = by_id
        if version < FIRST_VERSION_WITH_SESSIONS:
            return FetchRequest(session_epoch=WITHOUT_SESSION, topics=_topics(wanted))
        told, self._told = self._told, dict(wanted)
        if self._epoch == FULL:
            return FetchRequest(session_id=self._session_id, session_epoch=FULL, topics=_topics(wanted))
        news = {partition: one for partition, one in wanted.items() if told.get(partition) != one}
        gone: dict[tuple[str, bytes], ForgottenTopic] = {}
        for partition, one in told.items():
            now = wanted.get(partition)
            # A topic that was deleted and made again is another one.
            if now is None or (by_id and now.topic_id != one.topic_id):
                topic = ForgottenTopic(topic=partition.topic, topic_id=one.topic_id)
                gone.setdefault((partition.topic, one.topic_id), topic).partitions.append(partition.partition)
        return FetchRequest(
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=_topics(news),
            forgotten_topics_data=list(gone.values()),
        )

    def accepted(self, session_id: int) -> None:
        """The broker has answered, with the session's id, or none if it does not want to remember."""
        if session_id == NO_SESSION:
            self.forget()
        else:
            self._session_id = session_id
            self._epoch = 1 if self._epoch == LARGEST_EPOCH else self._epoch + 1

    def begin_anew(self) -> None:
        """End the session and begin another, since it is not sure what the broker knows."""
        self._epoch = FULL
        self._told = {}

    def forget(self) -> None:
        """The broker knows nothing of the session."""
        self._session_id = NO_SESSION
        self.begin_anew()


def _topics(wanted: Mapping[TopicPartition, Wanted]) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for (name, partition), one in wanted.items():
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = FetchTopic(topic=name, topic_id=one.topic_id)
        topic.partitions.append(
            FetchPartition(
                partition=partition,
                current_leader_epoch=one.leader_epoch,
                fetch_offset=one.offset,
                partition_max_bytes=one.max_bytes,
            )
        )
    return list(topics.values())
