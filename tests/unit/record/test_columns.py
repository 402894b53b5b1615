"""Record batches to Arrow and back."""

import re
import struct
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.record.batch import Batch, batches, records
from ottla.record.build import build_batch
from ottla.record.columns import COLUMNS, arrow_batches, arrow_schema, from_arrow, to_arrow
from ottla.record.compression import Codec, compress
from ottla.record.control import build_end_marker
from ottla.record.kernels import Record
from ottla.record.legacy import build_message_set
from ottla.wire.errors import EncodeError, ProtocolError
from tests.unit.record.samples import EXAMPLE, NOW, Fields, plain, records_of, some_fields

each_codec = pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    """The rows of a table, as records are compared; timestamps as numbers, since dates end in the year 9999."""
    columns = {name: table.column(name) for name in table.schema.names}
    columns["timestamp"] = columns["timestamp"].cast(pa.int64())
    rows = zip(*(columns[name].to_pylist() for name in COLUMNS), strict=True)
    return [
        (offset, timestamp, key, value, [(header["key"], header["value"]) for header in headers])
        for offset, timestamp, key, value, headers in rows
    ]


def read_all(built: list[bytes]) -> list[tuple[Any, ...]]:
    found = []
    for data in built:
        batch = Batch(data)
        batch.validate()
        found += [plain(record) for record in records(batch)]
    return found


# ---- batches to columns ----


@each_codec
@given(runs=st.lists(some_fields, min_size=1, max_size=4))
def test_a_run_of_batches_becomes_one_table(codec: Codec, runs: list[list[Fields]]) -> None:
    expected = [records_of(fields, 100 * number) for number, fields in enumerate(runs)]
    table = to_arrow(b"".join(build_batch(part, codec) for part in expected))
    table.validate(full=True)
    assert table.schema == arrow_schema()
    assert rows_of(table) == [plain(record) for part in expected for record in part]


def test_the_schema_is_what_spark_and_others_expect() -> None:
    assert str(arrow_schema()).splitlines() == [
        "offset: int64",
        "timestamp: timestamp[ms, tz=UTC]",
        "key: binary",
        "value: binary",
        "headers: list<item: struct<key: string, value: binary>>",
        "  child 0, item: struct<key: string, value: binary>",
        "      child 0, key: string",
        "      child 1, value: binary",
    ]
    with pytest.raises(ValueError, match="there is no column 'topic'; there are offset, timestamp"):
        arrow_schema(["topic"])


def test_columns_come_in_the_order_in_which_they_are_asked_for() -> None:
    table = to_arrow(build_batch(records_of(EXAMPLE)), columns=["value", "offset"])
    assert table.to_pydict() == {"value": [value for _, _, value, _ in EXAMPLE], "offset": [0, 1, 2, 3]}
    assert to_arrow(b"", columns=["value"]).schema == arrow_schema(["value"])


def test_timestamps_are_instants_and_follow_the_log_where_it_stamped_them() -> None:
    data = build_batch(records_of(EXAMPLE)) + build_batch(records_of(EXAMPLE, 4), append_time=NOW + 1)
    column = to_arrow(data).column("timestamp").to_pylist()
    assert column[0] == datetime.fromtimestamp(NOW / 1000, UTC)
    assert column[4:] == [datetime.fromtimestamp((NOW + 1) / 1000, UTC)] * 4


def test_control_batches_and_a_partial_batch_are_left_out() -> None:
    marker = build_end_marker(
        commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=NOW, base_offset=4
    )
    data = build_batch(records_of(EXAMPLE)) + marker + build_batch(records_of(EXAMPLE, 5))
    assert to_arrow(data + data[:70]).column("offset").to_pylist() == [0, 1, 2, 3, 5, 6, 7, 8]


def test_only_the_wanted_offsets_are_taken() -> None:
    data = b"".join(build_batch(records_of(EXAMPLE, base)) for base in (0, 4, 8))
    assert to_arrow(data, start_offset=3, stop_offset=9).column("offset").to_pylist() == [3, 4, 5, 6, 7, 8]
    assert to_arrow(data, start_offset=12).num_rows == 0


