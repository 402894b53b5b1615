"""The offsets topic under compaction: it stays small however much is committed, and says the same after a restart."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ottla.testing import TestBroker
from ottla.wire.api.delete_groups import DeleteGroupsRequest
from ottla.wire.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.errors import ErrorCode
from tests.waiting import until

from .group_client import GroupClient, of
from .test_error_codes import create

GROUPS = 5
COMMITS = 3_000
SEGMENT_BYTES = 20_000


@pytest.fixture
def settings() -> dict[str, str]:
    return {
        "offsets.topic.num.partitions": "1",
        "offsets.topic.segment.bytes": str(SEGMENT_BYTES),
        "log.cleaner.backoff.ms": "50",
        # Whatever is deleted may be forgotten with the next compaction.
        "log.cleaner.delete.retention.ms": "0",
        "log.segment.delete.delay.ms": "0",
        "group.initial.rebalance.delay.ms": "0",
    }


def segments(folder: str) -> list[int]:
    """Sizes of the segments of the offsets topic, without the one that is written to."""
    return [path.stat().st_size for path in sorted(Path(folder, "__consumer_offsets-0").glob("*.log"))][:-1]


def fetch_all(client: GroupClient) -> Mapping[tuple[str, str], tuple[int, str | None]]:
    return {(f"g{n}", topic): client.committed(f"g{n}", topic) for n in range(GROUPS) for topic in ("t", "u")}


def delete_offset(client: GroupClient, group_id: str, topic: str) -> None:
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    request = OffsetDeleteRequest(
        group_id=group_id, topics=[OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    )
    response = client.call(request, 0)
    assert (response.error_code, response.topics[0].partitions[0].error_code) == (0, 0)


def test_a_compacted_offsets_topic_yields_the_same_groups_after_a_restart(broker: TestBroker) -> None:
    with GroupClient((broker.host, broker.port)) as client:
        for topic in ("t", "u"):
            create(client, topic)
        member_id, generation = client.become_only_member("g0", session_timeout_ms=60_000)
        for number in range(COMMITS):
            group = number % GROUPS
            who = of(member_id, generation) if group == 0 else {}
            topic = "tu"[number // GROUPS % 2]
            assert client.commit(f"g{group}", topic, offset=number, **who) is ErrorCode.NONE
            if number == COMMITS // 2:
                # Early enough for the tombstones to be compacted.
                delete_offset(client, "g3", "t")
                assert client.call(DeleteGroupsRequest(groups_names=["g4"]), 2).results[0].error_code == 0
                assert client.committed("g4") == (-1, "")
        delete_offset(client, "g1", "u")
        assert client.call(DeleteGroupsRequest(groups_names=["g2"]), 2).results[0].error_code == 0
        before = fetch_all(client)
        assert before["g0", "t"][0] > COMMITS - 20
        assert before["g1", "t"][0] > COMMITS - 20
        assert [before[key][0] for key in (("g1", "u"), ("g2", "t"), ("g2", "u"))] == [-1, -1, -1]
        # Without compaction it would be more than ten segments.
        assert COMMITS * 100 > 10 * SEGMENT_BYTES
        until(lambda: sum(segments(broker.folder)) < 3 * SEGMENT_BYTES, "the topic is compacted")
        assert fetch_all(client) == before
    broker.stop()
    broker.start()
    with GroupClient((broker.host, broker.port)) as client:
        # While the groups are loaded, any heartbeat is fine.
        until(lambda: client.heartbeat("g0", member_id, generation + 1) is ErrorCode.ILLEGAL_GENERATION, "g0 is loaded")
        assert fetch_all(client) == before
        assert client.commit("g0", "t", offset=COMMITS, **of(member_id, generation)) is ErrorCode.NONE
        assert client.commit("g0", "t", offset=0) is ErrorCode.UNKNOWN_MEMBER_ID
