"""Rows of columns that are written in an order of the caller's choice."""

from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.record import _twin as twin
from ottla.wire.errors import EncodeError
from tests.unit.record.samples import NOW, Fields, compiled, outcome, section_of, some_fields
from tests.unit.record.test_kernels import LARGEST, each_kernel, needs_compiled
from tests.unit.record.test_kernels_columns import GOOD, binary_column, header_column


def chosen(rows: Sequence[int]) -> bytes:
    return array("q", rows).tobytes()


@each_kernel
@given(fields=some_fields, before=st.integers(0, 9), wide=st.booleans(), data=st.data())
def test_selected_rows_are_written_like_the_same_records_in_that_order(
    kernel: Any, fields: list[Fields], before: int, wide: bool, data: Any
) -> None:
    timestamps, keys, values, headers = (list(column) for column in zip(*fields, strict=True))
    rows = data.draw(st.lists(st.integers(0, len(fields) - 1), min_size=1, max_size=20))
    arguments = {
        "value": binary_column(values, before=before, wide=wide),
        "key": binary_column(keys, before=3, wide=not wide),
        "headers": header_column(headers, before, wide),
        "timestamps": array("q", timestamps).tobytes(),
        "selection": chosen(rows),
    }
    writer = kernel.RecordWriter()
    middle = len(rows) // 2
    assert writer.append_rows(0, middle, **arguments) == middle
    assert writer.append_rows(middle, len(rows), **arguments) == len(rows) - middle
    assert bytes(writer.records()) == section_of([fields[row] for row in rows], kernel)


@each_kernel
def test_a_full_batch_stops_within_the_selection_and_the_next_goes_on_there(kernel: Any) -> None:
    column = binary_column([bytes([row]) * 30 for row in range(10)])
    selection = chosen([9, 7, 5, 3, 1])
    found, turn = [], 0
    while turn < 5:
        writer = kernel.RecordWriter(limit=80)
        added = writer.append_rows(turn, 5, column, selection=selection)
        assert added == writer.count == (2 if turn < 4 else 1)
        found += [record.value[0] for record in kernel.read(writer.records(), added, 0, 0)]
        turn += added
    assert found == [9, 7, 5, 3, 1]


BAD_SELECTIONS: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "a row after the last": (EncodeError, r"no such row \(row 3\)", {"selection": chosen([0, 3])}),
    "a negative row": (EncodeError, r"no such row \(row -1\)", {"selection": chosen([0, -1])}),
    "the largest row": (EncodeError, f"no such row .row {LARGEST}.", {"selection": chosen([0, LARGEST])}),
    "a row that the shortest column does not have": (
        EncodeError,
        r"no such row \(row 2\)",
        {"selection": chosen([1, 2]), "key": binary_column([b"a", b"b"])},
    ),
    "a row that has no timestamp": (
        EncodeError,
        r"no such row \(row 1\)",
        {"selection": chosen([0, 1]), "timestamps": chosen([NOW])},
    ),
    "a row that has no headers": (
        EncodeError,
        r"no such row \(row 2\)",
        {"selection": chosen([0, 2]), "headers": header_column([[], []], 0, False)},
    ),
    "fewer rows than asked for": (
        IndexError,
        "the selection holds 1 rows and 2 are wanted",
        {"selection": chosen([0, 1])[:15]},
    ),
    "a row whose offsets lead astray": (
        EncodeError,
        r"the key's offsets point outside the column's data \(row 2\)",
        {"selection": chosen([1, 2]), "key": GOOD._replace(data=b"one")},
    ),
    "something that is not bytes": (TypeError, "bytes-like", {"selection": [0, 1]}),
}


@each_kernel
@pytest.mark.parametrize("name", BAD_SELECTIONS)
def test_a_selection_that_the_columns_cannot_satisfy_is_refused(kernel: Any, name: str) -> None:
    kind, reason, arguments = BAD_SELECTIONS[name]
    with pytest.raises(kind, match=reason):
        kernel.RecordWriter().append_rows(0, 2, GOOD, **arguments)


@needs_compiled
@given(st.lists(st.integers(-1, 3), min_size=2, max_size=4), st.integers(0, 3), st.integers(0, 5))
def test_both_kernels_answer_a_selection_in_the_same_way(rows: list[int], start: int, stop: int) -> None:
    writers = [kernel.RecordWriter(limit=30) for kernel in (compiled, twin)]
    first, second = (
        outcome(lambda writer=writer: writer.append_rows(start, stop, GOOD, selection=chosen(rows)))  # type: ignore[misc]
        for writer in writers
    )
    assert first == second
    assert bytes(writers[0].records()) == bytes(writers[1].records())
