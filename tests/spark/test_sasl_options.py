"""Logins as options of the source and the sink have them."""

import pickle

import pytest

from ottla.spark.options import SourceOptions
from ottla.spark.sink_options import SinkOptions

PACKAGE = "org.apache.kafka.common.security"
OPTIONS = {
    "kafka.bootstrap.servers": "broker-1:9093",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.jaas.config": f'{PACKAGE}.scram.ScramLoginModule required username="alice" password="wonder-4711";',
}


def test_source_and_sink_log_in_as_the_official_connector_does() -> None:
    source = SourceOptions.parse({**OPTIONS, "subscribe": "orders"}, streaming=False)
    sink = SinkOptions.parse({**OPTIONS, "topic": "orders"})
    for found in (source.client.security, sink.producer.security):
        assert (found.security_protocol, found.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
        assert (found.sasl_plain_username, found.sasl_plain_password) == ("alice", "wonder-4711")


def test_options_travel_to_tasks_and_do_not_show_passwords() -> None:
    source = SourceOptions.parse({**OPTIONS, "subscribe": "orders"}, streaming=True)
    assert pickle.loads(pickle.dumps(source)) == source
    assert "wonder-4711" not in repr(source)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("kafka.sasl.mechanism", "GSSAPI", "option kafka.sasl.mechanism is 'GSSAPI'"),
        ("kafka.sasl.mechanism", "PLAIN", "is for ScramLoginModule"),
        ("kafka.sasl.jaas.config", "wonder-4711", "option kafka.sasl.jaas.config cannot be read"),
    ],
)
def test_mistakes_are_told_when_the_query_is_made(name: str, value: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as refused:
        SourceOptions.parse({**OPTIONS, "subscribe": "orders", name: value}, streaming=False)
    assert "wonder-4711" not in str(refused.value)
