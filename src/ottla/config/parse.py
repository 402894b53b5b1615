"""Config values from text and back to text."""

import math
from enum import IntEnum
from typing import NoReturn

from ottla.wire.errors import ErrorCode, KafkaError

Value = bool | int | float | str | tuple[str, ...] | frozenset[str] | None
"""What a config's text can mean. None: not set."""


class ConfigType(IntEnum):
    """What kind of text a config takes, as DescribeConfigs numbers them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_BOOLEANS = {"true": True, "false": False}


def refuse(name: str, text: str | None, complaint: str) -> NoReturn:
    """Raise INVALID_CONFIG, naming the config and the value."""
    raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} = {text!r}: {complaint}")


def parse(name: str, type: ConfigType, text: str) -> Value:
    """The value that a text stands for.

    >>> parse("segment.ms", ConfigType.LONG, " 604800000 ")
    604800000
    >>> parse("cleanup.policy", ConfigType.LIST, "compact, delete")
    ('compact', 'delete')
    >>> parse("segment.bytes", ConfigType.INT, "1 GB")
    Traceback (most recent call last):
        ...
    ottla.wire.errors.KafkaError: INVALID_CONFIG: segment.bytes = '1 GB': not a whole number; write digits only
    """
    text = text.strip()
    if type in _BITS:
        return _parse_whole(name, text, _BITS[type])
    if type is ConfigType.BOOLEAN:
        return _parse_boolean(name, text)
    if type is ConfigType.DOUBLE:
        return _parse_double(name, text)
    if type is ConfigType.LIST:
        return tuple(split_list(text))
    return text


def _parse_whole(name: str, text: str, bits: int) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        refuse(name, text, "not a whole number; write digits only")
    limit = 1 << bits - 1
    # No 64-bit number has more digits, and int() of a very long text is slow.
    if len(digits) > 20 or not -limit <= (value := int(text)) < limit:
        refuse(name, text, f"must lie between {-limit} and {limit - 1}")
    return value


def _parse_boolean(name: str, text: str) -> bool:
    value = _BOOLEANS.get(text.lower())
    if value is None:
        refuse(name, text, "must be true or false")
    return value


def _parse_double(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        refuse(name, text, "not a number; write one such as 0.5")
    if not math.isfinite(value):
        refuse(name, text, "must be a finite number")
    return value


def split_list(text: str) -> list[str]:
    """The parts of a list, which commas separate.

    >>> split_list(" a,b , "), split_list("")
    (['a', 'b'], [])
    """
    return [part for part in map(str.strip, text.split(",")) if part]


def render(value: Value) -> str | None:
    """The text of a value, as Kafka writes it.

    >>> render(True), render(0.5), render(("a", "b")), render(None)
    ('true', '0.5', 'a,b', None)
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    return str(value)
