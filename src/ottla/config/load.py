"""A broker's start settings, from a file's text, the environment and `name=value` arguments. Later ones win.

The texts are handed in: whoever starts the broker reads the file.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from ottla.config.broker import BrokerConfig
from ottla.config.definition import nearest
from ottla.config.listener import general_name
from ottla.wire.errors import ErrorCode, KafkaError

PREFIX = "OTTLA_"
NOT_CONFIGS = frozenset(
    {"OTTLA_BOOTSTRAP", "OTTLA_COMMAND_CONFIG", "OTTLA_METRICS", "OTTLA_PASSWORD", "OTTLA_PURE_PYTHON"}
)
"""Variables of the environment that begin like configs and are for others."""

_SEPARATOR = re.compile(r"(?<!\\)(?:\s*[=:]\s*|\s+)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def load_broker_config(
    file_text: str = "",
    file_name: str = "broker.toml",
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Iterable[str] = (),
) -> BrokerConfig:
    """Put a broker's config together. A file whose name ends in `.properties` is read as Kafka's, others as TOML.

    >>> config = load_broker_config(
    ...     'log.segment.bytes = 1000', environment={"OTTLA_NUM_PARTITIONS": "3"}, overrides=["num.partitions=4"]
    ... )
    >>> config.log_segment_bytes, config.num_partitions
    (1000, 4)
    """
    parse_file = parse_properties if file_name.endswith(".properties") else parse_toml
    settings: dict[str, str] = {}
    for where, found in (
        (file_name, parse_file(file_text, file_name) if file_text else {}),
        ("the environment", parse_environment(environment or {})),
        ("the arguments", parse_overrides(overrides)),
    ):
        for name in found:
            if general_name(name, BrokerConfig.definitions) not in BrokerConfig.definitions:
                hint = nearest(name, BrokerConfig.definitions)
                _refuse(f"{where}: there is no broker config {name!r}{hint}")
        settings.update(found)
    return BrokerConfig(settings)


def parse_toml(text: str, file_name: str) -> dict[str, str]:
    """Settings from TOML, in tables or with dots in quoted names.

    >>> parse_toml('"log.segment.bytes" = 1\\n[log.flush.interval]\\nms = 50', "broker.toml")
    {'log.segment.bytes': '1', 'log.flush.interval.ms': '50'}
    """
    # Here, for those who have a file.
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        _refuse(f"{file_name} is not TOML: {error}")
    settings: dict[str, str] = {}
    _flatten("", document, settings, file_name)
    return settings


def _flatten(prefix: str, table: Mapping[str, Any], settings: dict[str, str], file_name: str) -> None:
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, dict):
            _flatten(name + ".", value, settings, file_name)
        elif name in settings:
            _refuse(f"{file_name}: {name} is there twice")
        else:
            settings[name] = _text_of(name, value, file_name)


def _text_of(name: str, value: object, file_name: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        _refuse(f"{file_name}: {name} = {value!r} is neither text, a number, true or false, nor a list of texts")
    return ",".join(value)


def parse_properties(text: str, file_name: str) -> dict[str, str]:
    """Settings from a Kafka-style file: `name=value`, `name: value` or `name value`, and comments with # or !.

    >>> parse_properties("# comment\\nlog.dirs = data\\nlisteners=A://:1,\\\\\\n  B://:2", "server.properties")
    {'log.dirs': 'data', 'listeners': 'A://:1,B://:2'}
    """
    settings: dict[str, str] = {}
    for line in _logical_lines(text):
        name, *rest = _SEPARATOR.split(line, maxsplit=1)
        settings[_unescape(name)] = _unescape(rest[0]) if rest else ""
    return settings


def _logical_lines(text: str) -> Iterable[str]:
    pending = ""
    for physical in text.splitlines():
        line = pending + physical.lstrip()
        pending = ""
        if not line or line[0] in "#!":
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
        else:
            yield line
    if pending:
        yield pending


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escaped = match[1]
        return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _ESCAPED.get(escaped, escaped)

    return _ESCAPE.sub(plain, text).strip()


def parse_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings from variables such as OTTLA_LOG_SEGMENT_BYTES.

    >>> parse_environment({"OTTLA_LOG_SEGMENT_BYTES": "1", "HOME": "/"})
    {'log.segment.bytes': '1'}
    """
    return {
        variable.removeprefix(PREFIX).lower().replace("_", "."): value
        for variable, value in environment.items()
        if variable.startswith(PREFIX) and variable not in NOT_CONFIGS
    }


def parse_overrides(arguments: Iterable[str]) -> dict[str, str]:
    """Settings from arguments of the form `name=value`.

    >>> parse_overrides(["log.segment.bytes=1"])
    {'log.segment.bytes': '1'}
    """
    settings = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals:
            _refuse(f"{argument!r} sets nothing; write it as NAME=VALUE")
        settings[name.strip()] = value.strip()
    return settings


def _refuse(message: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_CONFIG, message)
