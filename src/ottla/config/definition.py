"""How configs are declared: one attribute each, whose name with dots is Kafka's name.

>>> from ottla.config.check import at_least
>>> class ExampleConfig(Configs):
...     segment_bytes: int = option(INT, 1024, "Size at which a segment is full.", at_least(14))
>>> ExampleConfig.definitions["segment.bytes"].default
1024
>>> ExampleConfig.definitions["segment.bytes"].value("7")
Traceback (most recent call last):
    ...
ottla.wire.errors.KafkaError: INVALID_CONFIG: segment.bytes = '7': must be at least 14
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, ClassVar, NoReturn, TypeVar, cast

from ottla.config.check import Check
from ottla.config.parse import ConfigType, Value, parse, refuse, render
from ottla.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")

BOOLEAN, STRING, INT, SHORT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.SHORT
LONG, DOUBLE, LIST, CLASS, PASSWORD = (
    ConfigType.LONG,
    ConfigType.DOUBLE,
    ConfigType.LIST,
    ConfigType.CLASS,
    ConfigType.PASSWORD,
)


class ConfigSource(IntEnum):
    """Where a config's value comes from, as DescribeConfigs numbers it."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker config that a topic config falls back to, and what to multiply its number with."""

    name: str
    factor: int = 1

    def convert(self, value: Value) -> Value:
        """The broker config's value as one of the topic config."""
        if self.factor == 1 or not isinstance(value, int):
            return value
        # Kafka's -1 hours mean no limit, as -1 milliseconds do.
        return value * self.factor if value >= 0 else value


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """One config: its name, what it takes, and what it means."""

    name: str
    type: ConfigType
    default: Value
    documentation: str
    check: Check | None = None
    synonyms: tuple[Synonym, ...] = ()
    dynamic: bool = False

    @property
    def attribute(self) -> str:
        """The name as Python spells it."""
        return self.name.replace(".", "_")

    @property
    def sensitive(self) -> bool:
        """Whether the value is never shown."""
        return self.type is PASSWORD

    @property
    def default_text(self) -> str | None:
        """The default as text; None if the config has none."""
        return render(self.default)

    def value(self, text: str) -> Value:
        """Parse and check a text; INVALID_CONFIG if it will not do."""
        value = parse(self.name, self.type, text)
        if self.check is not None and (complaint := self.check(value)) is not None:
            refuse(self.name, "***" if self.sensitive else text.strip(), complaint)
        return frozenset(cast("tuple[str, ...]", value)) if isinstance(self.default, frozenset) else value


def option(
    type: ConfigType,
    default: T,
    documentation: str,
    check: Check | None = None,
    *,
    synonyms: tuple[Synonym, ...] = (),
    dynamic: bool = False,
) -> T:
    """Declare a config in the body of a `Configs` class.

    A list whose default is a frozenset has no order. A dynamic broker config may be changed while the broker runs.
    """
    # The attribute holds a value of the declared type in every instance; the definition moves to `definitions`.
    return cast(T, ConfigDefinition("", type, cast(Value, default), documentation, check, synonyms, dynamic))


class Configs:
    """An immutable set of typed values, one per declared config."""

    definitions: ClassVar[Mapping[str, ConfigDefinition]] = {}
    kind: ClassVar[str] = "config"

    def __init_subclass__(cls) -> None:
        found = {name: one for base in cls.__bases__ for name, one in getattr(base, "definitions", {}).items()}
        for attribute, declared in list(vars(cls).items()):
            if isinstance(declared, ConfigDefinition):
                definition = replace(declared, name=attribute.replace("_", "."))
                found[definition.name] = definition
                delattr(cls, attribute)
        cls.definitions = found

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed; build a new one")

    @classmethod
    def definition(cls, name: str) -> ConfigDefinition:
        """The definition of a config; INVALID_CONFIG with the nearest name if there is none."""
        found = cls.definitions.get(name)
        if found is None:
            message = f"there is no {cls.kind} config {name!r}{nearest(name, cls.definitions)}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)
        return found

    @classmethod
    def checked(cls, texts: Mapping[str, str]) -> dict[str, Value]:
        """The values of some texts by attribute; INVALID_CONFIG if a name is unknown or a text will not do."""
        values = {}
        for name, text in texts.items():
            definition = cls.definition(name)
            values[definition.attribute] = definition.value(text)
        return values


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint at the name that was probably meant, for the end of a message, or nothing.

    >>> nearest("log.segment.byte", ["log.dirs", "log.segment.bytes"])
    "; did you mean 'log.segment.bytes'?"
    """
    found = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
    return f"; did you mean {found[0]!r}?" if found else ""
