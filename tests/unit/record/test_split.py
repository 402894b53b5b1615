"""Which rows of a table go to which partition."""

import zlib
from collections import defaultdict
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.record.batch import Batch, records
from ottla.record.build import BatchBuilder
from ottla.record.columns import row_columns
from ottla.record.kernels import murmur2
from ottla.record.split import key_partitions, rows_by_partition
from ottla.wire.errors import EncodeError

some_keys = st.lists(st.none() | st.binary(max_size=12), max_size=60)
KINDS = [pa.binary(), pa.string(), pa.large_binary(), pa.binary(2), pa.dictionary(pa.int8(), pa.string())]


def expected_partition(key: bytes, count: int, method: str) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % count if method == "murmur2" else zlib.crc32(key) % count


# Whichever comes first has to wait while Arrow loads its functions.
patient = settings(deadline=None)


@pytest.mark.parametrize("method", ["murmur2", "crc32"])
@patient
@given(keys=some_keys, count=st.integers(1, 9) | st.just(2**31 - 1), start=st.integers(0, 5))
def test_each_row_goes_where_its_key_alone_would(
    method: Literal["murmur2", "crc32"], keys: list[bytes | None], count: int, start: int
) -> None:
    batch = pa.record_batch({"key": pa.array(keys, pa.binary())}).slice(start)
    found = key_partitions(batch, count, method)
    assert found.type == pa.int32()
    assert found.to_pylist() == [
        None if key is None else expected_partition(key, count, method) for key in keys[start:]
    ]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_keys_of_any_type_that_can_be_sent_are_hashed_as_their_bytes(kind: Any) -> None:
    keys = pa.array(["k1", None, "k2"]).cast(pa.binary() if pa.types.is_fixed_size_binary(kind) else pa.string())
    batch = pa.record_batch({"key": keys.cast(kind), "value": ["a", "b", "c"]})
    assert key_partitions(batch, 50).to_pylist() == [
        expected_partition(b"k1", 50, "murmur2"),
        None,
        expected_partition(b"k2", 50, "murmur2"),
    ]


def test_rows_without_a_column_of_keys_have_no_partition_yet() -> None:
    assert key_partitions(pa.record_batch({"value": ["a", "b"]}), 3).to_pylist() == [None, None]


def test_what_makes_no_sense_is_refused() -> None:
    batch = pa.record_batch({"key": ["a"]})
    for count in (0, -1, 2**31):
        with pytest.raises(ValueError, match=f"partition_count is {count}; a topic has at least 1"):
            key_partitions(batch, count)
    with pytest.raises(ValueError, match="method is 'md5'; it must be one of murmur2, crc32"):
        key_partitions(batch, 3, "md5")  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="column 'key' is of type double, which cannot be read as binary"):
        key_partitions(pa.record_batch({"key": [1.5]}), 3)


@patient
@given(st.lists(st.none() | st.integers(-3, 5) | st.integers(-(2**31), 2**31 - 1), max_size=50), st.integers(0, 3))
def test_the_rows_of_a_partition_keep_their_order(partitions: list[int | None], start: int) -> None:
    expected = defaultdict(list)
    for row, partition in enumerate(partitions[start:]):
        expected[partition].append(row)
    found = rows_by_partition(pa.array(partitions, pa.int32()).slice(start))
    assert {partition: memoryview(rows).cast("q").tolist() for partition, rows in found.items()} == expected


def test_many_rows_of_few_partitions_keep_their_order_too() -> None:
    """Arrow sorts them in another way than few rows."""
    partitions = [row * 7919 % 5 for row in range(20_000)]
    found = rows_by_partition(pa.array(partitions, pa.int32()))
    for partition, rows in found.items():
        numbers = memoryview(rows).cast("q").tolist()
        assert numbers == [row for row, other in enumerate(partitions) if other == partition]
    assert sorted(found, key=str) == [0, 1, 2, 3, 4]


def test_a_split_table_becomes_the_batches_of_its_partitions() -> None:
    keys = [None if row % 7 == 0 else f"key-{row % 20}".encode() for row in range(500)]
    values = [f"value-{row}".encode() for row in range(500)]
    batch = pa.record_batch({"key": pa.array(keys, pa.binary()), "value": values}).slice(10)
    expected = defaultdict(list)
    for key, value in zip(keys[10:], values[10:], strict=True):
        expected[None if key is None else expected_partition(key, 4, "murmur2")].append((key, value))
    columns = row_columns(batch, timestamp_ms=5)
    found = {}
    for partition, selection in rows_by_partition(key_partitions(batch, 4)).items():
        builder = BatchBuilder()
        count = len(selection) // 8
        assert builder.append_rows(0, count, **columns, selection=selection) == count
        found[partition] = [(record.key, record.value) for record in records(Batch(builder.build()))]
    assert found == expected
