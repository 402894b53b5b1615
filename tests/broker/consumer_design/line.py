"""A member's connection, and what a test asks a broker about groups and topics."""

import select
from collections.abc import Iterable
from typing import Any

from ottla.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.api.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.api.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.api.describe_groups import DescribeGroupsRequest
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.errors import ErrorCode
from tests.broker.group_client import GroupClient
from tests.waiting import until

Address = tuple[str, int]
Partition = tuple[str, int]


class Line(GroupClient):
    """A connection that can tell whether an answer has come."""

    def has_answer(self) -> bool:
        """Whether there is something to read, be it the end of the connection."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic of so many partitions."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        (result,) = self.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5).topics
        assert result.error_code == 0, result.error_message

    def grow(self, name: str, partitions: int) -> ErrorCode:
        """Have a topic have so many partitions."""
        topic = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        (result,) = self.call(CreatePartitionsRequest(topics=[topic], timeout_ms=10_000), 1).results
        return ErrorCode(result.error_code)

    def partitions(self, topics: Iterable[str]) -> list[Partition]:
        """The partitions of those of the topics that there are; asking makes none."""
        wanted = [MetadataRequestTopic(name=name) for name in sorted(topics)]
        answer = self.call(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), 8)
        return [(topic.name, part.partition_index) for topic in answer.topics for part in topic.partitions]

    def described(self, group_id: str = "g") -> Any:
        """What DescribeGroups tells, once the group is loaded."""
        return until(lambda: _sound(self.call(DescribeGroupsRequest(groups=[group_id]), 5).groups[0]))

    def consumer_described(self, group_id: str = "g") -> Any:
        """What ConsumerGroupDescribe tells, once the group is loaded."""
        return until(lambda: _sound(self.call(ConsumerGroupDescribeRequest(group_ids=[group_id]), 1).groups[0]))

    def state(self, group_id: str = "g") -> str:
        """The state of a classic group."""
        state: str = self.described(group_id).group_state
        return state

    def wait_for_state(self, state: str, group_id: str = "g") -> None:
        """Return when a classic group is in this state: what led to it is written down by then."""
        until(lambda: self.state(group_id) == state, lambda: f"state {state}, not {self.state(group_id)}")


def _sound(answer: Any) -> Any:
    return None if answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else answer
