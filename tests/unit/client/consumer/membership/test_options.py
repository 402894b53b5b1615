"""What can be wrong with the options of a group, told when the consumer is made."""

from typing import Any

import pytest

from ottla.client.consumer.membership import GroupOptions


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"group_id": ""}, "group_id is empty; give the group a name"),
        ({"group_protocol": "modern"}, "'modern'; it must be one of classic, consumer"),
        ({"group_instance_id": ""}, "group_instance_id is empty"),
        ({"partition_assignment_strategy": "range"}, "give a list of names"),
        ({"partition_assignment_strategy": []}, "give a list of names"),
        ({"partition_assignment_strategy": ["fair"]}, "no assignor is called 'fair'"),
        ({"partition_assignment_strategy": ["range", "range"]}, "twice: range, range"),
        ({"session_timeout_ms": 0}, "session_timeout_ms is 0; it must be at least 1"),
        ({"rebalance_timeout_ms": 0}, "rebalance_timeout_ms is 0; it must be at least 1"),
        ({"session_timeout_ms": 2**31}, "session_timeout_ms is 2147483648; it must be at most 2147483647"),
        ({"max_poll_interval_ms": 2**31}, "max_poll_interval_ms is 2147483648; it must be at most 2147483647"),
        ({"rebalance_timeout_ms": 2**31}, "rebalance_timeout_ms is 2147483648; it must be at most 2147483647"),
        ({"session_timeout_ms": 3000}, "heartbeat_interval_ms is 3000; it must be less than session_timeout_ms"),
    ],
)
def test_wrong_options_say_what_is_wrong_and_what_to_do(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        GroupOptions(**{"group_id": "billing", **options})


def test_a_member_is_cooperative_only_if_all_its_assignors_are() -> None:
    def is_cooperative(*names: str) -> bool:
        return GroupOptions(group_id="billing", partition_assignment_strategy=names).is_cooperative

    assert is_cooperative("cooperative-sticky")
    assert not is_cooperative("range", "cooperative-sticky")


def test_a_rebalance_may_take_as_long_as_the_user_may() -> None:
    assert GroupOptions(group_id="billing", max_poll_interval_ms=7).rebalance_patience_ms == 7
    assert GroupOptions(group_id="billing", rebalance_timeout_ms=9).rebalance_patience_ms == 9
