"""What a producer can be told, and what not."""

from typing import Any

import pytest

from ottla import sync
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
        (
            {"compression_type": "gzip", "compression_level": 10},
            "compression_level is 10: gzip level 10 is not within 1 to 9",
        ),
        ({"compression_level": 3}, "compression_level is 3: none has no compression levels"),
        ({"linger_ms": -1}, "linger_ms is -1; it must be at least 0"),
        ({"batch_size": 0}, "batch_size is 0; it must be at least 1"),
        ({"batch_size": 2000, "max_request_size": 1000}, "batch_size is 2000, above max_request_size = 1000"),
        ({"partitioner": "random"}, "partitioner is 'random'; it must be a function or one of murmur2"),
        ({"bootstrap_servers": ""}, "'' is no address"),
        ({"bootstrap_servers": "http://127.0.0.1:9092"}, "'http://127.0.0.1:9092' is no address; write HOST:PORT"),
        ({"request_timeout_ms": 0}, "request_timeout_ms is 0"),
        ({"linger_ms": float("nan")}, "linger_ms is nan"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_options_that_make_no_sense_are_refused_when_the_producer_is_made(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Producer(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"linger_ms": "5"}, "linger_ms is '5', a str; give a number"),
        ({"batch_size": 1.5}, "batch_size is 1.5, a float; give an int"),
        ({"request_timeout_ms": "30000"}, "request_timeout_ms is '30000', a str; give an int"),
        ({"compression_type": "gzip", "compression_level": "3"}, "compression_level is '3', a str; give an int"),
        ({"enable_idempotence": "false"}, "enable_idempotence is 'false', a str; give True or False"),
        ({"acks": [1]}, r"acks is \[1\], a list; give 'all', 1 or 0"),
        ({"client_id": 5}, "client_id is 5, an int; give a str"),
        ({"value_serializer": "json"}, "value_serializer is 'json', a str; give a function, such as lambda"),
        ({"key_serializer": "utf-8"}, "key_serializer is 'utf-8', a str; give a function, such as str.encode"),
        ({"bootstrap_servers": None}, "bootstrap_servers is None; give 'HOST:PORT'"),
        ({"bootstrap_servers": b"localhost:9092"}, "bootstrap_servers is b'localhost:9092', a bytes"),
        ({"bootstrap_servers": [("localhost", 9092)]}, r"has \('localhost', 9092\), a tuple; write each address as"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
@pytest.mark.parametrize("kind", [Producer, sync.Producer], ids=["asyncio", "sync"])
def test_options_of_another_type_are_refused_by_name(kind: type[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        kind(**options)


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


def test_records_that_are_not_numbered_for_too_many_requests_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    ProducerOptions(max_in_flight_requests_per_connection=5)
    ProducerOptions(max_in_flight_requests_per_connection=7, acks=1)
    ProducerOptions(max_in_flight_requests_per_connection=7, enable_idempotence=False)
    assert not caplog.records
    ProducerOptions(max_in_flight_requests_per_connection=7)
    assert "max_in_flight_requests_per_connection is 7: above 5 records may be stored twice" in caplog.text
