import pytest

from ottla.log.checkpoint import read_marks
from ottla.wire.api.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker


def delete(small: SmallBroker, offset: int, topic: str = "orders", index: int = 0, version: int = 2) -> tuple[int, int]:
    asked = DeleteRecordsPartition(partition_index=index, offset=offset)
    body = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[asked])], timeout_ms=1000)
    (answered,) = small.ask(body, version).topics
    (result,) = answered.partitions
    assert (answered.name, result.partition_index) == (topic, index)
    return result.error_code, result.low_watermark


@pytest.mark.parametrize("version", range(3))
def test_every_version_deletes_and_answers_where_the_partition_begins(small: SmallBroker, version: int) -> None:
    small.create("orders")
    small.append("orders", count=10)
    assert delete(small, 4, version=version) == (0, 4)
    assert small.broker.leader("orders", 0).log.start_offset == 4


def test_minus_one_deletes_up_to_the_high_watermark(small: SmallBroker) -> None:
    small.create("orders")
    small.append("orders", count=10)
    assert delete(small, -1) == (0, 10)


def test_records_that_are_gone_already_can_be_deleted_again(small: SmallBroker) -> None:
    small.create("orders")
    small.append("orders", count=10)
    delete(small, 6)
    assert delete(small, 2) == (0, 6)


@pytest.mark.parametrize(
    ("topic", "index", "offset", "code"),
    [
        ("orders", 0, 11, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("orders", 0, -2, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("orders", 1, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nothing", 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("table", 0, 0, ErrorCode.POLICY_VIOLATION),
        ("__consumer_offsets", 0, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_cannot_be_deleted_says_why(
    small: SmallBroker, topic: str, index: int, offset: int, code: ErrorCode
) -> None:
    small.create("orders")
    small.append("orders", count=10)
    small.create("table", cleanup_policy="compact")
    small.create("__consumer_offsets")
    assert delete(small, offset, topic, index) == (code, -1)


def test_a_compacted_topic_that_also_deletes_lets_records_go(small: SmallBroker) -> None:
    small.create("table", cleanup_policy="compact,delete")
    small.append("table", count=3)
    assert delete(small, 2, "table") == (0, 2)


def test_what_was_answered_is_known_to_a_broker_that_starts_after_a_crash(small: SmallBroker) -> None:
    small.create("orders")
    small.append("orders", count=10)
    assert delete(small, 4) == (0, 4)
    marks = read_marks(small.broker.disk)
    assert marks is not None
    assert marks["orders-0"].start_offset == 4
