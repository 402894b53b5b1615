"""Addresses in configs."""

import pytest

from ottla.config.address import parse_limits
from ottla.config.broker import BrokerConfig
from ottla.wire.errors import KafkaError


def test_limits_by_address_are_read_in_any_form_of_an_address() -> None:
    config = BrokerConfig({"max.connections.per.ip.overrides": "10.0.0.7:200, [::1]:0, 0:0:0:0:0:0:0:2:3"})
    assert parse_limits(config.max_connections_per_ip_overrides) == {"10.0.0.7": 200, "::1": 0, "::2": 3}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("10.0.0.7", "'10.0.0.7' has no address before its last colon"),
        ("here:3", "'here:3' has no address before its last colon"),
        ("10.0.0.7:many", "'10.0.0.7:many' ends in no number"),
        ("10.0.0.7:-1", "'10.0.0.7:-1' ends in no number"),
        ("::1:3,0:0:0:0:0:0:0:1:4", "::1 is there twice"),
    ],
)
def test_limits_that_make_no_sense_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(KafkaError) as caught:
        BrokerConfig({"max.connections.per.ip.overrides": text})
    assert complaint in caught.value.message
