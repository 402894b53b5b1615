"""Arguments and options that the group commands share or check by themselves."""

from collections.abc import Callable
from typing import Annotated

import typer


def _check_ids(names: list[str]) -> list[str]:
    if "" in names:
        raise typer.BadParameter("a group id must not be empty")
    return names


def _check_id(name: str) -> str:
    return _check_ids([name])[0]


Names = Annotated[list[str], typer.Argument(metavar="GROUP...", callback=_check_ids, help="One or more groups.")]
Name = Annotated[str, typer.Argument(metavar="GROUP", callback=_check_id)]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC[:0,1]", help="A topic, or some of its partitions; may be repeated."),
]

STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Stable", "Dead")
TYPES = ("classic", "consumer")


def one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    """Read one of these names, in whatever case it is typed."""
    by_lower = {name.lower(): name for name in names}

    def read(word: str) -> str:
        if word.lower() not in by_lower:
            raise typer.BadParameter(f"{word!r} is none of {', '.join(names)}")
        return by_lower[word.lower()]

    return read
