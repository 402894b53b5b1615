"""What users give, checked where it comes in: errors name the argument and say what to write."""

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any

from ottla.client.types import TopicPartition
from ottla.record._kernel_types import LARGEST_INT64


def shown(value: object) -> str:
    """A value with its type, as errors show it.

    >>> shown("5"), shown([1])
    ("'5', a str", '[1], a list')
    """
    if value is None:
        return "None"
    kind = type(value).__name__
    return f"{shortened(value)}, {'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def check_number(name: str, value: Any, least: float | None = None, most: int | None = None) -> None:
    """Refuse what is no number, too small or too large. Fractions are for those whose least value is a float.

    >>> check_number("batch_size", "16384", 1)
    Traceback (most recent call last):
    TypeError: batch_size is '16384', a str; give an int
    """
    fraction = isinstance(least, float)
    if not issubclass(type(value), Real if fraction else Integral):
        raise TypeError(f"{name} is {shown(value)}; give {'a number' if fraction else 'an int'}")
    if fraction and value != value:
        raise ValueError(f"{name} is {value!r}; give a number")
    if least is not None and not value >= least:
        raise ValueError(f"{name} is {value!r}; it must be at least {least:g}")
    if most is not None and not value <= most:
        raise ValueError(f"{name} is {value!r}; it must be at most {most}")


def check_numbers(options: object, least: Mapping[str, float]) -> None:
    """Refuse options that are no numbers, or too small."""
    for name, bound in least.items():
        check_number(name, getattr(options, name), bound)


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False.

    >>> check_flag("enable_auto_commit", "false")
    Traceback (most recent call last):
    TypeError: enable_auto_commit is 'false', a str; give True or False
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {shown(value)}; give True or False")


def check_text(name: str, value: object) -> None:
    """Refuse what is no text.

    >>> check_text("group_id", b"readers")
    Traceback (most recent call last):
    TypeError: group_id is b'readers', a bytes; give a str
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} is {shown(value)}; give a str")


def check_topic(topic: object) -> None:
    """Refuse what is not the name of one topic."""
    if not isinstance(topic, str):
        raise TypeError(f"topic is {shown(topic)}; give the name of one topic, a str")


def check_function(name: str, value: object, example: str) -> None:
    """Refuse what cannot be called, unless it is None.

    >>> check_function("value_serializer", "json", "str.encode")
    Traceback (most recent call last):
    TypeError: value_serializer is 'json', a str; give a function, such as str.encode
    """
    if value is not None and not callable(value):
        raise TypeError(f"{name} is {shown(value)}; give a function, such as {example}")


def check_serializers(key_serializer: object, value_serializer: object) -> None:
    """Refuse serializers that cannot be called, unless they are None."""
    check_function("key_serializer", key_serializer, "str.encode")
    check_function("value_serializer", value_serializer, "lambda value: json.dumps(value).encode()")


def place_of(value: Any, argument: str) -> TopicPartition:
    """A partition that the user has named, perhaps as a plain tuple.

    >>> place_of(("orders", 3), "partitions")
    TopicPartition(topic='orders', partition=3)
    >>> place_of("orders", "partitions")
    Traceback (most recent call last):
    TypeError: partitions has 'orders', a str; give a TopicPartition(topic, partition)
    """
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)):
        raise TypeError(f"{argument} has {shown(value)}; give a TopicPartition(topic, partition)")
    topic, partition = value
    check_number(f"the partition of {argument}", partition)
    return TopicPartition(topic, partition)


def check_record(topic: object, timestamp_ms: Any, headers: Iterable[Any]) -> None:
    """Say what is wrong with a record that could not be taken, if it is one of these."""
    check_topic(topic)
    check_number("timestamp_ms", timestamp_ms)
    if not -LARGEST_INT64 <= timestamp_ms <= LARGEST_INT64:
        raise ValueError(f"timestamp_ms is {timestamp_ms}; give milliseconds since 1970, which fit in 64 bits")
    for header in headers:
        if not isinstance(header, (tuple, list)) or len(header) != 2:
            raise TypeError(f"headers has {shown(header)}; give (name, value) pairs")
        name, value = header
        check_text("the name of a header", name)
        if value is not None and not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"the value of header {name!r} is {shown(value)}; give bytes or None")


def header_list(headers: Any) -> list[Any]:
    """Headers that are no list or tuple, as a list.

    >>> header_list({"trace": b"a1"})
    Traceback (most recent call last):
    TypeError: headers is {'trace': b'a1'}, a dict; give a list of (name, value) pairs
    """
    if isinstance(headers, (Mapping, str, bytes)) or not isinstance(headers, Iterable):
        raise TypeError(f"headers is {shown(headers)}; give a list of (name, value) pairs")
    return list(headers)


def as_bytes(data: object, what: str, serializer: object) -> bytes:
    """A key or value as bytes, copied if it might change."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    if serializer is not None:
        raise TypeError(f"{what}_serializer returned {shown(data)}; have it return bytes")
    hint = "encode it" if isinstance(data, str) else "make it bytes"
    raise TypeError(f"the {what} is of type {type(data).__name__}, not bytes: {hint}, or give {what}_serializer")
