"""Incremental fetch sessions: a consumer of many partitions names them once, and then only what changes.

A session belongs to a principal, whatever connection it comes on: another one who knows its id and its next epoch would
learn what somebody reads. There are a fixed number of places; a session that has not been used for a while makes room
for a new one.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from ottla.wire.errors import ErrorCode, KafkaError

TopicKey = str | bytes
"""A topic's name, or from Fetch v13 on its id."""

NO_SESSION = 0
FINAL_EPOCH = -1
FIRST_EPOCH = 0
_LARGEST_EPOCH = 2**31 - 1


class Wanted(NamedTuple):
    """A partition that a fetch asks for."""

    topic: TopicKey
    partition: FetchPartition


class _Cached:
    """A partition of a session: what was asked for, and what the client was last told."""

    __slots__ = ("high_watermark", "last_stable_offset", "log_start_offset", "partition")

    def __init__(self, partition: FetchPartition) -> None:
        self.partition = partition
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1

    def news(self, data: PartitionData, has_records: bool) -> bool:
        """Whether the client has to be told; remembers what it is told."""
        marks = (data.high_watermark, data.last_stable_offset, data.log_start_offset)
        changed = marks != (self.high_watermark, self.last_stable_offset, self.log_start_offset)
        if data.error_code:
            # An error is repeated until it is over, and the first reply after it counts as news.
            marks = (-1, -1, -1)
        self.high_watermark, self.last_stable_offset, self.log_start_offset = marks
        return bool(changed or has_records or data.error_code)


class Session:
    """The partitions of one consumer, in the order in which they are served."""

    __slots__ = ("_partitions", "by_id", "epoch", "incremental", "principal", "session_id", "used_ms")

    def __init__(self, session_id: int, by_id: bool, principal: str) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.principal = principal
        self.epoch = FIRST_EPOCH
        self.incremental = False
        self.used_ms = 0
        self._partitions: OrderedDict[tuple[TopicKey, int], _Cached] = OrderedDict()

    def update(self, body: FetchRequest) -> None:
        """Take what the request adds, changes and forgets."""
        for topic in body.topics:
            for partition in topic.partitions:
                place = (_key(topic, self.by_id), partition.partition)
                cached = self._partitions.get(place)
                if cached is None:
                    self._partitions[place] = _Cached(partition)
                else:
                    cached.partition = partition
        for forgotten in body.forgotten_topics_data:
            for index in forgotten.partitions:
                self._partitions.pop((forgotten.topic_id if self.by_id else forgotten.topic, index), None)

    def wanted(self) -> list[Wanted]:
        """All partitions of the session."""
        return [Wanted(topic, cached.partition) for (topic, _), cached in self._partitions.items()]

    def keep(self, topic: TopicKey, data: PartitionData, has_records: bool) -> bool:
        """Whether a partition belongs into this reply. Those that had records go behind the others for the next."""
        place = (topic, data.partition_index)
        cached = self._partitions.get(place)
        if cached is None:
            return True
        if has_records:
            self._partitions.move_to_end(place)
        return cached.news(data, has_records) or not self.incremental


def _key(topic: FetchTopic, by_id: bool) -> TopicKey:
    return topic.topic_id if by_id else topic.topic


class Sessions:
    """The sessions that a broker keeps."""

    def __init__(self, places: int, evict_after_ms: int, now_ms: Callable[[], int]) -> None:
        self._places = places
        self._evict_after_ms = evict_after_ms
        self._now_ms = now_ms
        self._sessions: OrderedDict[int, Session] = OrderedDict()
        self._last_id = NO_SESSION

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, body: FetchRequest, by_id: bool, principal: str) -> Session:
        """The session of a request: one that goes on, a new one, or one for this request alone (with id 0)."""
        if body.session_epoch in (FINAL_EPOCH, FIRST_EPOCH):
            if self._find(body.session_id, principal) is not None:
                del self._sessions[body.session_id]
            keep = body.session_epoch == FIRST_EPOCH and self._make_room()
            session = Session(self._next_id() if keep else NO_SESSION, by_id, principal)
            if keep:
                session.epoch = FIRST_EPOCH + 1
                self._sessions[session.session_id] = session
        else:
            session = self._existing(body, by_id, principal)
            session.incremental = True
            session.epoch = session.epoch + 1 if session.epoch < _LARGEST_EPOCH else 1
            self._sessions.move_to_end(session.session_id)
        session.used_ms = self._now_ms()
        session.update(body)
        return session

    def _find(self, session_id: int, principal: str) -> Session | None:
        session = self._sessions.get(session_id)
        return session if session is not None and session.principal == principal else None

    def _existing(self, body: FetchRequest, by_id: bool, principal: str) -> Session:
        session = self._find(body.session_id, principal)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {body.session_id}")
        if session.epoch != body.session_epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {body.session_id} is at epoch {session.epoch}, not {body.session_epoch}",
            )
        if session.by_id != by_id:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, "a fetch session names topics or their ids, not both"
            )
        return session

    def _make_room(self) -> bool:
        if len(self._sessions) < self._places:
            return True
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or self._now_ms() - oldest.used_ms < self._evict_after_ms:
            return False
        del self._sessions[oldest.session_id]
        return True

    def _next_id(self) -> int:
        self._last_id = self._last_id + 1 if self._last_id < _LARGEST_EPOCH else 1
        return self._last_id if self._last_id not in self._sessions else self._next_id()
