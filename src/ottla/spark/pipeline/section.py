"""Tables of a TOML file, read key by key. What is wrong names the key, and what to write instead."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any


class PipelineError(ValueError):
    """A pipeline's file asks for something that cannot be done."""


class Section:
    """A table of the file, and where it is.

    >>> Section({"topc": "orders"}, "sink[0]").finish({"topic"})
    Traceback (most recent call last):
    ottla.spark.pipeline.section.PipelineError: sink[0].topc: there is no such key; did you mean topic?
    """

    def __init__(self, table: Any, path: str) -> None:
        if not isinstance(table, Mapping):
            raise PipelineError(f"{path} is {table!r}; it must be a table, [{path}] and its keys below")
        self._table = table
        self.path = path

    def place(self, key: str) -> str:
        """What a key is called in messages."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._table

    def text(self, key: str, default: str | None = None) -> str | None:
        """A text that is not empty, or the default."""
        found = self._table.get(key, default)
        if found is not None and (not isinstance(found, str) or not found.strip()):
            raise self.error(key, f"is {found!r}; it must be a text")
        return found

    def needed_text(self, key: str, example: str) -> str:
        """A text that must be there."""
        found = self.text(key)
        if found is None:
            raise PipelineError(f"{self.place(key)} is missing; write {key} = {example}")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; one alone may stand without brackets."""
        found = self._table.get(key, [])
        found = [found] if isinstance(found, str) else found
        if not isinstance(found, list) or not all(isinstance(one, str) and one.strip() for one in found):
            raise self.error(key, f'is {found!r}; it must be a text, or a list such as ["a", "b"]')
        return tuple(found)

    def number(self, key: str, default: int) -> int:
        """A whole number of at least 1."""
        found = self._table.get(key, default)
        if isinstance(found, bool) or not isinstance(found, int) or found < 1:
            raise self.error(key, f"is {found!r}; it must be a whole number of at least 1")
        return found

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        found = self._table.get(key, default)
        if not isinstance(found, bool):
            raise self.error(key, f"is {found!r}; it must be true or false")
        return found

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """One of some words."""
        found = self._table.get(key, default)
        if found not in choices:
            raise self.error(key, f"is {found!r}; it must be one of {', '.join(choices)}")
        return str(found)

    def settings(self, key: str) -> dict[str, str]:
        """Names with values for others, as texts; a dotted name without quotes, which makes tables, is put together."""
        found = self._table.get(key, {})
        if not isinstance(found, Mapping):
            raise self.error(key, f"is {found!r}; it must be a table of names and values")
        return dict(_flatten(found, ""))

    def raw(self, key: str) -> Any:
        """Whatever is there."""
        return self._table.get(key)

    def section(self, key: str) -> "Section":
        """A table within; an empty one if there is none."""
        return Section(self._table.get(key, {}), self.place(key))

    def sections(self, key: str) -> list["Section"]:
        """The tables of a list, [[key]]."""
        found = self._table.get(key, [])
        if not isinstance(found, list):
            raise self.error(key, f"is {found!r}; it must be a list of tables, [[{key}]] before each")
        return [Section(table, f"{self.place(key)}[{index}]") for index, table in enumerate(found)]

    def one_of(self, keys: Sequence[str]) -> str:
        """Which of some keys is there; exactly one must be."""
        found = [key for key in keys if key in self._table]
        if len(found) != 1:
            has = " and ".join(found) or "none of them"
            raise PipelineError(f"{self.path} must have one of {', '.join(keys)}; it has {has}")
        return found[0]

    def finish(self, known: set[str]) -> None:
        """Complain about keys that nobody knows."""
        for key in self._table:
            if key not in known:
                like = get_close_matches(key, known, 1)
                advice = f"did you mean {like[0]}?" if like else f"there are {', '.join(sorted(known))}"
                raise PipelineError(f"{self.place(key)}: there is no such key; {advice}")

    def error(self, key: str, what: str) -> PipelineError:
        """An error that names a key."""
        return PipelineError(f"{self.place(key)} {what}")


def _flatten(table: Mapping[str, Any], prefix: str) -> Any:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, str(value).lower() if isinstance(value, bool) else str(value)
