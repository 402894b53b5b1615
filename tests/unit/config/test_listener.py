"""Listeners by name: what each is called, which protocol it speaks, and configs of its own."""

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.describe import describe_broker
from ottla.config.load import load_broker_config
from ottla.wire.errors import KafkaError


def refusal(settings: dict[str, str]) -> str:
    with pytest.raises(KafkaError) as caught:
        BrokerConfig(settings)
    return caught.value.message


def test_the_names_of_protocols_stand_for_themselves_and_others_are_mapped() -> None:
    assert BrokerConfig().listener_protocol("SASL_SSL") == "SASL_SSL"
    mapped = BrokerConfig({"listener.security.protocol.map": "clients:sasl_ssl, INSIDE:PLAINTEXT"})
    assert (mapped.listener_protocol("CLIENTS"), mapped.listener_protocol("INSIDE")) == ("SASL_SSL", "PLAINTEXT")
    with pytest.raises(KafkaError, match="has no protocol for listener SSL"):
        mapped.listener_protocol("SSL")


def test_a_map_to_what_is_no_protocol_is_refused() -> None:
    said = refusal({"listener.security.protocol.map": "CLIENTS:TLS"})
    assert "CLIENTS:TLS is no NAME:PROTOCOL; the protocols are PLAINTEXT, SSL" in said


def test_a_listener_has_its_own_value_or_the_general_one() -> None:
    settings = {
        "ssl.client.auth": "requested",
        "listener.name.clients.ssl.client.auth": "required",
        "listener.name.sasl_ssl.ssl.enabled.protocols": "TLSv1.3",
    }
    config = BrokerConfig(settings)
    assert config.of_listener("CLIENTS", "ssl.client.auth") == "required"
    assert config.of_listener("SASL_SSL", "ssl.client.auth") == "requested"
    assert config.of_listener("SASL_SSL", "ssl.enabled.protocols") == ("TLSv1.3",)
    assert config.of_listener("CLIENTS", "ssl.enabled.protocols") == ("TLSv1.2", "TLSv1.3")


@pytest.mark.parametrize(
    "name", ["listener.name.clients.log.dirs", "listener.name.clients", "listener.name.clients.ssl.nothing"]
)
def test_only_configs_of_security_can_be_a_listeners_own(name: str) -> None:
    assert f"there is no broker config {name!r}" in refusal({name: "x"})


def test_values_of_listeners_are_checked_like_the_general_ones() -> None:
    said = refusal({"listener.name.clients.ssl.client.auth": "perhaps"})
    assert said.startswith("listener.name.clients.ssl.client.auth = 'perhaps': must be one of none, requested")


def test_files_may_name_them() -> None:
    text = "listeners=CLIENTS://:9093\nlistener.name.clients.ssl.client.auth=required\n"
    config = load_broker_config(text, "server.properties")
    assert config.of_listener("CLIENTS", "ssl.client.auth") == "required"
    with pytest.raises(KafkaError, match=r"server.properties: there is no broker config 'listener.name.clients.x'"):
        load_broker_config("listener.name.clients.x=1", "server.properties")


def test_they_are_described_with_the_others_and_secrets_are_not() -> None:
    settings = {"listener.name.clients.ssl.client.auth": "required", "listener.name.clients.ssl.key.password": "hidden"}
    found = {entry.name: entry for entry in describe_broker(BrokerConfig(settings))}
    assert found["listener.name.clients.ssl.client.auth"].value == "required"
    assert found["listener.name.clients.ssl.key.password"].value is None
    assert found["ssl.client.auth"].value == "none"


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_stores_of_java_are_answered_with_how_to_convert_them(store: str) -> None:
    assert "keytool -importkeystore" in refusal({f"ssl.{store}.type": "JKS"})
    said = refusal({f"ssl.{store}.password": "hidden"})
    assert "PEM files have no password of their own" in said
    assert "hidden" not in said


def test_an_advertised_address_must_be_that_of_a_listener() -> None:
    config = BrokerConfig({"listeners": "SSL://:9093", "advertised.listeners": "broker-1:9092"})
    with pytest.raises(KafkaError, match="there is no listener PLAINTEXT, but SSL; write NAME://HOST:PORT"):
        config.advertised_addresses()
