"""COORDINATOR_NOT_AVAILABLE (15): every request about a group hears of it, where its state cannot be kept."""

import asyncio
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any

import pytest

from ottla.broker.coordinator_shard import Shard
from ottla.meta.catalog import Catalog
from ottla.replica.group_sync import GroupSync
from ottla.testing import TestBroker
from ottla.wire.api.describe_groups import DescribeGroupsRequest
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.api.heartbeat import HeartbeatRequest
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from ottla.wire.api.sync_group import SyncGroupRequest
from ottla.wire.errors import ErrorCode, KafkaError
from tests.broker.group_client import GroupClient, commit, join, leave, of


def group_requests(group_id: str, member_id: str, generation: int) -> dict[str, tuple[Any, int, Callable[[Any], int]]]:
    """Everything that a coordinator is asked about a group: a request, its version, and where its error code is."""

    def own(response: Any) -> int:
        code: int = response.error_code
        return code

    def of_partition(response: Any) -> int:
        code: int = response.topics[0].partitions[0].error_code
        return code

    def of_group(response: Any) -> int:
        code: int = response.groups[0].error_code
        return code

    ids: dict[str, Any] = {"group_id": group_id, "member_id": member_id, "generation_id": generation}
    of_topic = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    old_fetch = OffsetFetchRequest(group_id=group_id, topics=of_topic)
    new_fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=[])])
    return {
        "JoinGroup": (join(group_id), 3, own),
        "SyncGroup": (SyncGroupRequest(**ids), 3, own),
        "Heartbeat": (HeartbeatRequest(**ids), 3, own),
        "LeaveGroup": (leave(group_id, member_id), 2, own),
        "LeaveGroup of several": (leave(group_id, member_id), 5, own),
        "OffsetCommit": (commit(group_id, "t", 9, **of(member_id, generation)), 8, of_partition),
        "OffsetFetch v1": (old_fetch, 1, of_partition),
        "OffsetFetch": (old_fetch, 7, own),
        "OffsetFetch of several": (new_fetch, 8, of_group),
        "DescribeGroups": (DescribeGroupsRequest(groups=[group_id]), 5, of_group),
        "ListGroups": (ListGroupsRequest(), 4, own),
    }


each_group_request = pytest.mark.parametrize(
    "name", [name for name in group_requests("", "", 0) if name != "ListGroups"]
)


@pytest.fixture
def no_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata store takes no topics."""

    async def refuse(_catalog: Catalog, topics: Sequence[object]) -> list[KafkaError]:
        return [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left on device") for _ in topics]

    monkeypatch.setattr(Catalog, "create_topics", refuse)


@each_group_request
@pytest.mark.usefixtures("no_topics")
def test_no_group_has_a_coordinator_without_an_offsets_topic(broker: TestBroker, name: str) -> None:
    request, version, code_of = group_requests("g", "m", 1)[name]
    with GroupClient((broker.host, broker.port)) as client:
        assert code_of(client.call(request, version)) == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", range(7))
@pytest.mark.usefixtures("no_topics")
def test_no_coordinator_is_found_without_an_offsets_topic(broker: TestBroker, version: int) -> None:
    with GroupClient((broker.host, broker.port)) as client:
        response = client.call(FindCoordinatorRequest(key="g", coordinator_keys=["g"]), version)
        found = response.coordinators[0] if version >= 4 else response
        assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
        assert client.call(ListGroupsRequest(), 4).groups == [], "that there are no groups is known"


@pytest.mark.parametrize("name", group_requests("", "", 0))
def test_who_waits_for_a_disk_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    waiting = 0
    commit_waits = Event()
    reply_when, wait = Shard._reply_when, Shard._wait

    def count(answer: Any) -> Any:
        nonlocal waiting
        waiting += 1
        commit_waits.set()
        return answer

    async def fail_when_both_wait(_sync: GroupSync) -> None:
        while waiting < 2:
            await asyncio.sleep(0.01)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "input/output error")

    with (
        TestBroker({"log.flush.interval.messages": "1"}) as broker,
        GroupClient((broker.host, broker.port)) as client,
        GroupClient((broker.host, broker.port)) as other,
    ):
        client.topic("t")
        member_id, generation = client.become_only_member("g")
        monkeypatch.setattr(Shard, "_reply_when", lambda shard, *some: count(reply_when(shard, *some)))
        monkeypatch.setattr(Shard, "_wait", lambda shard, *some: count(wait(shard, *some)))
        monkeypatch.setattr(GroupSync, "synced", fail_when_both_wait)
        client.begin(commit("g", "t", 8, **of(member_id, generation)), 8)
        assert commit_waits.wait(10)
        request, version, code_of = group_requests("g", member_id, generation)[name]
        assert code_of(other.call(request, version)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert client.finish().topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