def test_the_caller_may_choose_among_the_batches() -> None:
    data = b"".join(build_batch(records_of(EXAMPLE, base), producer_id=base, producer_epoch=0) for base in (0, 4, 8))
    chosen = (batch for batch in batches(data) if isinstance(batch, Batch) and batch.producer_id != 4)
    assert to_arrow(chosen).column("offset").to_pylist() == [0, 1, 2, 3, 8, 9, 10, 11]


@pytest.mark.parametrize("buffer", [bytearray, pa.py_buffer, lambda data: memoryview(data).cast("b")])
def test_any_buffer_is_taken_for_bytes(buffer: Callable[[bytes], Any]) -> None:
    data = build_batch(records_of(EXAMPLE))
    assert to_arrow(buffer(data)).equals(to_arrow(data))


def test_what_is_neither_bytes_nor_batches_is_named() -> None:
    with pytest.raises(TypeError, match="a source is bytes, or batches one by one, of which bytes is none"):
        to_arrow([build_batch(records_of(EXAMPLE))])  # type: ignore[list-item]


def test_arrow_batches_are_cut_between_record_batches() -> None:
    data = b"".join(build_batch(records_of(EXAMPLE, base)) for base in range(0, 40, 4))
    by_rows = list(arrow_batches(data, max_rows=10))
    assert [part.num_rows for part in by_rows] == [8, 8, 8, 8, 8]
    by_bytes = list(arrow_batches(data, max_bytes=3 * len(build_batch(records_of(EXAMPLE)))))
    assert [part.num_rows for part in by_bytes] == [12, 12, 12, 4]
    assert [part.num_rows for part in arrow_batches(data, max_rows=1)] == [4] * 10
    assert pa.Table.from_batches(by_rows).equals(to_arrow(data).combine_chunks())


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_old_message_sets_become_columns_too(magic: int, codec: Codec) -> None:
    old = [Record(offset, NOW + offset, b"k", b"v%d" % offset) for offset in (5, 6, 9)]
    data = build_message_set(old, magic=magic, codec=codec) + build_batch([Record(10, NOW, None, b"new")])
    table = to_arrow(data, start_offset=6)
    timestamps = [NOW + 6, NOW + 9] if magic else [-1, -1]
    assert table.column("offset").to_pylist() == [6, 9, 10]
    assert table.column("value").to_pylist() == [b"v6", b"v9", b"new"]
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [*timestamps, NOW]
    assert table.column("headers").to_pylist() == [[], [], []]


def test_old_messages_whose_offsets_go_back_are_refused() -> None:
    inner = b"".join(build_message_set([Record(offset, -1, None, b"v")], magic=0) for offset in (9, 8))
    value = compress(Codec.GZIP, inner)
    message = struct.pack(">bbii", 0, Codec.GZIP, -1, len(value)) + value
    wrapper = struct.pack(">qiI", 9, len(message) + 4, crc32(message)) + message
    with pytest.raises(ProtocolError):
        to_arrow(wrapper)


def test_header_keys_that_are_not_utf8_get_replacement_characters() -> None:
    data = bytearray(build_batch([Record(0, NOW, None, None, [("key", b"v"), ("other", None)])]))
    data[data.index(b"key")] = 0xFF
    table = to_arrow(data)
    table.validate(full=True)
    assert table.column("headers").to_pylist() == [
        [{"key": "\ufffdey", "value": b"v"}, {"key": "other", "value": None}]
    ]
    assert records(Batch(data))[0].headers == (("\ufffdey", b"v"), ("other", None))


def test_a_decompression_bomb_stops_at_the_limit() -> None:
    data = build_batch([Record(0, NOW, None, bytes(1_000_000))], Codec.GZIP)
    with pytest.raises(ProtocolError):
        to_arrow(data, limit=100_000)


def test_malformed_records_are_a_protocol_error() -> None:
    data = bytearray(build_batch(records_of(EXAMPLE)))
    data[61] = 0x7F
    with pytest.raises(ProtocolError, match="record length"):
        to_arrow(data)


# ---- columns to batches ----


