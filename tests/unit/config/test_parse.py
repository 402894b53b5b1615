"""Config values from text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.listener import ListenerAddress, parse_listener
from ottla.config.parse import ConfigType, Value, parse, render
from ottla.wire.errors import ErrorCode, KafkaError


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        (ConfigType.BOOLEAN, "true", True),
        (ConfigType.BOOLEAN, " FALSE ", False),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "1e-3", 0.001),
        (ConfigType.LIST, "", ()),
        (ConfigType.LIST, "a, b,,c", ("a", "b", "c")),
        (ConfigType.STRING, " x y ", "x y"),
        (ConfigType.PASSWORD, "secret", "secret"),
    ],
)
def test_a_text_is_read_as_its_type(type: ConfigType, text: str, value: Value) -> None:
    assert parse("name", type, text) == value


@pytest.mark.parametrize(
    ("type", "text", "complaint"),
    [
        (ConfigType.BOOLEAN, "yes", "must be true or false"),
        (ConfigType.INT, "", "not a whole number"),
        (ConfigType.INT, "1.5", "not a whole number"),
        (ConfigType.INT, "1_000", "not a whole number"),
        (ConfigType.INT, "٣", "not a whole number"),
        (ConfigType.INT, "--1", "not a whole number"),
        (ConfigType.SHORT, "32768", "between -32768 and 32767"),
        (ConfigType.INT, "2147483648", "between -2147483648 and 2147483647"),
        (ConfigType.LONG, "9" * 10_000, "must lie between"),
        (ConfigType.DOUBLE, "half", "not a number"),
        (ConfigType.DOUBLE, "nan", "finite"),
        (ConfigType.DOUBLE, "inf", "finite"),
    ],
)
def test_a_text_that_will_not_do_is_named_with_its_config(type: ConfigType, text: str, complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint) as caught:
        parse("some.config", type, text)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert caught.value.message.startswith(f"some.config = {text!r}: ")


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_survive_the_way_to_text_and_back(number: int) -> None:
    assert parse("name", ConfigType.LONG, render(number) or "") == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_fractions_survive_the_way_to_text_and_back(number: float) -> None:
    assert parse("name", ConfigType.DOUBLE, render(number) or "") == number


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("PLAINTEXT://:9092", ListenerAddress("PLAINTEXT", "", 9092)),
        ("external://broker.example:0", ListenerAddress("EXTERNAL", "broker.example", 0)),
        ("127.0.0.1:65535", ListenerAddress("PLAINTEXT", "127.0.0.1", 65535)),
        ("SSL://[::]:9093", ListenerAddress("SSL", "::", 9093)),
    ],
)
def test_a_listener_is_read_and_written(text: str, address: ListenerAddress) -> None:
    assert parse_listener("listeners", text) == address
    assert parse_listener("listeners", str(address)) == address


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("localhost", "has no port"),
        ("PLAINTEXT://localhost", "has no port"),
        ("PLAINTEXT://[::1]", "has no port"),
        ("localhost:", "is no port"),
        ("localhost:65536", "is no port"),
        ("localhost:x", "is no port"),
        ("localhost:-1", "is no port"),
        ("::1:9092", "in brackets"),
        ("://localhost:1", "has no name"),
    ],
)
def test_a_malformed_listener_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint):
        parse_listener("listeners", text)
