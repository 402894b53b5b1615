"""Groups over a longer time: restarts, kills, compaction, clients that go away, and the topic they are all kept in."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cluster.names import OFFSETS_TOPIC
from ottla.record import Record, batches, build_batch, records
from ottla.testing import TestBroker
from ottla.wire.api.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.api.describe_groups import DescribeGroupsRequest
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.errors import ErrorCode
from tests.broker.group_client import GroupClient, join, of, sync
from tests.crash.run import Process
from tests.waiting import until


@pytest.fixture
def client(broker: TestBroker) -> Iterator[GroupClient]:
    with GroupClient((broker.host, broker.port)) as connected:
        connected.topic("t")
        yield connected


def state_of(client: GroupClient, group_id: str) -> str:
    state: str = client.call(DescribeGroupsRequest(groups=[group_id]), 5).groups[0].group_state
    return state


def test_a_group_lives_on_after_a_restart(broker: TestBroker) -> None:
    with GroupClient((broker.host, broker.port)) as client:
        client.topic("t")
        member_id, generation = client.become_only_member("g")
        assert client.commit("g", offset=7, metadata="noted", **of(member_id, generation)) == 0
        assert client.commit("simple", offset=8) == 0
        assert client.commit("old", offset=9, version=0) == 0
    broker.stop()
    broker.start()
    with GroupClient((broker.host, broker.port)) as client:
        until(lambda: not client.call(DescribeGroupsRequest(groups=["g"]), 0).groups[0].error_code, "g is loaded")
        assert state_of(client, "g") == "Stable"
        assert client.heartbeat("g", member_id, generation) == ErrorCode.NONE
        assert client.committed("g") == (7, "noted")
        assert client.committed("old", version=0) == (9, "")
        until(lambda: not client.call(DescribeGroupsRequest(groups=["simple"]), 0).groups[0].error_code, "it is loaded")
        assert client.committed("simple") == (8, "")


@pytest.mark.slow
def test_nothing_committed_is_lost_when_the_broker_is_killed(tmp_path: Path) -> None:
    process = Process(tmp_path, "group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=100")
    process.start()
    try:
        last: dict[str, int] = {}
        generation = 0
        for kill in range(3):
            with GroupClient(process.address) as client:
                client.topic("t")
                deadline = time.monotonic() + 20
                while client.commit("g0", offset=kill) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    assert time.monotonic() < deadline
                for number in range(20):
                    for group_id in ("g0", "g1", "g2"):
                        code = client.commit(group_id, offset=kill * 100 + number)
                        while code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                            code = client.commit(group_id, offset=kill * 100 + number)
                        assert code == ErrorCode.NONE
                        last[group_id] = kill * 100 + number
                # Members of before are waited for so long.
                timeouts = {"session_timeout_ms": 300, "rebalance_timeout_ms": 300}
                joined = client.join_as_new("with-members", **timeouts)
                while joined.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    joined = client.join_as_new("with-members", **timeouts)
                assert joined.generation_id > generation, "a generation is never used twice"
                generation = joined.generation_id
                if kill % 2:
                    assert client.call(sync("with-members", joined, {joined.member_id: b"all"}), 5).error_code == 0
            process.kill()
            process.start()
            with GroupClient(process.address) as client:
                for group_id, offset in last.items():
                    assert eventually_committed(client, group_id) == offset
    finally:
        process.kill()


def eventually_committed(client: GroupClient, group_id: str) -> int:
    while True:
        group = client.call(DescribeGroupsRequest(groups=[group_id]), 0).groups[0]
        if group.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return client.committed(group_id)[0]
        time.sleep(0.01)


def test_who_waits_to_join_keeps_nobody_else_waiting(broker: TestBroker, client: GroupClient) -> None:
    member_id, generation = client.become_only_member("g")
    with GroupClient((broker.host, broker.port)) as other:
        told = other.call(join("g"), 9)
        other.begin(join("g", member_id=told.member_id), 9)
        begun = time.monotonic()
        assert client.commit("h", offset=1) == ErrorCode.NONE
        assert client.commit("g", offset=1, **of(member_id, generation)) == ErrorCode.NONE
        assert time.monotonic() - begun < 8, "they waited for the ten seconds that a rebalance may take"
    # It has gone away without an answer. The group rebalances with whoever comes.
    again = client.call(join("g", member_id=member_id), 9)
    assert (again.error_code, again.generation_id) == (0, generation + 1)


@pytest.mark.parametrize("settings", [{"group.min.session.timeout.ms": "100"}])
def test_a_member_that_falls_silent_is_removed(client: GroupClient) -> None:
    member_id, generation = client.become_only_member("g", session_timeout_ms=1500)
    for _ in range(4):
        time.sleep(0.5)
        assert client.heartbeat("g", member_id, generation) == ErrorCode.NONE
    until(lambda: state_of(client, "g") == "Empty", "the member is out")
    assert client.heartbeat("g", member_id, generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_offsets_topic_is_there_to_be_read_and_not_to_be_written(client: GroupClient) -> None:
    assert client.commit("g", offset=7) == ErrorCode.NONE
    (described,) = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)]), 12).topics
    assert (described.error_code, described.is_internal, len(described.partitions)) == (0, True, 50)
    data = [PartitionProduceData(index=3, records=build_batch([Record(0, 1, b"k", b"v")]))]
    request = ProduceRequest(
        acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=OFFSETS_TOPIC, partition_data=data)]
    )
    (produced,) = client.call(request, 9).responses[0].partition_responses
    assert produced.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    (deleted,) = client.call(
        DeleteTopicsRequest(topics=[DeleteTopicState(name=OFFSETS_TOPIC)], timeout_ms=5000), 6
    ).responses
    assert deleted.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert client.committed("g") == (7, "")


def test_asking_for_metadata_makes_the_offsets_topic_as_it_should_be(client: GroupClient) -> None:
    assert len(client.topic(OFFSETS_TOPIC).partitions) == 50
    assert client.commit("g", offset=7) == ErrorCode.NONE


@pytest.mark.parametrize(
    "settings",
    [
        {
            "offsets.topic.num.partitions": "1",
            "offsets.topic.segment.bytes": "1048576",
            "log.cleaner.backoff.ms": "50",
            "log.cleaner.min.cleanable.ratio": "0.01",
            "log.cleaner.delete.retention.ms": "0",
        }
    ],
)
def test_compaction_of_the_offsets_topic_changes_nothing_for_groups(broker: TestBroker, client: GroupClient) -> None:
    member_id, generation = client.become_only_member("g")
    for number in range(900):
        assert client.commit(f"g{number % 10}", offset=number, metadata="x" * 4000) == ErrorCode.NONE
    deadline = time.monotonic() + 20
    log = Path(broker.folder, f"{OFFSETS_TOPIC}-0")
    while sum(path.stat().st_size for path in log.glob("*.log")) > 2_000_000:
        assert time.monotonic() < deadline, "it was not compacted"
        assert client.heartbeat("g", member_id, generation) == ErrorCode.NONE
        time.sleep(0.05)
    broker.stop()
    broker.start()
    with GroupClient((broker.host, broker.port)) as again:
        assert eventually_committed(again, "g0") == 890
        assert [again.committed(f"g{number}")[0] for number in range(10)] == list(range(890, 900))
        assert again.heartbeat("g", member_id, generation) == ErrorCode.NONE


@pytest.mark.parametrize("settings", [{"offsets.topic.num.partitions": "1"}])
def test_what_is_in_the_offsets_topic_is_what_kafka_writes(client: GroupClient) -> None:
    assert client.commit("g", offset=7, metadata="m") == ErrorCode.NONE
    (found,) = [record for batch in batches(client.fetch(OFFSETS_TOPIC, 0)) for record in records(batch)]  # type: ignore[arg-type]
    key, value = bytes(found.key or b""), bytes(found.value or b"")
    assert key.hex() == "0001" + "000167" + "000174" + "00000000", "version 1, group g, topic t, partition 0"
    assert int.from_bytes(value[:2], "big") in (3, 4)
    assert int.from_bytes(value[2:10], "big") == 7


def test_a_member_whose_metadata_is_too_large_is_refused_and_its_neighbours_are_not_disturbed(
    broker: TestBroker,
) -> None:
    with GroupClient((broker.host, broker.port)) as client:
        member_id, generation = client.become_only_member("small")
        large = join("large", protocols={"range": bytes(2 << 20)})
        assert client.call(large, 9).error_code == ErrorCode.MESSAGE_TOO_LARGE
        joined = client.join_as_new("shared")
        shares = sync("shared", joined, {joined.member_id: bytes(2 << 20)})
        assert client.call(shares, 5).error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert client.heartbeat("small", member_id, generation) is ErrorCode.NONE