@given(fields=some_fields, batch_size=st.integers(70, 2000), cut=st.integers(0, 12))
def test_a_table_goes_to_batches_and_comes_back(fields: list[Fields], batch_size: int, cut: int) -> None:
    table = to_arrow(build_batch(records_of(fields)))
    parts = [table.slice(0, cut), table.slice(cut)]
    built = from_arrow(pa.concat_tables(parts), batch_size=batch_size)
    assert rows_of(to_arrow(b"".join(built))) == rows_of(table)
    for data in built:
        assert len(data) <= batch_size or Batch(data).count == 1


@each_codec
def test_batches_are_made_in_every_codec(codec: Codec) -> None:
    table = to_arrow(build_batch(records_of(EXAMPLE)))
    built = from_arrow(table, codec)
    assert [Batch(data).codec for data in built] == [codec]
    assert read_all(built) == [plain(record) for record in records_of(EXAMPLE)]


def test_offsets_and_sequences_go_on_from_batch_to_batch() -> None:
    table = pa.table({"value": [b"x" * 30] * 10})
    built = from_arrow(
        table,
        batch_size=61 + 3 * 40,
        base_offset=100,
        producer_id=7,
        producer_epoch=2,
        base_sequence=2**31 - 4,
        transactional=True,
        timestamp_ms=NOW,
    )
    found = [Batch(data) for data in built]
    assert [batch.base_offset for batch in found] == [100, 103, 106, 109]
    assert [batch.base_sequence for batch in found] == [2**31 - 4, 2**31 - 1, 2, 5]
    assert {(batch.producer_id, batch.producer_epoch, batch.transactional) for batch in found} == {(7, 2, True)}
    assert {timestamp for _, timestamp, *_ in read_all(built)} == {NOW}


VALUES = [b"one", None, b"", b"four"]


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.string(),
        pa.large_binary(),
        pa.large_string(),
        pa.binary_view(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)
def test_binary_and_string_columns_of_every_kind_are_taken_whole_and_sliced(kind: pa.DataType) -> None:
    column = pa.array([None if value is None else value.decode() for value in VALUES], pa.string()).cast(kind)
    table = pa.table({"value": column, "key": column})
    assert [(key, value) for _, _, key, value, _ in read_all(from_arrow(table))] == [(v, v) for v in VALUES]
    sliced = read_all(from_arrow(table.slice(1, 2)))
    assert [value for _, _, _, value, _ in sliced] == VALUES[1:3]
    [batch] = table.slice(3).to_batches()
    assert [value for _, _, _, value, _ in read_all(from_arrow(batch))] == [b"four"]


def test_a_column_of_nulls_is_a_column_of_null_values() -> None:
    assert [value for _, _, _, value, _ in read_all(from_arrow(pa.table({"value": pa.nulls(3)})))] == [None] * 3


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        (pa.timestamp("us", "UTC"), 1000),
        (pa.timestamp("ms", "Europe/Berlin"), 1),
        (pa.timestamp("ns"), 1_000_000),
        (pa.int64(), 1),
    ],
    ids=str,
)
def test_timestamps_of_every_unit_become_milliseconds(kind: pa.DataType, factor: int) -> None:
    numbers = pa.array([NOW * factor, None, (NOW + 5) * factor], pa.int64())
    table = pa.table({"value": ["a", "b", "c"], "timestamp": numbers.cast(kind)})
    found = [timestamp for _, timestamp, *_ in read_all(from_arrow(table, timestamp_ms=17))]
    assert found == [NOW, 17, NOW + 5]
    found = [timestamp for _, timestamp, *_ in read_all(from_arrow(table.slice(2)))]
    assert found == [NOW + 5]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([2**62], pa.timestamp("s")), "out of bounds timestamp: 4611686018427387904"),
        (pa.array([-(2**62)], pa.timestamp("s", "UTC")), "out of bounds timestamp: -4611686018427387904"),
        (pa.array([2**64 - 1], pa.uint64()), "value 18446744073709551615 not in range"),
        (pa.array([1.5]), "Unsupported cast from double"),
    ],
    ids=["seconds", "negative seconds", "unsigned", "float"],
)
def test_timestamps_that_are_no_milliseconds_are_refused_and_not_bent(column: pa.Array, reason: str) -> None:
    with pytest.raises(EncodeError, match=f"column 'timestamp' is of type {re.escape(str(column.type))}, .*{reason}"):
        from_arrow(pa.table({"value": ["v"], "timestamp": column}))


