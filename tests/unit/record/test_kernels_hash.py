"""Hashes of keys: both kernels, and what others make of the same keys."""

import warnings
import zlib
from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.record import _twin as twin
from ottla.record._kernel_types import BinaryColumn
from ottla.wire.errors import EncodeError
from tests.unit.record.samples import compiled, outcome
from tests.unit.record.test_kernels import each_kernel, needs_compiled
from tests.unit.record.test_kernels_columns import BAD_ROWS, GOOD, binary_column

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    from kafka.partitioner import murmur2 as kafka_python_murmur2

# From Kafka's own tests of its hash.
KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}

some_keys = st.lists(st.none() | st.binary(max_size=70), max_size=20)
each_method = pytest.mark.parametrize("method", ["murmur2_rows", "crc32_rows"])


def numbers(hashes: bytearray) -> list[int]:
    return array("I", hashes).tolist()


@each_kernel
def test_murmur2_gives_the_values_that_kafka_tests_for(kernel: Any) -> None:
    for key, expected in KNOWN.items():
        assert kernel.murmur2(key) == expected & 0xFFFFFFFF


@each_kernel
@given(key=st.binary(max_size=100))
@example(key=b"")
@example(key=b"\xff" * 7)
def test_murmur2_agrees_with_kafka_python(kernel: Any, key: bytes) -> None:
    assert kernel.murmur2(key) == kafka_python_murmur2(key)
    assert kernel.murmur2(memoryview(b"-" + key)[1:]) == kernel.murmur2(bytearray(key)) == kernel.murmur2(key)


@each_kernel
def test_only_bytes_have_a_hash(kernel: Any) -> None:
    with pytest.raises(TypeError):
        kernel.murmur2("kafka")
    with pytest.raises(TypeError):
        kernel.murmur2(None)


@each_kernel
@given(keys=some_keys, before=st.integers(0, 9), wide=st.booleans(), data=st.data())
def test_the_hashes_of_rows_are_those_of_their_keys_and_0_for_null(
    kernel: Any, keys: Sequence[bytes | None], before: int, wide: bool, data: Any
) -> None:
    column = binary_column(keys, before=before, wide=wide)
    start = data.draw(st.integers(0, len(keys)))
    stop = data.draw(st.integers(start, len(keys)))
    chosen = keys[start:stop]
    assert numbers(kernel.murmur2_rows(column, start, stop)) == [
        0 if key is None else twin.murmur2(key) for key in chosen
    ]
    assert numbers(kernel.crc32_rows(column, start, stop)) == [0 if key is None else zlib.crc32(key) for key in chosen]


@each_kernel
@each_method
def test_a_column_without_nulls_needs_no_validity(kernel: Any, method: str) -> None:
    column = binary_column([b"a", b"b"])
    assert getattr(kernel, method)(column, 0, 2) == getattr(kernel, method)(column._replace(validity=None), 0, 2)


@each_kernel
@each_method
def test_rows_that_are_no_range_are_refused(kernel: Any, method: str) -> None:
    for start, stop in ((-1, 2), (2, 1)):
        with pytest.raises(IndexError, match="are not a range"):
            getattr(kernel, method)(GOOD, start, stop)
    with pytest.raises(IndexError, match="the column has 3 rows and 4 are wanted"):
        getattr(kernel, method)(GOOD, 0, 4)


BAD_COLUMNS: dict[str, BinaryColumn] = {
    name: arguments["value"] for name, (_, arguments) in BAD_ROWS.items() if arguments["value"] is not GOOD
}


@needs_compiled
@each_method
@pytest.mark.parametrize("name", BAD_COLUMNS)
def test_both_kernels_refuse_a_column_that_contradicts_itself_in_the_same_words(method: str, name: str) -> None:
    column = BAD_COLUMNS[name]
    first = outcome(lambda: getattr(compiled, method)(column, 0, 3))
    assert first == outcome(lambda: getattr(twin, method)(column, 0, 3))
    assert first[0] in ("EncodeError", "IndexError")


@each_kernel
def test_the_row_whose_offsets_lead_astray_is_named(kernel: Any) -> None:
    with pytest.raises(EncodeError, match=r"the key's offsets point outside the column's data \(row 2\)"):
        kernel.murmur2_rows(GOOD._replace(data=b"one"), 0, 3)
