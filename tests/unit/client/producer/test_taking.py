"""Records are taken the same way by the compiled taker and by its twin."""

import contextlib
import importlib
from types import ModuleType
from typing import Any

import pytest

from ottla.client.producer import _taking_twin
from ottla.client.producer._taking_types import Untaken
from ottla.record import BatchBuilder

MODULES = [_taking_twin]
with contextlib.suppress(ImportError):
    MODULES.append(importlib.import_module("ottla.client.producer._taking"))

each_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])


class Batch:
    """As much of a batch as a taker sees."""

    def __init__(self, max_size: int) -> None:
        self.append = BatchBuilder(max_size=max_size).append
        self.has_headers = False


class Queue:
    def __init__(self, batch: Batch | None) -> None:
        self.open = batch


class Routes:
    """A topic of two partitions; keys go to the second."""

    def __init__(self, *queues: Queue) -> None:
        self.topic = self
        self.leaders = dict(enumerate(queues))
        self.current: Queue | None = queues[0]

    def of(self, key: bytes | None, partition: int | None) -> Queue:
        return self.leaders[1 if partition is None else partition]


def taker(
    module: ModuleType,
    *batches: Batch | None,
    key_serializer: Any = None,
    value_serializer: Any = None,
    now: Any = None,
) -> Any:
    made = module.Taker(module.Receipt, key_serializer, value_serializer, now or (lambda: 1_700_000_000_000))
    if batches:
        made.routes = {"orders": Routes(*map(Queue, batches))}
    return made


@each_module
def test_a_record_goes_to_the_open_batch(module: ModuleType) -> None:
    first, second = Batch(1_000), Batch(1_000)
    one = taker(module, first, second, now=lambda: 17)
    receipts = [
        one.take("orders", b"value", None, None, None, None),
        one.take("orders", b"value", None, None, 18, None),
        one.take("orders", b"value", b"key", None, 19, [("name", b"x")]),
        one.take("orders", None, b"key", 0, 20, ()),
    ]
    assert [(receipt._batch, receipt._index, receipt._timestamp_ms) for receipt in receipts] == [
        (first, 0, 17),
        (first, 1, 18),
        (second, 0, 19),
        (first, 2, 20),
    ]
    assert (first.has_headers, second.has_headers) == (False, True)


@each_module
def test_what_finds_no_room_comes_back_serialized(module: ModuleType) -> None:
    full = Batch(100)
    one = taker(module, full, None, key_serializer=str.encode, value_serializer=str.encode, now=lambda: 17)
    assert one.take("orders", "first", None, None, None, None)._index == 0
    queues = one.routes["orders"].leaders
    assert one.take("orders", "x" * 90, None, None, None, None) == Untaken(
        queues[0], "orders", b"x" * 90, None, None, 17, ()
    )
    assert one.take("orders", "a", "key", None, 5, None) == Untaken(queues[1], "orders", b"a", b"key", None, 5, ())
    assert one.take("orders", "a", None, 7, 5, None) == Untaken(None, "orders", b"a", None, 7, 5, ())
    assert one.take("visits", "a", None, None, 5, None) == Untaken(None, "visits", b"a", None, None, 5, ())


@each_module
def test_what_is_not_bytes_is_copied_or_refused(module: ModuleType) -> None:
    one = taker(module)
    data = bytearray(b"value")
    taken = one.take("orders", data, memoryview(b"key"), None, 1, None)
    data[:] = b"other"
    assert (taken.value, taken.key) == (b"value", b"key")
    with pytest.raises(TypeError, match="the value is of type str, not bytes: encode it, or give value_serializer"):
        one.take("orders", "text", None, None, 1, None)
    wrong = taker(module, key_serializer=lambda key: 5)
    with pytest.raises(TypeError, match="key_serializer returned 5, an int; have it return bytes"):
        wrong.take("orders", b"", "key", None, 1, None)


@each_module
def test_a_timestamp_that_is_no_number_or_too_large_is_refused(module: ModuleType) -> None:
    one = taker(module, Batch(1_000), None)
    with pytest.raises(TypeError):
        one.take("orders", b"", None, None, "now", None)
    with pytest.raises(OverflowError):
        one.take("orders", b"", None, None, 2**63, None)
    assert one.take("orders", b"", None, None, 1, None)._index == 0, "nothing was taken before"
