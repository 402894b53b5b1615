"""Every public name has types and a docstring; every class and method one with an example, which the doctests run."""

import doctest
import enum
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import ottla
from ottla import errors, sync
from ottla.client import admin, producer

MODULES: tuple[Any, ...] = (ottla, sync, admin, producer)


def _public() -> Iterator[tuple[str, Any]]:
    for module in MODULES:
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found) or inspect.isfunction(found):
                yield f"{module.__name__}.{name}", found


def _members(name: str, kind: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties of a class that are written in Ottla."""
    if issubclass(kind, BaseException | enum.Enum):
        return
    for member, found in inspect.getmembers_static(kind):
        inner = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
        if inspect.isfunction(inner) and inner.__module__.startswith("ottla") and not member.startswith("_"):
            yield f"{name}.{member}", inner


NAMES: dict[str, Any] = dict(_public())
CLASSES: dict[str, Any] = {name: found for name, found in NAMES.items() if inspect.isclass(found)}
FUNCTIONS: dict[str, Any] = {name: found for name, found in NAMES.items() if inspect.isfunction(found)}
METHODS: dict[str, Any] = dict(member for name, kind in CLASSES.items() for member in _members(name, kind))
EXCEPTIONS: dict[str, Any] = {f"ottla.errors.{name}": getattr(errors, name) for name in errors.__all__}
# Enumerations and exceptions have the signatures of their bases.
CALLED = {
    **METHODS,
    **FUNCTIONS,
    **{name: kind for name, kind in CLASSES.items() if not issubclass(kind, enum.Enum | BaseException)},
}


def _named(names: dict[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("found", names.values(), ids=names)


@_named(NAMES | METHODS | EXCEPTIONS)
def test_it_has_a_docstring_of_its_own(found: Any) -> None:
    assert (found.__doc__ or "").strip()
    assert found.__doc__ not in {base.__doc__ for base in getattr(found, "__mro__", ())[1:]}


@_named(CLASSES | METHODS | FUNCTIONS | EXCEPTIONS)
def test_it_has_an_example_in_its_docstring(found: Any) -> None:
    assert doctest.DocTestParser().get_examples(found.__doc__)


@_named(CALLED)
def test_it_has_complete_types(found: Any) -> None:
    signature = inspect.signature(found)
    parameters = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    assert [one.name for one in parameters if one.annotation is inspect.Parameter.empty] == []
    assert inspect.isclass(found) or signature.return_annotation is not inspect.Signature.empty


def test_the_check_sees_what_is_there() -> None:
    assert {"ottla.Consumer.getmany", "ottla.sync.Producer.send", "ottla.Admin.create_topics"} <= METHODS.keys()
    assert {"ottla.read_table", "ottla.sync.read_table"} <= FUNCTIONS.keys()
