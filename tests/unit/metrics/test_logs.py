"""Logs as JSON."""

import json
import logging
import sys

from ottla.metrics.logs import JsonFormatter


def _written(record: logging.LogRecord) -> dict[str, object]:
    text = JsonFormatter().format(record)
    assert "\n" not in text
    found: dict[str, object] = json.loads(text)
    return found


def _record(message: str, *arguments: object, **more: object) -> logging.LogRecord:
    logger = logging.getLogger("ottla.test")
    return logger.makeRecord(logger.name, logging.WARNING, __file__, 1, message, arguments, None, extra=dict(more))


def test_a_line_break_in_a_name_makes_no_second_line() -> None:
    assert _written(_record("topic %s", "a\nb"))["message"] == "topic a\nb"


def test_what_is_known_of_a_client_has_fields_of_its_own() -> None:
    written = _written(_record("closing", address="10.0.0.1:5", principal="User:alice", client_id=None))
    assert {name: written[name] for name in ("address", "principal", "client_id", "level", "logger")} == {
        "address": "10.0.0.1:5",
        "principal": "User:alice",
        "client_id": None,
        "level": "WARNING",
        "logger": "ottla.test",
    }


def test_an_exception_is_told_whole() -> None:
    record = _record("failed")
    try:
        raise ValueError("of this")
    except ValueError:
        record.exc_info = sys.exc_info()
    assert "ValueError: of this" in str(_written(record)["exception"])


def test_values_that_json_does_not_know_are_written_as_text() -> None:
    assert _written(_record("x", outcome=[b"bytes"]))["outcome"] == ["b'bytes'"]
