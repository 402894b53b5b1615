"""The kernels that gather records into columns, and write rows of columns."""

from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.record import _twin as twin
from ottla.record._kernel_types import LONGEST_INLINE, BinaryColumn, HeaderColumn
from ottla.wire.errors import EncodeError, ProtocolError
from tests.unit.record.samples import (
    EXAMPLE,
    NOW,
    Fields,
    compiled,
    gather,
    outcome,
    plain,
    section_of,
    some_fields,
    values_seen,
)

needs_compiled = pytest.mark.skipif(compiled is None, reason="the compiled kernels were not built")
each_kernel = pytest.mark.parametrize(
    "kernel", [pytest.param(compiled, id="compiled", marks=needs_compiled), pytest.param(twin, id="twin")]
)
LARGEST = 2**63 - 1


@needs_compiled
@given(st.lists(some_fields, min_size=1, max_size=4), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_both_kernels_gather_the_same_columns(
    sections: list[list[Fields]], keys: bool, values: bool, headers: bool, views: bool
) -> None:
    pair = [kernel.Columns(keys, values, headers, views) for kernel in (compiled, twin)]
    for base, fields in enumerate(sections):
        section = section_of(fields)
        for columns in pair:
            columns.extend(section, len(fields), base * 100, fields[0][0], None, 2, 305)
    first, second = (columns.finish() for columns in pair)
    assert first == second


@each_kernel
@given(fields=some_fields)
def test_columns_hold_each_record_in_its_row(kernel: Any, fields: list[Fields]) -> None:
    columns = gather(kernel, section_of(fields), len(fields), 40, fields[0][0])
    assert columns.rows == len(fields)
    assert array("q", columns.offsets).tolist() == list(range(40, 40 + len(fields)))
    assert array("q", columns.timestamps).tolist() == [timestamp for timestamp, *_ in fields]
    assert cells(columns.key) == [key for _, key, _, _ in fields]
    assert cells(columns.value) == [value for _, _, value, _ in fields]
    bounds = array("i", columns.headers.offsets)
    pairs = list(zip(cells(columns.headers.keys), cells(columns.headers.values), strict=True))
    for row, (*_, headers) in enumerate(fields):
        assert pairs[bounds[row] : bounds[row + 1]] == [(key.encode(), value) for key, value in headers]


def cells(column: BinaryColumn) -> list[bytes | None]:
    bounds = array("i", column.offsets)
    return [
        None
        if column.validity is not None and not column.validity[row // 8] >> row % 8 & 1
        else bytes(column.data[bounds[row] : bounds[row + 1]])
        for row in range(column.length)
    ]


LENGTHS = (0, 1, LONGEST_INLINE, LONGEST_INLINE + 1, 300)


@each_kernel
@pytest.mark.parametrize("headers", [[], [("a", b"1")]], ids=["usual", "with headers"])
def test_views_show_values_where_they_are_and_short_ones_themselves(kernel: Any, headers: list[Any]) -> None:
    values = [None, *(b"x" * length for length in LENGTHS)]
    sections = [section_of([(NOW, b"k", value, headers) for value in some]) for some in (values, values[::-1])]
    columns = kernel.Columns(views=True)
    for section in sections:
        columns.extend(section, len(values), 0, NOW)
    found = columns.finish().value
    assert values_seen(found) == values + values[::-1]
    assert [bytes(source) for source in found.sources] == sections
    assert len(found.views) == 16 * found.length


@each_kernel
def test_what_views_point_into_stays_where_it_is(kernel: Any) -> None:
    section = bytearray(section_of([(NOW, None, bytes(100), [])]))
    columns = kernel.Columns(views=True)
    columns.extend(section, 1, 0, NOW)
    with pytest.raises(BufferError):
        section.clear()
    del columns
    section.clear()


@each_kernel
def test_a_malformed_section_leaves_the_columns_as_they_were(kernel: Any) -> None:
    good = section_of(EXAMPLE)
    columns = kernel.Columns()
    columns.extend(good, 4, 0, NOW)
    with pytest.raises(ProtocolError):
        columns.extend(good[:-1], 4, 4, NOW)
    with pytest.raises(ProtocolError):
        columns.extend(good, 4, LARGEST - 1, NOW)
    columns.extend(good, 4, 4, NOW)
    expected = kernel.Columns()
    expected.extend(good, 4, 0, NOW)
    expected.extend(good, 4, 4, NOW)
    assert columns.finish() == expected.finish()
    assert columns.rows == 0


@each_kernel
def test_rows_outside_the_wanted_offsets_are_left_out(kernel: Any) -> None:
    columns = kernel.Columns()
    assert columns.extend(section_of(EXAMPLE), 4, 10, NOW, None, 11, 13) == 2
    found = columns.finish()
    assert array("q", found.offsets).tolist() == [11, 12]
    assert cells(found.key) == [None, b""]
    assert cells(found.headers.keys) == [b"trace", "ünïcode".encode(), b""]


def test_headers_that_int32_offsets_cannot_address_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the twin alone: there is no memory for so many headers of which only the number matters."""
    columns = twin.Columns()
    section = section_of(EXAMPLE)
    assert columns._headers is not None
    monkeypatch.setattr(columns._headers.keys, "rows", 2**31 - 1)
    with pytest.raises(OverflowError, match="the headers might pass"):
        columns.extend(section, len(EXAMPLE), 0, 0)


# ---- columns in ----


def binary_column(values: Sequence[bytes | None], *, before: int = 0, wide: bool = False) -> BinaryColumn:
    """Arrow's layout of these values, after `before` entries that belong to no row."""
    entries = [*[b"junk"] * before, *values]
    offsets, validity, data = array("q" if wide else "i", [0]), bytearray((len(entries) + 7) // 8), b""
    for row, value in enumerate(entries):
        if value is not None:
            validity[row // 8] |= 1 << row % 8
            data += value
        offsets.append(len(data))
    return BinaryColumn(len(values), bytes(validity), offsets.tobytes(), data, before, wide)


def header_column(lists: list[list[tuple[str, bytes | None]]], before: int, wide: bool) -> HeaderColumn:
    flat = [header for headers in lists for header in headers]
    offsets = array("q" if wide else "i", [0] * (before + 1))
    for headers in lists:
        offsets.append(offsets[-1] + len(headers))
    return HeaderColumn(
        len(lists),
        None,
        offsets.tobytes(),
        binary_column([key.encode() for key, _ in flat], before=before, wide=wide),
        binary_column([value for _, value in flat], wide=not wide),
        before,
        wide,
    )


@each_kernel
@given(fields=some_fields, before=st.integers(0, 9), wide=st.booleans())
def test_rows_of_columns_are_written_like_the_same_records(
    kernel: Any, fields: list[Fields], before: int, wide: bool
) -> None:
    timestamps, keys, values, headers = (list(column) for column in zip(*fields, strict=True))
    writer = kernel.RecordWriter()
    arguments = {
        "value": binary_column(values, before=before, wide=wide),
        "key": binary_column(keys, before=3, wide=not wide),
        "headers": header_column(headers, before, wide),
        "timestamps": array("q", timestamps).tobytes(),
    }
    middle = len(fields) // 2
    assert writer.append_rows(0, middle, **arguments) == middle
    assert writer.append_rows(middle, len(fields), **arguments) == len(fields) - middle
    assert bytes(writer.records()) == section_of(fields, kernel)
    assert writer.max_timestamp == max(timestamps)


@each_kernel
def test_rows_without_other_columns_get_a_null_key_and_the_given_timestamp(kernel: Any) -> None:
    writer = kernel.RecordWriter()
    assert writer.append_rows(1, 3, binary_column([b"a", b"b", None]), timestamp=NOW) == 2
    found = kernel.read(writer.records(), 2, 0, writer.base_timestamp)
    assert [plain(record) for record in found] == [(0, NOW, None, b"b", []), (1, NOW, None, None, [])]


@needs_compiled
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=200), st.integers(1, 4000))
def test_both_kernels_take_the_same_rows_up_to_the_limit(values: list[bytes | None], limit: int) -> None:
    results = []
    for kernel in (compiled, twin):
        writer = kernel.RecordWriter(limit)
        taken = writer.append_rows(0, len(values), binary_column(values))
        assert taken == writer.count >= 1
        assert writer.size <= limit or taken == 1
        results.append((taken, bytes(writer.records())))
    assert results[0] == results[1]


GOOD = binary_column([b"one", None, b"three"])
BAD_ROWS: dict[str, tuple[type[Exception], dict[str, Any]]] = {
    "offsets of the value past its data": (EncodeError, {"value": GOOD._replace(data=b"one")}),
    "offsets of the value that go back": (
        EncodeError,
        {"value": GOOD._replace(offsets=array("i", [0, 3, 3, 1]).tobytes())},
    ),
    "negative offsets of the key": (
        EncodeError,
        {"value": GOOD, "key": GOOD._replace(offsets=array("i", [-9, 3, 3, 8]).tobytes())},
    ),
    "fewer offsets than rows": (IndexError, {"value": GOOD._replace(offsets=bytes(12))}),
    "fewer rows than asked for": (IndexError, {"value": GOOD._replace(length=2)}),
    "less validity than rows": (IndexError, {"value": GOOD._replace(start=9, offsets=bytes(80))}),
    "a negative start": (IndexError, {"value": GOOD._replace(start=-1)}),
    "a start from which the rows pass 64 bits": (IndexError, {"value": GOOD._replace(start=LARGEST - 2)}),
    "a start that would pass 64 bits with one row more": (IndexError, {"value": GOOD._replace(start=LARGEST - 3)}),
    "a negative number of header keys": (
        IndexError,
        {"value": GOOD, "headers": header_column([[], [], []], 0, False)._replace(keys=GOOD._replace(length=-1))},
    ),
    "fewer timestamps than rows": (IndexError, {"value": GOOD, "timestamps": bytes(16)}),
    "timestamps too far apart": (
        EncodeError,
        {"value": GOOD, "timestamps": array("q", [LARGEST, -2, 0]).tobytes()},
    ),
    "a null header key": (
        EncodeError,
        {
            "value": GOOD,
            "headers": header_column([[], [("a", None)], []], 0, False)._replace(keys=binary_column([None])),
        },
    ),
    "header lists past the headers": (
        EncodeError,
        {
            "value": GOOD,
            "headers": header_column([[], [], []], 0, False)._replace(offsets=array("i", [0, 0, 0, 1]).tobytes()),
        },
    ),
}


@each_kernel
@pytest.mark.parametrize("name", BAD_ROWS)
def test_columns_that_contradict_themselves_are_refused(kernel: Any, name: str) -> None:
    kind, arguments = BAD_ROWS[name]
    with pytest.raises(kind):
        kernel.RecordWriter().append_rows(0, 3, **arguments)


@needs_compiled
@pytest.mark.parametrize("name", BAD_ROWS)
def test_both_kernels_refuse_columns_in_the_same_words(name: str) -> None:
    _, arguments = BAD_ROWS[name]
    writers = [kernel.RecordWriter() for kernel in (compiled, twin)]
    first = outcome(lambda: writers[0].append_rows(0, 3, **arguments))
    second = outcome(lambda: writers[1].append_rows(0, 3, **arguments))
    assert first == second
    assert bytes(writers[0].records()) == bytes(writers[1].records())


@each_kernel
def test_rows_after_the_last_possible_offset_are_refused(kernel: Any) -> None:
    writer = kernel.RecordWriter()
    assert writer.append(NOW, None, b"v", (), 2**31 - 2) == 2**31 - 2
    with pytest.raises(EncodeError, match=r"at its last possible offset, 2\*\*31 - 1 past the first \(row 1\)"):
        writer.append_rows(0, 3, GOOD)
    assert (writer.count, writer.last_offset_delta) == (2, 2**31 - 1)
    assert [record.offset for record in kernel.read(writer.records(), 2, 0, NOW)] == [2**31 - 2, 2**31 - 1]


@each_kernel
def test_a_range_of_rows_must_be_one(kernel: Any) -> None:
    for start, stop in ((-1, 2), (2, 1)):
        with pytest.raises(IndexError, match="are not a range"):
            kernel.RecordWriter().append_rows(start, stop, GOOD)