def test_only_what_is_below_a_millisecond_is_cut_off() -> None:
    table = pa.table({"value": ["v"], "timestamp": pa.array([NOW * 1_000_000 + 999_999], pa.timestamp("ns"))})
    assert [timestamp for _, timestamp, *_ in read_all(from_arrow(table))] == [NOW]


HEADERS: list[Any] = [
    [{"key": "a", "value": b"1"}],
    None,
    [],
    [{"key": "b", "value": None}, {"key": "ü", "value": b""}],
]
EXPECTED_HEADERS = [[("a", b"1")], [], [], [("b", None), ("ü", b"")]]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        pa.large_list(pa.struct([("value", pa.large_binary()), ("key", pa.large_string())])),
        pa.list_(pa.struct([("key", pa.binary_view()), ("value", pa.string())])),
    ],
    ids=["list", "large list", "views"],
)
def test_headers_are_taken_from_lists_of_structs(kind: pa.DataType) -> None:
    rows = HEADERS
    if not pa.types.is_string(kind.value_type.field("key").type):
        rows = pa.array(HEADERS, pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))).to_pylist()
    table = pa.table({"value": ["v"] * 4, "headers": pa.array(rows, kind)})
    assert [headers for *_, headers in read_all(from_arrow(table))] == EXPECTED_HEADERS
    assert [headers for *_, headers in read_all(from_arrow(table.slice(2)))] == EXPECTED_HEADERS[2:]


def test_headers_are_taken_from_maps() -> None:
    column = pa.array([[("a", b"1")], None, [], [("b", None), ("ü", b"")]], pa.map_(pa.string(), pa.binary()))
    table = pa.table({"value": ["v"] * 4, "headers": column})
    assert [headers for *_, headers in read_all(from_arrow(table))] == EXPECTED_HEADERS


@pytest.mark.parametrize("make", [pa.list_view, pa.large_list_view])
def test_headers_in_list_views_are_refused_by_name(make: Callable[[pa.DataType], pa.DataType]) -> None:
    kind = make(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table({"value": ["v"] * 4, "headers": pa.array(HEADERS, kind)})
    with pytest.raises(EncodeError, match=r"column 'headers' is of type (large_)?list_view<.*>, not a plain list"):
        from_arrow(table)


@pytest.mark.parametrize("header", [None, {"key": None, "value": b"v"}], ids=["header", "key"])
def test_null_headers_and_null_header_keys_are_refused(header: Any) -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table({"value": ["v", "w"], "headers": pa.array([[], [header]], kind)})
    with pytest.raises(EncodeError, match="a header key is null \\(row 1\\)"):
        from_arrow(table)
    assert len(from_arrow(table.slice(0, 1))) == 1


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"key": ["a"]}, "there is no column 'value' among key"),
        ({"value": ["a"], "vlaue": ["b"]}, "column 'vlaue' is none of offset, timestamp, key, value, headers"),
        ({"value": [1]}, "column 'value' is of type int64, which cannot be read as binary"),
        ({"value": ["a"], "headers": ["b"]}, "column 'headers' is of type string"),
        ({"value": ["a"], "headers": [[1]]}, "column 'headers' is of type list<item: int64>, not a list of structs"),
        ({"value": ["a"], "timestamp": [[1]]}, "column 'timestamp' is of type list<item: int64>"),
    ],
)
def test_columns_that_cannot_become_records_are_named(columns: dict[str, Any], reason: str) -> None:
    with pytest.raises(EncodeError) as caught:
        from_arrow(pa.table(columns))
    assert reason in str(caught.value)


def test_a_column_given_twice_is_refused() -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["value", "value"])
    with pytest.raises(EncodeError, match="more than one column 'value'"):
        from_arrow(table)


def test_an_empty_table_makes_no_batches() -> None:
    assert from_arrow(arrow_schema().empty_table()) == []


def test_without_pyarrow_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="install ottla with its `arrow` extra"):
        to_arrow(b"")
