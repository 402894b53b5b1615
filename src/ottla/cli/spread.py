"""Options that several commands share, written once: as dataclasses, whose fields are the options."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

Command = Callable[..., None]


def spread(command: Command) -> Command:
    """Have a command that takes dataclasses take their fields as options instead.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Where:
    ...     bootstrap: str = "localhost:9092"
    >>> @spread
    ... def show(name: str, where: Where) -> None:
    ...     print(name, "at", where.bootstrap)
    >>> print(inspect.signature(show))
    (*, name: str, bootstrap: str = 'localhost:9092') -> None
    >>> show(name="orders", bootstrap="broker-1:9092")
    orders at broker-1:9092
    """
    parts: dict[str, Any] = {name: kind for name, kind in get_type_hints(command).items() if is_dataclass(kind)}
    if not parts:
        return command

    @wraps(command)
    def run(**arguments: Any) -> None:
        gathered = {
            name: kind(**{one.name: arguments.pop(one.name) for one in fields(kind)}) for name, kind in parts.items()
        }
        command(**arguments, **gathered)

    parameters: list[inspect.Parameter] = []
    for one in options_of(command):
        parameters += _fields(parts[one.name]) if one.name in parts else [one]
    take_options(run, parameters)
    return run


def options_of(command: Command) -> list[inspect.Parameter]:
    """The parameters of a command, each with the option that it is."""
    hints = get_type_hints(command, include_extras=True)
    return [one.replace(annotation=hints[one.name]) for one in inspect.signature(command).parameters.values()]


def _fields(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        for one in fields(kind)
    ]


def take_options(command: Command, parameters: Iterable[inspect.Parameter]) -> None:
    """Have a function that takes any keywords show these parameters, in which typer finds the options."""
    shown = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    signature = inspect.Signature(shown, return_annotation=None)
    setattr(command, "__signature__", signature)  # noqa: B010
    command.__annotations__ = {one.name: one.annotation for one in shown}
