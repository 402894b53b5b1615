"""Records as text: kcat's format strings, and JSON lines that `ottla produce --json` reads back."""

import base64
import binascii
import difflib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.client.types import ConsumerRecord

Writer = Callable[[ConsumerRecord], bytes]

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}
_TIMESTAMP_TYPES = {0: "create", 1: "append"}
_JSON_NAMES = ("key", "value", "headers", "partition", "timestamp", "topic", "offset", "timestamp_type")
"""All that `json_writer` writes; a new record has no use for the last three."""


def unescape(text: str) -> str:
    r"""Resolve backslashes as kcat does.

    >>> unescape(r"a\tb\x2c")
    'a\tb,'
    """

    def resolve(match: re.Match[str]) -> str:
        found = match[1]
        if found.startswith("x") and len(found) == 3:
            return chr(int(found[1:], 16))
        return _ESCAPES.get(found, match[0])

    return _ESCAPE.sub(resolve, text)


_TOKENS: dict[str, Writer] = {
    "s": lambda record: record.value or b"",
    "S": lambda record: b"%d" % (-1 if record.value is None else len(record.value)),
    "R": lambda record: (-1 if record.value is None else len(record.value)).to_bytes(4, "big", signed=True),
    "k": lambda record: record.key or b"",
    "K": lambda record: b"%d" % (-1 if record.key is None else len(record.key)),
    "T": lambda record: b"%d" % record.timestamp,
    "h": lambda record: b",".join(b"%b=%b" % (name.encode(), value or b"") for name, value in record.headers),
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "%": lambda record: b"%",
}


def text_writer(template: str) -> Writer:
    r"""A function that writes records by a format string, with kcat's tokens.

    `%s` value, `%S` its length, `%R` its length as four bytes, `%k` key, `%K` its length, `%T` timestamp, `%h`
    headers, `%t` topic, `%p` partition, `%o` offset.

    >>> text_writer(r"%p/%o %k: %s\n")(ConsumerRecord("t", 0, 7, 1, 0, b"key", b"value", ()))
    b'0/7 key: value\n'
    """
    parts: list[bytes | Writer] = []
    # `%` and a letter at odd places, what stands between at even ones.
    for number, piece in enumerate(re.split(r"%(.)", template, flags=re.DOTALL)):
        if number % 2 == 0:
            parts.append(unescape(piece).encode())
        elif piece in _TOKENS:
            parts.append(_TOKENS[piece])
        else:
            raise ValueError(f"%{piece} is unknown; there are {' '.join('%' + token for token in _TOKENS)}")

    def write(record: ConsumerRecord) -> bytes:
        return b"".join([part if isinstance(part, bytes) else part(record) for part in parts])

    return write


def json_writer(record: ConsumerRecord) -> bytes:
    r"""A record as a line of JSON. Bytes that are no UTF-8 stand as `{"base64": "..."}`.

    >>> json_writer(ConsumerRecord("t", 0, 7, 5, 0, None, b"\xff", [("a", b"b")]))
    b'{"topic": "t", "partition": 0, "offset": 7, "timestamp": 5, "timestamp_type": "create", "headers": [["a", "b"]], "key": null, "value": {"base64": "/w=="}}\n'
    """  # noqa: E501
    line = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": _TIMESTAMP_TYPES.get(record.timestamp_type, "none"),
        "headers": [[name, _to_json(value)] for name, value in record.headers],
        "key": _to_json(record.key),
        "value": _to_json(record.value),
    }
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _to_json(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


class NewRecord(NamedTuple):
    """A record that is to be produced."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


def read_json(line: bytes) -> NewRecord:
    """Read a line of JSON: `value`, and as wanted `key`, `headers`, `partition`, `timestamp`.

    Headers are a list of pairs or an object. A value that is no string is sent as JSON. What else `json_writer` writes
    is ignored; other names are refused, since a record without its value would be a tombstone.

    >>> read_json(b'{"key": "k", "value": {"n": 1}, "headers": {"a": "b"}, "offset": 17}')
    NewRecord(value=b'{"n": 1}', key=b'k', headers=[('a', b'b')], partition=None, timestamp_ms=None)
    """
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError('a line must be an object such as {"key": "k", "value": "v"}')
    for name in fields:
        if name not in _JSON_NAMES:
            raise ValueError(_unknown(name))
    headers = fields.get("headers") or []
    if isinstance(headers, dict):
        headers = list(headers.items())
    if not isinstance(headers, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in headers
    ):
        raise ValueError('headers must be an object or a list of ["name", "value"] pairs')
    return NewRecord(
        _from_json(fields.get("value")),
        _from_json(fields.get("key")),
        [(name, _from_json(value)) for name, value in headers],
        _integer(fields, "partition"),
        _timestamp(fields),
    )


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name.lower(), _JSON_NAMES, 1)
    advice = f"did you mean {close[0]!r}" if close else f"there are {', '.join(_JSON_NAMES)}"
    return f"{name!r} is unknown; {advice}"


def _from_json(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error as error:
            raise ValueError(f"no base64: {error}") from None
    return json.dumps(value, ensure_ascii=False).encode()


def _integer(fields: dict[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    return value


def _timestamp(fields: dict[str, Any]) -> int | None:
    # -1 is how a record of the oldest format, which has no timestamp, was printed.
    found = _integer(fields, "timestamp")
    return None if found is not None and found < 0 else found
