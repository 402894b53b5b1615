"""A member of the consumer protocol."""

from collections import defaultdict
from typing import Any

from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.errors import ErrorCode

from .members import HEARTBEAT_MS, RETRY_MS, BaseMember, Place
from .world import World

LEAVES = -1


class ConsumerMember(BaseMember):
    """Says what it reads and what it has; gives up what it is told to, takes what it is given."""

    def __init__(self, world: World, group: str, name: str, topics: list[str], instance_id: str | None = None) -> None:
        super().__init__(world, group, name, topics, instance_id)
        self.member_id = world.chance.uuid().hex()
        self.epoch = 0
        self._names = {topic.topic_id: topic.name for topic in world.image.topics.values()}

    def start(self) -> None:
        """Join."""
        self.epoch = 0
        self.owned = set()
        self._heartbeat(full=True)

    def _heartbeat(self, full: bool = False) -> None:
        body = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, instance_id=self.instance_id
        )
        if full:
            body.rebalance_timeout_ms = 20_000
            body.subscribed_topic_names = self.topics
            body.topic_partitions = self._reported()
        elif self.epoch and self.world.chance.random() < 0.5:
            self.commit(self.epoch, 9)
        self.ask("consumer_group_heartbeat", 1, body, self._beaten, 10_000, lambda: self._heartbeat(full=True))

    def _reported(self) -> list[TopicPartitions]:
        ids = {name: topic_id for topic_id, name in self._names.items()}
        by_topic: dict[bytes, list[int]] = defaultdict(list)
        for topic, index in sorted(self.owned):
            by_topic[ids[topic]].append(index)
        return [TopicPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in by_topic.items()]

    def _beaten(self, reply: Any) -> None:
        if reply.error_code == ErrorCode.NONE:
            self.epoch = reply.member_epoch
            self.in_line = False
            if reply.assignment is not None:
                self._reconcile(reply.assignment)
            else:
                self.later(HEARTBEAT_MS, self._heartbeat)
        elif reply.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.owned = set()
            self.go_on()
            self.later(RETRY_MS, self.start)
        elif reply.error_code == ErrorCode.FENCED_INSTANCE_ID:
            self.die()
        else:
            # Another has this instance id, as long as it lives.
            self.in_line = reply.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
            self.later(RETRY_MS, self._heartbeat, True)

    def _reconcile(self, assignment: Any) -> None:
        given: set[Place] = {
            (self._names[part.topic_id], index) for part in assignment.topic_partitions for index in part.partitions
        }
        if given == self.owned:
            self.later(HEARTBEAT_MS, self._heartbeat)
            return
        # Giving up takes a moment: what was read is finished and committed first.
        self.later(self.world.chance.randint(0, 2000), self._take, given)

    def _take(self, given: set[Place]) -> None:
        self.owned = given
        self.read_offsets()
        self._heartbeat(full=True)

    def leave(self) -> None:
        """Say good-bye."""
        body = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=LEAVES, instance_id=self.instance_id
        )
        self.ask("consumer_group_heartbeat", 1, body, lambda reply: None, 10_000, lambda: None)
        self.die()
