"""What a producer can be told, and what not."""

from typing import Any

import pytest

from ottla.client.producer import Producer
from ottla.client.producer.options import ProducerOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"acks": 2}, "acks is 2; it must be 'all', 1 or 0"),
        ({"acks": "most"}, "acks is 'most'; it must be"),
        ({"enable_idempotence": True, "acks": 1}, "enable_idempotence needs acks='all'"),
        ({"enable_idempotence": True, "max_in_flight_requests_per_connection": 6}, "at most 5 requests in flight"),
        ({"compression_type": "brotli"}, "compression_type is 'brotli'; it must be None or one of"),
        ({"compression_type": "gzip", "compression_level": 10}, "gzip level 10 is not within 1 to 9"),
        ({"compression_level": 3}, "none has no compression levels"),
        ({"linger_ms": -1}, "linger_ms is -1; it must be at least 0"),
        ({"batch_size": 0}, "batch_size is 0; it must be at least 1"),
        ({"batch_size": 2000, "max_request_size": 1000}, "batch_size is 2000, above max_request_size = 1000"),
        ({"partitioner": "random"}, "partitioner is 'random'; it must be a function or one of murmur2"),
        ({"bootstrap_servers": ""}, "'' is no address"),
        ({"request_timeout_ms": 0}, "request_timeout_ms is 0"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_options_that_make_no_sense_are_refused_when_the_producer_is_made(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Producer(**options)


@pytest.mark.parametrize(
    ("options", "idempotent"),
    [
        ({}, True),
        ({"acks": -1}, True),
        ({"acks": 1}, False),
        ({"acks": 0}, False),
        ({"max_in_flight_requests_per_connection": 10}, False),
        ({"enable_idempotence": False}, False),
        ({"enable_idempotence": True}, True),
    ],
    ids=str,
)
def test_records_are_stored_once_wherever_the_other_options_let_it(options: dict[str, Any], idempotent: bool) -> None:
    assert ProducerOptions(**options).idempotent is idempotent
