"""What a task of the sink does, without Spark around it."""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.faults import FaultProxy, cut_reply

from ottla import NewTopic, sync
from ottla.client.errors import BrokerUnreachableError, DeliveryTimedOutError, UnknownTopicOrPartitionError
from ottla.client.types import TopicPartition
from ottla.spark import producers as pool
from ottla.spark.producers import ProducerPool
from ottla.spark.sink_options import SinkOptions
from ottla.spark.writing import GATHERED_BYTES, GATHERED_ROWS, gathered, write_rows
from ottla.testing import TestBroker


def rows(*values: str) -> pa.RecordBatch:
    return pa.record_batch({"value": list(values)})


def values(broker: TestBroker, topic: str) -> list[bytes]:
    table = sync.read_table(topic, bootstrap_servers=broker.bootstrap_servers)
    return sorted(table["value"].to_pylist())


def options_for(broker: TestBroker, topic: str | None, **others: str) -> SinkOptions:
    named = {f"kafka.{name.replace('_', '.')}": value for name, value in others.items()}
    topics = {} if topic is None else {"topic": topic}
    return SinkOptions.parse({"kafka.bootstrap.servers": broker.bootstrap_servers, **topics, **named})


def test_a_task_tells_how_many_rows_went_where(broker: TestBroker) -> None:
    options = options_for(broker, "told")
    written = write_rows(iter([rows("a", "b"), rows("c")]), options, ("value",))
    assert written.rows == 3
    assert written.offsets == {TopicPartition("told", 0): (0, 2)}
    assert values(broker, "told") == [b"a", b"b", b"c"]


def test_small_batches_are_gathered_in_their_order_up_to_a_limit() -> None:
    sizes = [10_000] * 7 + [0, 1]
    schema = pa.schema({"value": pa.string()})
    given = [
        pa.record_batch([[f"{number} {row}" for row in range(size)]], schema=schema)
        for number, size in enumerate(sizes)
    ]
    found = list(gathered(given))
    assert [batch.num_rows for batch in found] == [30_000, 30_000, 10_001]
    assert all(batch.num_rows <= GATHERED_ROWS for batch in found)
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches(given))


def test_large_batches_go_as_they_are_and_are_not_held_back() -> None:
    large = pa.record_batch({"value": [bytes(GATHERED_BYTES)]})
    taken = []

    def given() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            taken.append(number)
            yield large

    found = gathered(given())
    assert next(found) is large
    assert taken == [0]
    assert [batch is large for batch in found] == [True, True]


def test_rows_of_gathered_batches_keep_their_partition_and_their_order(broker: TestBroker) -> None:
    with sync.Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("gathered", num_partitions=3)])
    given = [
        pa.record_batch(
            {"key": [str(row % 7) for row in range(100)], "value": [f"{batch:03} {row:03}" for row in range(100)]}
        )
        for batch in range(20)
    ]
    written = write_rows(iter(given), options_for(broker, "gathered"), ("key", "value"))
    assert written.rows == 2000
    table = sync.read_table("gathered", bootstrap_servers=broker.bootstrap_servers)
    assert sorted(table["value"].to_pylist()) == sorted(
        value.encode() for batch in given for value in batch["value"].to_pylist()
    )
    by_key = Counter((row["key"], row["partition"]) for row in table.select(["key", "partition"]).to_pylist())
    assert len(by_key) == 7
    for number in range(3):
        of_partition = table.filter(pc.equal(table["partition"], number)).sort_by("offset")["value"].to_pylist()
        assert of_partition == sorted(of_partition)


def test_a_task_without_rows_writes_none(broker: TestBroker) -> None:
    written = write_rows(iter([]), options_for(broker, "nothing"), ("value",))
    assert (written.rows, written.offsets) == (0, {})


def test_a_task_ends_without_waiting_for_batches_to_linger(broker: TestBroker) -> None:
    written = write_rows(iter([rows("a")]), options_for(broker, "hasty", linger_ms="3600000"), ("value",))
    assert written.rows == 1


def test_tasks_with_the_same_options_share_a_producer(broker: TestBroker) -> None:
    shared = ProducerPool()
    first = shared.get(options_for(broker, "one").producer)
    assert shared.get(options_for(broker, "another").producer) is first
    other = shared.get(options_for(broker, "one", linger_ms="5").producer)
    assert other is not first
    for one in ("0", "5"):
        shared.discard(options_for(broker, "one", linger_ms=one).producer)
    assert shared.get(options_for(broker, "one").producer) is not first
    shared.discard(options_for(broker, "one").producer)


def test_a_failed_task_leaves_nothing_to_the_next_one(broker: TestBroker) -> None:
    options = options_for(broker, "failing")

    def torn() -> Iterator[pa.RecordBatch]:
        yield rows("a")
        raise RuntimeError("the query before has failed")

    with pytest.raises(RuntimeError, match="the query before"):
        write_rows(torn(), options, ("value",))
    assert write_rows(iter([rows("b")]), options, ("value",)).rows == 1
    assert values(broker, "failing")[-1] == b"b"


def test_a_task_whose_rows_are_not_acknowledged_fails() -> None:
    with TestBroker() as broker:
        options = options_for(broker, "late", delivery_timeout_ms="500", request_timeout_ms="300")

        def stopped() -> Iterator[pa.RecordBatch]:
            # As many as are gathered before they are sent.
            yield rows(*["a"] * GATHERED_ROWS)
            broker.stop()
            yield rows("b")

        with pytest.raises(DeliveryTimedOutError, match="late"):
            write_rows(stopped(), options, ("value",))


def test_a_topic_that_is_not_there_is_named_within_seconds() -> None:
    with (
        TestBroker({"auto.create.topics.enable": "false"}) as broker,
        pytest.raises(UnknownTopicOrPartitionError, match="there is no topic 'nowhere'"),
    ):
        write_rows(iter([rows("a")]), options_for(broker, "nowhere"), ("value",))


def test_a_partition_that_is_not_there_is_named(broker: TestBroker) -> None:
    batch = pa.record_batch({"value": ["a"], "partition": pa.array([7], pa.int32())})
    with pytest.raises(UnknownTopicOrPartitionError, match=r"topic 'small' has .*, not 7"):
        write_rows(iter([batch]), options_for(broker, "small"), ("value", "partition"))


def test_a_row_without_a_topic_is_refused(broker: TestBroker) -> None:
    batch = pa.record_batch({"value": ["a", "b"], "topic": ["some", None]})
    with pytest.raises(ValueError, match=r"null topic: .* set option topic"):
        write_rows(iter([batch]), options_for(broker, None), ("value", "topic"))


def test_a_broker_that_cannot_be_reached_is_waited_for_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PATIENCE_SECONDS", 1.0)
    options = SinkOptions.parse({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "orders"})
    with pytest.raises(BrokerUnreachableError, match=r"cannot connect to 127\.0\.0\.1:1"):
        write_rows(iter([rows("a")]), options, ("value",))


def test_rows_whose_acknowledgement_was_lost_are_there_once(broker: TestBroker) -> None:
    with FaultProxy(broker.bootstrap_servers) as proxy:
        proxy.on("Produce", cut_reply(), nth=1)
        options = SinkOptions.parse({"kafka.bootstrap.servers": proxy.bootstrap_servers, "topic": "once"})
        assert write_rows(iter([rows("a", "b")]), options, ("value",)).rows == 2
    assert values(broker, "once") == [b"a", b"b"]
