import pytest

from ottla.wire.api.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker


def ask(
    small: SmallBroker, epoch: int, *, topic: str = "orders", index: int = 0, current: int = -1, version: int = 4
) -> tuple[int, int, int]:
    asked = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
    body = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])
    (answered,) = small.ask(body, version).topics
    (result,) = answered.partitions
    assert (answered.topic, result.partition) == (topic, index)
    return result.error_code, result.leader_epoch, result.end_offset


@pytest.fixture
def terms(small: SmallBroker) -> SmallBroker:
    """Epoch 0 wrote five records, epoch 2 three, epoch 3 is on and has written nothing yet."""
    small.create("orders")
    partition = small.broker.leader("orders", 0)
    small.append("orders", count=5)
    partition.leader_epoch = 2
    small.append("orders", count=3)
    partition.leader_epoch = 3
    return small


@pytest.mark.parametrize("version", range(5))
def test_every_version_tells_where_a_term_ended(terms: SmallBroker, version: int) -> None:
    assert ask(terms, 0, version=version) == (0, 0 if version >= 1 else -1, 5)


@pytest.mark.parametrize(
    ("epoch", "found"),
    [
        pytest.param(1, (0, 5), id="an epoch in which nothing was written answers the one before it"),
        pytest.param(2, (2, 8), id="the last that wrote ends at the end of the log"),
        pytest.param(3, (3, 8), id="the one that is on ends at the end of the log"),
        pytest.param(4, (-1, -1), id="an epoch to come is not known"),
        pytest.param(-1, (-1, -1), id="no epoch is not known"),
    ],
)
def test_terms_and_their_ends(terms: SmallBroker, epoch: int, found: tuple[int, int]) -> None:
    assert ask(terms, epoch) == (0, *found)


def test_an_empty_partition_knows_the_term_that_is_on(small: SmallBroker) -> None:
    small.create("orders")
    assert ask(small, 0) == (0, 0, 0)


@pytest.mark.parametrize(
    ("current", "code"),
    [(3, 0), (2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_client_that_believes_in_another_leader_is_told(terms: SmallBroker, current: int, code: int) -> None:
    error, epoch, offset = ask(terms, 0, current=current)
    assert error == code
    assert (epoch, offset) == ((0, 5) if code == 0 else (-1, -1))


@pytest.mark.parametrize(("topic", "index"), [("orders", 1), ("nothing", 0)])
def test_an_unknown_partition_is_an_error(terms: SmallBroker, topic: str, index: int) -> None:
    assert ask(terms, 0, topic=topic, index=index) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
