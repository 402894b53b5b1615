"""Most records have small numbers and no headers, and the compiled kernels have loops for those alone. Whatever comes
between such records, and wherever it comes, both kernels say the same."""

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.record import _twin as twin
from tests.unit.record.samples import NOW, Fields, compiled, outcome
from tests.unit.record.test_kernels_columns import binary_column, header_column

needs_compiled = pytest.mark.skipif(compiled is None, reason="the compiled kernels were not built")

LARGEST = 2**63 - 1
EDGES = [2**6, 2**13, 2**18, 2**20]
"""Around these, numbers take a byte more, or are not small any more."""

usual: st.SearchStrategy[Fields] = st.tuples(
    st.integers(NOW, NOW + 100),
    st.none() | st.binary(max_size=12),
    st.none() | st.integers(0, 400).map(lambda size: b"v" * size),
    st.just([]),
)
unusual: st.SearchStrategy[Fields] = st.tuples(
    st.sampled_from([0, NOW, *(NOW + edge + by for edge in EDGES for by in (-1, 0, 1))]),
    st.none() | st.just(b"k" * 2**18),
    st.none() | st.sampled_from([*EDGES, *(edge - 1 for edge in EDGES)]).map(lambda size: b"w" * size),
    st.lists(st.tuples(st.just("h"), st.none() | st.just(b"a1")), max_size=2),
)
runs = st.lists(st.lists(usual, min_size=1, max_size=20) | st.lists(unusual, min_size=1, max_size=2), max_size=5)


def _fields(found: list[list[Fields]]) -> list[Fields]:
    return [fields for run in found for fields in run]


def _written(kernel: Any, fields: list[Fields], *, with_headers: bool, limit: int, base: int | None) -> Any:
    writer = kernel.RecordWriter(limit=limit, base_timestamp=base)
    columns: dict[str, Any] = {
        "value": binary_column([value for _, _, value, _ in fields]),
        "key": binary_column([key for _, key, _, _ in fields]),
        "timestamps": array("q", [timestamp for timestamp, *_ in fields]).tobytes(),
    }
    if with_headers:
        columns["headers"] = header_column([headers for *_, headers in fields], 0, False)
    added = writer.append_rows(0, len(fields), **columns)
    return added, bytes(writer.records()), writer.count, writer.max_timestamp, writer.last_offset_delta


@needs_compiled
@given(
    found=runs,
    with_headers=st.booleans(),
    limit=st.sampled_from([300, 5_000, 2**30]),
    base=st.sampled_from([None, NOW, 0, -1, LARGEST, -LARGEST - 1]),
)
def test_rows_are_written_the_same(found: list[list[Fields]], with_headers: bool, limit: int, base: int | None) -> None:
    fields = _fields(found)
    pair = [
        outcome(lambda kernel=kernel: _written(kernel, fields, with_headers=with_headers, limit=limit, base=base))  # type: ignore[misc]
        for kernel in (compiled, twin)
    ]
    assert pair[0] == pair[1]


def _read(kernel: Any, sections: list[tuple[bytes, int]], base: int, append_time: int | None, window: Any) -> Any:
    columns = kernel.Columns(*window[2])
    for number, (section, count) in enumerate(sections):
        columns.extend(section, count, number * 1000, base, append_time, window[0], window[1])
    return columns.finish(), [kernel.scan(section, count, gaps=True) for section, count in sections]


@needs_compiled
@given(
    found=st.lists(runs, min_size=1, max_size=3),
    base=st.sampled_from([NOW, 0, LARGEST - 2**21, LARGEST, -LARGEST - 1]),
    append_time=st.none() | st.just(NOW),
    window=st.tuples(
        st.sampled_from([0, 3, 1005]), st.sampled_from([LARGEST, 1007, 2003]), st.tuples(*[st.booleans()] * 4)
    ),
)
def test_records_are_read_the_same(
    found: list[list[list[Fields]]], base: int, append_time: int | None, window: Any
) -> None:
    sections = []
    for some in found:
        fields = _fields(some)
        _, section, count, *_ = _written(twin, fields, with_headers=True, limit=2**30, base=NOW)
        sections.append((section, count))
    pair = [
        outcome(lambda kernel=kernel: _read(kernel, sections, base, append_time, window))  # type: ignore[misc]
        for kernel in (compiled, twin)
    ]
    assert pair[0] == pair[1]


@needs_compiled
@given(found=runs, at=st.integers(0, 2**31), byte=st.integers(0, 255))
def test_what_is_broken_is_broken_in_the_same_way(found: list[list[Fields]], at: int, byte: int) -> None:
    _, section, count, *_ = _written(twin, _fields(found), with_headers=True, limit=2**30, base=NOW)
    broken = bytearray(section)
    if broken:
        broken[at % len(broken)] = byte
    pair = [
        outcome(lambda kernel=kernel: _read(kernel, [(bytes(broken), count)], NOW, None, (0, LARGEST, (1, 1, 1))))  # type: ignore[misc]
        for kernel in (compiled, twin)
    ]
    assert pair[0] == pair[1]


@needs_compiled
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("by", [-1, 0, 1])
def test_numbers_at_the_edges_are_written_the_same(edge: int, by: int) -> None:
    first: Fields = (NOW, None, b"first", [])
    others: list[Fields] = [
        (NOW + edge + by, None, b"late", []),
        (NOW - edge - by, None, b"early", []),
        (NOW, None, b"v" * (edge + by), []),
        (NOW, b"k" * (edge + by), None, []),
        # The body is of that size then.
        (NOW, None, b"v" * (edge + by - 8), []),
    ]
    for other in others:
        pair = [
            _written(kernel, [first, other, first], with_headers=False, limit=2**30, base=None)
            for kernel in (compiled, twin)
        ]
        assert pair[0] == pair[1]


@needs_compiled
def test_offsets_at_the_edges_are_written_the_same() -> None:
    fields: list[Fields] = [(NOW, None, None, [])] * (2**13 + 3)
    pair = [_written(kernel, fields, with_headers=False, limit=2**30, base=None) for kernel in (compiled, twin)]
    assert pair[0] == pair[1]
