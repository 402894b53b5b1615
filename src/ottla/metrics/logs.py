"""Logs for people, and for programs: a JSON object a line, with client id, principal and address where they matter."""

import json
import logging
from datetime import UTC, datetime
from typing import Any, Literal

LogFormat = Literal["text", "json"]

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; anything else came with `extra`."""


class JsonFormatter(logging.Formatter):
    """Writes records as JSON, what came with `extra` in fields of its own.

    >>> record = logging.makeLogRecord({"name": "ottla.audit", "msg": "done", "levelname": "INFO", "created": 0.0})
    >>> record.principal = "User:alice"
    >>> JsonFormatter().format(record)
    '{"time": "1970-01-01T00:00:00.000+00:00", "level": "INFO", "logger": "ottla.audit", "message": "done", \
"principal": "User:alice"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the message has in it."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, Any] = {
            "time": time,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields.update((name, value) for name, value in vars(record).items() if name not in _USUAL)
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)


def write_logs(form: LogFormat, level: str) -> None:
    """Have everything logged to stderr from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level=level, handlers=[handler])
    # asyncio's own remarks are for those who work on programs.
    logging.getLogger("asyncio").setLevel(max(logging.INFO, logging.getLogger().level))
