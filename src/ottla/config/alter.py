"""Changes to what is set for a topic or a broker, as IncrementalAlterConfigs and AlterConfigs ask for them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NoReturn

from ottla.config.definition import LIST, Configs
from ottla.config.parse import refuse, split_list
from ottla.wire.errors import ErrorCode, KafkaError


class AlterOperation(IntEnum):
    """What to do with a config, as IncrementalAlterConfigs numbers it."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Alteration:
    """One change: the operation's number as it came, and a value unless it deletes."""

    name: str
    operation: int
    value: str | None = None


def alter(
    configs: type[Configs],
    current: Mapping[str, str],
    alterations: Iterable[Alteration],
    effective: Callable[[str], str | None],
) -> dict[str, str]:
    """What is set after these changes; `effective` gives the text that a config has now, set or not.

    The caller checks the outcome as a whole by building a config of it.

    >>> from ottla.config.topic import TopicConfig
    >>> alter(TopicConfig, {}, [Alteration("cleanup.policy", AlterOperation.APPEND, "compact")], lambda name: "delete")
    {'cleanup.policy': 'delete,compact'}
    """
    result = dict(current)
    seen: set[str] = set()
    for change in alterations:
        if change.name in seen:
            _refuse_request(f"{change.name} is there twice; send one change per config")
        seen.add(change.name)
        _apply(configs, result, change, effective)
    return result


def _apply(
    configs: type[Configs], result: dict[str, str], change: Alteration, effective: Callable[[str], str | None]
) -> None:
    name = change.name
    if change.operation == AlterOperation.DELETE:
        # What an older version allowed and this one does not know can still be taken away.
        if result.pop(name, None) is None:
            configs.definition(name)
        return
    definition = configs.definition(name)
    if change.value is None:
        _refuse_request(f"{name} has no value; to go back to the default, delete it")
    text = change.value.strip()
    if change.operation in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
        if definition.type is not LIST:
            refuse(name, text, "is no list; only lists can be appended to or subtracted from")
        parts = split_list(result.get(name, effective(name)) or "")
        given = split_list(text)
        if change.operation == AlterOperation.APPEND:
            parts += [part for part in given if part not in parts]
        else:
            parts = [part for part in parts if part not in given]
        text = ",".join(parts)
    elif change.operation != AlterOperation.SET:
        _refuse_request(f"{name}: there is no operation {change.operation}; set is 0, delete 1, append 2, subtract 3")
    definition.value(text)
    result[name] = text


def replace_all(configs: type[Configs], entries: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """What is set after the older AlterConfigs, which names everything and removes the rest.

    >>> from ottla.config.topic import TopicConfig
    >>> replace_all(TopicConfig, [("retention.ms", " 1000 ")])
    {'retention.ms': '1000'}
    """
    changes = [Alteration(name, AlterOperation.SET, value) for name, value in entries]
    return alter(configs, {}, changes, lambda name: None)


def _refuse_request(message: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REQUEST, message)
