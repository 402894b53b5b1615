from typing import Any

import pytest

from ottla.wire.api.describe_cluster import DescribeClusterRequest
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker

UNKNOWN_OPERATIONS = -(2**31)


def describe(small: SmallBroker, version: int = 2, **changes: Any) -> Any:
    return small.ask(DescribeClusterRequest(**changes), version)


@pytest.mark.parametrize("version", range(3))
def test_every_version_tells_the_brokers_and_the_controller(small: SmallBroker, version: int) -> None:
    answer = describe(small, version)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert (answer.cluster_id, answer.controller_id) == (small.broker.image.cluster_id, 1)
    (node,) = answer.brokers
    assert (node.broker_id, node.host, node.port, node.rack) == (1, "localhost", 9092, "rack-a")
    assert answer.cluster_authorized_operations == UNKNOWN_OPERATIONS


def test_authorized_operations_are_told_if_asked_for(small: SmallBroker) -> None:
    operations = describe(small, include_cluster_authorized_operations=True).cluster_authorized_operations
    assert [bit for bit in range(32) if operations & 1 << bit] == [5, 7, 8, 9, 10, 11, 12]


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE), (9, 115)],
)
def test_only_brokers_can_be_asked_for(small: SmallBroker, endpoint_type: int, code: int) -> None:
    answer = describe(small, endpoint_type=endpoint_type)
    assert answer.error_code == code
    assert answer.error_message
    assert answer.brokers == []
