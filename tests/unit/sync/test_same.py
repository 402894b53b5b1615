"""The synchronous clients have what the others have: the same methods, parameters and results."""

import inspect
import typing
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import ottla
from ottla import sync
from ottla.client import producer as client_producer
from ottla.client.producer import arrow as client_arrow

PAIRS = [
    (ottla.Producer, sync.Producer),
    (ottla.Consumer, sync.Consumer),
    (ottla.Admin, sync.Admin),
]
CHANGED = {
    client_producer.Delivery: sync.Delivery,
    client_arrow.TableDelivery: sync.TableDelivery,
}
"""What comes back in another shape."""


def public(kind: type) -> dict[str, Any]:
    return {name: member for name, member in inspect.getmembers(kind) if not name.startswith("_")}


def hints(function: Callable[..., Any]) -> dict[str, Any]:
    # What modules import for type checkers only.
    return typing.get_type_hints(function, localns={"pa": pa, "TableDelivery": client_arrow.TableDelivery})


METHODS = [(one, other, name) for one, other in PAIRS for name, member in public(one).items() if callable(member)]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_both_have_the_same_names(one: type, other: type) -> None:
    assert public(one).keys() == public(other).keys()


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_both_are_made_with_the_same_arguments(one: type, other: type) -> None:
    assert inspect.signature(one) == inspect.signature(other)


@pytest.mark.parametrize(("one", "other", "name"), METHODS)
def test_both_have_the_same_parameters_and_results(one: type, other: type, name: str) -> None:
    method, same = getattr(one, name), getattr(other, name)
    assert not inspect.iscoroutinefunction(same)
    assert _shape(method) == _shape(same)
    expected = hints(method)
    got = hints(same)
    assert got == {**expected, "return": CHANGED.get(expected["return"], expected["return"])}


def test_a_topic_is_read_with_the_same_arguments() -> None:
    assert _shape(ottla.read_table) == _shape(sync.read_table)


def _shape(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]
