import pytest

from ottla.wire.api.list_config_resources import ListConfigResourcesRequest
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ([], [(TOPIC, "orders"), (BROKER, "1")]),
        ([TOPIC], [(TOPIC, "orders")]),
        ([BROKER, BROKER], [(BROKER, "1")]),
        ([BROKER_LOGGER, CLIENT_METRICS, GROUP], []),
    ],
)
def test_resources_are_listed_by_type(small: SmallBroker, asked: list[int], found: list[tuple[int, str]]) -> None:
    small.create("orders")
    answer = small.ask(ListConfigResourcesRequest(resource_types=asked), 1)
    assert answer.error_code == 0
    assert [(each.resource_type, each.resource_name) for each in answer.config_resources] == found


def test_version_zero_lists_client_metrics_only(small: SmallBroker) -> None:
    small.create("orders")
    answer = small.ask(ListConfigResourcesRequest(), 0)
    assert (answer.error_code, answer.config_resources) == (0, [])


def test_a_type_that_is_not_known_is_refused(small: SmallBroker) -> None:
    answer = small.ask(ListConfigResourcesRequest(resource_types=[TOPIC, 3]), 1)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
