"""Which rows of a table go to which partition, without a Python object per row.

The rows are not moved: a selection of their numbers per partition goes with the columns to `BatchBuilder.append_rows`.
Needs pyarrow, as `columns` does.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from ottla.record._kernel_types import LARGEST_INT32
from ottla.record.columns import binary_column
from ottla.record.kernels import crc32_rows, murmur2_rows

if TYPE_CHECKING:
    import pyarrow as pa

_HASHES = {"murmur2": murmur2_rows, "crc32": crc32_rows}


def key_partitions(
    batch: "pa.RecordBatch", partition_count: int, method: Literal["murmur2", "crc32"] = "murmur2"
) -> "pa.Int32Array":
    """The partition of each row by its key, as Java's clients choose it, or with `crc32` as librdkafka does.

    Where there is no key it is null, and for the caller to choose.

    >>> import pyarrow
    >>> key_partitions(pyarrow.record_batch({"key": ["kafka", None]}), 7).to_pylist()
    [3, None]
    """
    import pyarrow as pa
    from pyarrow import compute

    if not 1 <= partition_count <= LARGEST_INT32:
        raise ValueError(f"partition_count is {partition_count}; a topic has at least 1 partition and below 2**31")
    if method not in _HASHES:
        raise ValueError(f"method is {method!r}; it must be one of {', '.join(_HASHES)}")
    rows = batch.num_rows
    if "key" not in batch.schema.names:
        return pa.nulls(rows, pa.int32())
    keys = batch.column("key")
    hashes = pa.py_buffer(_HASHES[method](binary_column(keys, "key"), 0, rows))
    numbers = pa.Array.from_buffers(pa.uint32(), rows, [None, hashes])
    if method == "murmur2":
        # Java has no unsigned numbers, and drops the sign.
        numbers = compute.bit_wise_and(numbers, pa.scalar(LARGEST_INT32, pa.uint32()))
    count = pa.scalar(partition_count, pa.uint32())
    # Arrow has no remainder.
    numbers = compute.subtract(numbers, compute.multiply(compute.divide(numbers, count), count))
    return compute.if_else(keys.is_valid(), numbers.cast(pa.int32()), pa.scalar(None, pa.int32()))


def rows_by_partition(partitions: "pa.Int32Array") -> "dict[int | None, pa.Buffer]":
    """For each partition that has any the numbers of its rows in their order, to be used as a `selection`.

    Rows whose partition is null are found under None.

    >>> import pyarrow
    >>> found = rows_by_partition(pyarrow.array([2, 0, None, 2], pyarrow.int32()))
    >>> {partition: memoryview(rows).cast("q").tolist() for partition, rows in found.items()}
    {0: [1], 2: [0, 3], None: [2]}
    """
    from pyarrow import compute

    order = compute.array_sort_indices(partitions)
    runs = compute.run_end_encode(partitions.take(order))
    ends = [0, *runs.run_ends.to_pylist()]
    numbers = order.buffers()[1]
    return {
        partition: numbers.slice(8 * start, 8 * (end - start))
        for partition, (start, end) in zip(runs.values.to_pylist(), pairwise(ends), strict=True)
    }
