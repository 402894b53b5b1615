"""What configs are: whose they are, where their values come from, and how they are changed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple


class ConfigResourceType(IntEnum):
    """What configs belong to.

    >>> ConfigResourceType["TOPIC"].value
    2
    """

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a config's value comes from.

    >>> print(ConfigSource(5))
    DEFAULT_CONFIG
    """

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8

    def __str__(self) -> str:
        return self.name


class ConfigType(IntEnum):
    """What kind of value a config has.

    >>> ConfigType(7).name
    'LIST'
    """

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class AlterConfigOp(IntEnum):
    """What to do with a config: set it, put it back to its default, or add to or take from a list.

    >>> ConfigResource("topic", "orders", {"cleanup.policy": (AlterConfigOp.APPEND, "compact")}).name
    'orders'
    """

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


Change = str | None | tuple[AlterConfigOp | str, str | None]
"""A new value; None for the default; or what to do with a value, as in `("append", "compact")`."""


def read_change(name: str, change: object) -> tuple[AlterConfigOp, str | None]:
    """What to do with a config, and the value.

    >>> read_change("cleanup.policy", ("append", "compact"))
    (<AlterConfigOp.APPEND: 2>, 'compact')
    >>> read_change("retention.ms", 60000)
    Traceback (most recent call last):
    TypeError: retention.ms is to become 60000; give text, None for its default, or a pair (operation, text)
    """
    if change is None:
        return AlterConfigOp.DELETE, None
    if isinstance(change, str):
        return AlterConfigOp.SET, change
    if not isinstance(change, tuple) or len(change) != 2:
        hint = "give text, None for its default, or a pair (operation, text)"
        raise TypeError(f"{name} is to become {change!r}; {hint}")
    operation, value = change
    if isinstance(operation, str):
        if operation.upper() not in AlterConfigOp.__members__:
            names = ", ".join(one.name.lower() for one in AlterConfigOp)
            raise ValueError(f"operation {operation!r} on {name} is none of {names}")
        operation = AlterConfigOp[operation.upper()]
    return operation, None if operation is AlterConfigOp.DELETE else value


@dataclass(frozen=True, slots=True, init=False)
class ConfigResource:
    """A topic by its name or a broker by its id, and what to look at or change of its configs.

    An empty name stands for all brokers. `configs` are names for `describe_configs`, all if there are none; and names
    with new values for `alter_configs`. Resources of the same type and name are equal, whatever their configs.

    >>> ConfigResource("topic", "orders", ["retention.ms"]) == ConfigResource(ConfigResourceType.TOPIC, "orders")
    True
    """

    resource_type: ConfigResourceType
    name: str
    configs: Mapping[str, Change] | Collection[str] | None = field(compare=False)

    def __init__(
        self,
        resource_type: ConfigResourceType | str,
        name: str | int,
        configs: Mapping[str, Change] | Collection[str] | None = None,
    ) -> None:
        if isinstance(resource_type, str):
            names = ", ".join(one.name.lower() for one in ConfigResourceType if one)
            if resource_type.upper() not in ConfigResourceType.__members__:
                raise ValueError(f"resource_type is {resource_type!r}; it is one of {names}")
            resource_type = ConfigResourceType[resource_type.upper()]
        of_broker = resource_type in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
        if of_broker and name != "" and not str(name).isdecimal():
            raise ValueError(f"broker {name!r} is no broker id; give a number, or '' for all brokers")
        object.__setattr__(self, "resource_type", resource_type)
        object.__setattr__(self, "name", str(name))
        object.__setattr__(self, "configs", configs)

    @property
    def node_id(self) -> int | None:
        """The broker that must be asked itself, if there is one.

        >>> ConfigResource("broker", "3").node_id
        3
        """
        of_broker = self.resource_type in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
        return int(self.name) if of_broker and self.name else None

    def __str__(self) -> str:
        return f"{self.resource_type.name.lower()} {self.name!r}"


class ConfigSynonym(NamedTuple):
    """Where else a config's value could come from; the first that is set counts.

    >>> ConfigSynonym("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG).value
    '168'
    """

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A config with its value.

    >>> run(lambda admin: admin.create_topics(["orders"]))
    >>> orders = ConfigResource("topic", "orders")
    >>> entry = run(lambda admin: admin.describe_configs([orders]))[orders]["retention.ms"]
    >>> entry.value, entry.config_type.name, entry.is_default
    ('604800000', 'LONG', True)
    """

    name: str
    value: str | None
    """None if it is sensitive, or has none."""
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    config_type: ConfigType
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str | None

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it.

        >>> broker = ConfigResource("broker", "1", ["num.partitions"])
        >>> run(lambda admin: admin.describe_configs([broker]))[broker]["num.partitions"].is_default
        True
        """
        return self.source is ConfigSource.DEFAULT_CONFIG
