"""Fetched bytes as columns: the same records that the objects have."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla import native
from ottla.client.consumer import arrow, gathering
from ottla.client.consumer.arrow import COLUMNS, SHARED_ROWS, ArrowDecoder
from ottla.client.consumer.chunk import Chunk
from ottla.client.consumer.decoding import Decoder
from ottla.client.consumer.gathering import Gathering
from ottla.client.consumer.subscription import PartitionState
from ottla.client.errors import CorruptRecordError
from ottla.client.types import ConsumerRecord, TopicPartition
from ottla.record import Batch, Codec, Record, build_batch, build_end_marker
from ottla.record.legacy import build_message_set
from ottla.wire.api.fetch import AbortedTransaction

from .fetched import batch, chunk, received, state_with


def marker(offset: int) -> bytes:
    return build_end_marker(
        commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0, base_offset=offset
    )


def rows(decoder: ArrowDecoder, state: PartitionState, max_rows: int | None = None) -> list[dict[str, object]]:
    return [row for part in decoder.take(state, max_rows) for row in part.to_pylist()]


def offsets(state: PartitionState, max_rows: int | None = None) -> list[object]:
    return [row["offset"] for row in rows(ArrowDecoder(["offset"]), state, max_rows)]


def append_time(data: bytes, time_ms: int) -> bytes:
    stamped = bytearray(data)
    Batch(stamped).set_max_timestamp(time_ms, append_time=True)
    return bytes(stamped)


def objects_of(state: PartitionState) -> list[ConsumerRecord]:
    """The same records as objects."""
    decoder = Decoder()
    objects: list[ConsumerRecord] = []
    while state.has_records:
        if decoder.begin_run(state) is not None:
            objects += state.take(None)
    return objects


def told(row: dict[str, Any]) -> dict[str, Any]:
    """What a row says, in the terms of objects."""
    said = dict(row)
    if "headers" in said:
        said["headers"] = tuple((header["key"], header["value"]) for header in said["headers"])
    if "timestamp" in said:
        said["timestamp"] = round(said["timestamp"].timestamp() * 1000)
    return said


def test_rows_say_what_the_objects_say() -> None:
    records = [Record(0, 1500, b"k", None, [("a", b"1"), ("b", None)]), Record(1, 1600, None, b"v")]
    old = build_message_set([Record(5, 1700, b"k", b"old"), Record(6, 1800, None, b"older")], 1, Codec.GZIP)
    oldest = build_message_set([Record(7, 0, b"k", b"oldest")], 0)
    parts = (build_batch(records, Codec.ZSTD), append_time(batch(2, 3), 9000), marker(4), old, oldest)
    state = state_with(chunk(*parts))
    found = rows(ArrowDecoder(), state)
    assert state.position == 8
    assert [tuple(row) for row in found] == [COLUMNS] * 7
    assert [told(row) for row in found] == [record._asdict() for record in objects_of(state_with(chunk(*parts)))]


def test_only_the_columns_that_are_named_are_made_in_their_order() -> None:
    (part,) = ArrowDecoder(["value", "partition", "offset"]).take(state_with(chunk(batch(0, 1))))
    assert part.schema.names == ["value", "partition", "offset"]
    with pytest.raises(ValueError, match="there is no column 'valu'; there are topic, partition"):
        ArrowDecoder(["valu"])


def test_rows_can_be_counted_without_any_column_but_the_topic() -> None:
    (part,) = ArrowDecoder(["topic"]).take(state_with(chunk(batch(0, 1), marker(4))))
    assert part.to_pylist() == [{"topic": "t"}] * 2


def test_the_topic_takes_no_memory_per_batch() -> None:
    decoder = ArrowDecoder(["topic"])
    first = decoder.take(state_with(chunk(batch(0))))[0]["topic"]
    second = decoder.take(state_with(chunk(batch(0, 1))))[0]["topic"]
    assert first.buffers()[2].address == second.buffers()[2].address


def test_who_reads_many_topics_does_not_keep_a_column_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "MOST_SHARED_IN_ALL", 10 * SHARED_ROWS)
    decoder = ArrowDecoder(["topic", "partition"])
    for number in range(100):
        state = PartitionState(TopicPartition(f"t{number}", number))
        state.seek(0)
        state.chunks.append(chunk(batch(0, 1)))
        assert rows(decoder, state) == [{"topic": f"t{number}", "partition": number}] * 2
        kept = sum(map(len, decoder._shared.values()))
        assert kept == decoder._shared_rows <= 12 * SHARED_ROWS


def test_a_column_that_had_to_grow_counts_once() -> None:
    decoder = ArrowDecoder(["topic"])
    for count in (1, SHARED_ROWS + 1, 5 * SHARED_ROWS):
        decoder.take(state_with(chunk(batch(*range(count)))))
    assert decoder._shared_rows == sum(map(len, decoder._shared.values())) == 5 * SHARED_ROWS


@pytest.mark.parametrize("where", ["read", "finish"])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_nothing_is_left_out_after_an_error_of_any_kind(
    where: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_with(chunk(batch(0)), chunk(batch(1)), chunk(batch(2)))
    decoder = ArrowDecoder(["offset"])
    read = Gathering.read

    def fail(self: Gathering, *chunks: Chunk) -> None:
        if chunks == () or chunks[0] is second:
            raise error
        read(self, *chunks)

    second = state.chunks[1]
    monkeypatch.setattr(Gathering, where, fail)
    with pytest.raises(error):
        decoder.take(state, 2)
    # What was fetched is gone with it, so the next fetch begins where the user is.
    assert (state.position, state.fetch_offset, len(state.chunks)) == (0, 0, 0)


def test_rows_are_cut_inside_a_batch_and_the_rest_comes_next() -> None:
    state = state_with(chunk(batch(0, 1, 2), batch(3, 5, 8)), chunk(batch(9)))
    assert offsets(state, 4) == [0, 1, 2, 3]
    assert state.position == 5
    assert offsets(state, 1) == [5]
    assert state.position == 8
    assert offsets(state) == [8, 9]
    assert (state.position, len(state.chunks)) == (10, 0)


def test_old_messages_are_cut_as_well() -> None:
    old = build_message_set([Record(offset, 1, None, b"v") for offset in range(6)], 1, Codec.GZIP)
    state = state_with(chunk(old))
    assert offsets(state, 4) == [0, 1, 2, 3]
    assert offsets(state, 4) == [4, 5]


def test_rows_end_before_an_offset_and_the_position_is_there() -> None:
    state = state_with(chunk(batch(0, 1, 2), batch(3, 4)), position=1)
    found = ArrowDecoder(["offset"]).take(state, stop_offset=2)
    assert [row["offset"] for part in found for row in part.to_pylist()] == [1]
    assert state.position == 2
    # What lies between may have been compacted away.
    state = state_with(chunk(batch(0, 9)), position=1)
    assert ArrowDecoder(["offset"]).take(state, stop_offset=5) == []
    assert state.position == 5


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(lambda data: data[:70] + bytes([data[70] ^ 1]) + data[71:], id="checksum"),
        pytest.param(lambda data: data[:-1] + b"\x7e", id="records"),
    ],
)
@pytest.mark.parametrize("check_crcs", [True, False])
def test_what_is_before_a_broken_batch_comes_first(broken: object, check_crcs: bool) -> None:
    assert callable(broken)
    bad = broken(batch(2, 3))
    state = state_with(chunk(batch(0), batch(1), bad, batch(4)))
    decoder = ArrowDecoder(["offset"], check_crcs=check_crcs)
    if not check_crcs and bad[-1] != 0x7E:
        # What nobody checks nobody misses.
        assert len(rows(decoder, state)) == 5
        return
    assert [row["offset"] for row in rows(decoder, state)] == [0, 1]
    assert (state.position, len(state.chunks)) == (2, 0)
    state.chunks.append(chunk(bad, batch(4)))
    with pytest.raises(CorruptRecordError, match="t-0 at offset 2 is corrupt"):
        decoder.take(state)
    assert (state.position, len(state.chunks)) == (2, 0)


def test_batches_of_aborted_transactions_are_left_out_and_those_around_them_are_not() -> None:
    def of_producer(offset: int, number: int) -> bytes:
        return batch(offset, producer_id=number, producer_epoch=0, base_sequence=0, transactional=True)

    def end(offset: int, number: int, *, commit: bool) -> bytes:
        return build_end_marker(
            commit=commit, producer_id=number, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0, base_offset=offset
        )

    parts = (
        batch(0),
        of_producer(1, 7),
        of_producer(2, 8),
        end(3, 7, commit=False),
        end(4, 8, commit=True),
        of_producer(5, 7),
        end(6, 7, commit=True),
        batch(7),
    )
    state = state_with(chunk(*parts, aborted=[AbortedTransaction(producer_id=7, first_offset=1)]))
    assert offsets(state) == [0, 2, 5, 7]
    assert state.position == 8
    assert offsets(state_with(chunk(*parts))) == [0, 1, 2, 5, 7]


def test_batches_of_every_kind_come_in_order_however_they_are_mixed() -> None:
    parts = [
        batch(0),
        batch(1, 2, codec=Codec.LZ4),
        batch(3),
        append_time(batch(4), 9000),
        append_time(batch(5, codec=Codec.GZIP), 9000),
        build_message_set([Record(6, 1700, b"k", b"old")], 1),
        batch(7, 8),
    ]

    def mixed() -> PartitionState:
        return state_with(chunk(*parts[:3]), chunk(*parts[3:]))

    found = rows(ArrowDecoder(["offset", "value", "timestamp_type"]), mixed())
    assert [row["offset"] for row in found] == list(range(9))
    assert [row["timestamp_type"] for row in found] == [0, 0, 0, 0, 1, 1, 0, 0, 0]
    assert [row["value"] for row in found] == [b"v%d" % n if n != 6 else b"old" for n in range(9)]
    zero_copy = rows(ArrowDecoder(["offset", "value", "timestamp_type"], zero_copy=True), mixed())
    assert zero_copy == found


def test_values_that_are_not_copied_lie_where_they_were_fetched() -> None:
    values = [bytes([number]) * 100 for number in range(3)]
    fetched = chunk(build_batch([Record(offset, 0, None, value) for offset, value in enumerate(values)]))
    whole = pa.py_buffer(fetched.data)
    (part,) = ArrowDecoder(["value"], zero_copy=True).take(state_with(fetched))
    assert part.schema.field("value").type == pa.binary_view()
    assert part["value"].to_pylist() == values
    _, _, data = part["value"].buffers()
    assert (data.address, data.size) == (whole.address, whole.size)


def test_arrow_batches_stay_below_a_few_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.client.consumer.gathering.MAX_BYTES", 3 * len(batch(0)))
    parts = [batch(number) for number in range(8)] + [batch(*range(8, 40), codec=Codec.ZSTD), batch(40)]
    found = ArrowDecoder(["offset"]).take(state_with(chunk(*parts)))
    assert [len(part) for part in found] == [3, 3, 2, 32, 1]
    assert [row["offset"] for part in found for row in part.to_pylist()] == list(range(41))


def test_the_epoch_of_the_last_batch_goes_with_the_position() -> None:
    state = state_with(chunk(batch(0, epoch=3), batch(1, epoch=4)))
    ArrowDecoder().take(state)
    assert (state.position, state.leader_epoch) == (2, 4)


def taken(state: PartitionState, decoder: ArrowDecoder, enough_bytes: int) -> list[list[dict[str, Any]]]:
    """What one call after another gives, until nothing is left."""
    found = []
    while state.chunks:
        parts = decoder.take(state, enough_bytes=enough_bytes)
        found.append([row for part in parts for row in part.to_pylist()])
    return found


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("batches_in_chunk", [1, 5])
def test_what_is_enough_is_all_that_is_taken_at_once_unless_rows_are_asked_for(
    codec: Codec, batches_in_chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(batch(0, codec=codec))
    monkeypatch.setattr(gathering, "MAX_BYTES", 2 * size)

    def fetched() -> PartitionState:
        parts = [batch(number, codec=codec) for number in range(5)]
        return state_with(*(chunk(*parts[at : at + batches_in_chunk]) for at in range(0, 5, batches_in_chunk)))

    found = taken(fetched(), ArrowDecoder(["offset"]), size + 1)
    assert found == [[{"offset": at} for at in numbers] for numbers in ((0, 1), (2, 3), (4,))]
    assert offsets(fetched(), 4) == [0, 1, 2, 3]


def test_batches_without_rows_for_the_user_are_passed_over_on_the_way_to_the_next_that_has_some() -> None:
    skipped = [marker(2 * number) for number in range(50)]
    state = state_with(*map(chunk, skipped), chunk(batch(100)))
    assert taken(state, ArrowDecoder(["offset"]), 1) == [[{"offset": 100}]]


KINDS: dict[str, Callable[[int], bytes]] = {
    "plain": lambda offset: batch(offset, offset + 1),
    "compressed": lambda offset: batch(offset, offset + 1, codec=Codec.LZ4),
    "stamped": lambda offset: append_time(batch(offset, offset + 1), 9000),
    "marker": marker,
    "old": lambda offset: build_message_set([Record(offset, 1700, b"k", b"old")], 1),
}


@given(
    kinds=st.lists(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6), min_size=1, max_size=4),
    position=st.integers(0, 12),
    columns=st.sampled_from([None, ("offset", "value"), ("topic", "timestamp_type", "offset")]),
    zero_copy=st.booleans(),
    enough_bytes=st.integers(1, 400),
)
def test_rows_are_those_of_the_objects_however_bytes_are_mixed_and_taken(
    kinds: list[list[str]], position: int, columns: tuple[str, ...] | None, zero_copy: bool, enough_bytes: int
) -> None:
    def fetched() -> PartitionState:
        offset, chunks = 0, []
        for parts in kinds:
            found = []
            for kind in parts:
                found.append(KINDS[kind](offset))
                offset += 2
            chunks.append(chunk(*found))
        # A fetch from a position brings no chunk that ends before it.
        return state_with(*[one for one in chunks if one.next_offset > position], position=position)

    state, same = fetched(), fetched()
    decoder = ArrowDecoder(columns, zero_copy=zero_copy)
    found = [told(row) for rows in taken(state, decoder, enough_bytes) for row in rows]
    objects = [record._asdict() for record in objects_of(same)]
    assert found == [{name: record[name] for name in decoder.schema.names} for record in objects]
    assert (state.position, state.leader_epoch) == (same.position, same.leader_epoch)


def test_tables_stay_as_they_are_while_the_rest_of_a_reply_is_moved_together() -> None:
    values = [b"%d" % number * 2000 for number in range(8)]
    data = b"".join(
        build_batch([Record(offset, 1, None, values[offset]) for offset in (first, first + 1)])
        for first in (0, 2, 4, 6)
    )
    frame = bytearray(data)
    state = state_with(received(frame))
    views, copies = ArrowDecoder(["value"], zero_copy=True), ArrowDecoder(["value"])
    # Three rows end within a batch, of which the rest is for the next call.
    steps = [(views, 3), (copies, 2), (views, 1), (copies, None)]
    taken = [decoder.take(state, max_rows) for decoder, max_rows in steps]
    found = [value for parts in taken for part in parts for value in part.column("value").to_pylist()]
    assert found == values
    assert all(part.validate(full=True) is None for parts in taken for part in parts)


def test_values_of_a_whole_reply_are_where_they_were_received() -> None:
    if native.load_compiled("ottla.record._kernels") is None:
        pytest.skip("the compiled kernels were not built")
    frame = bytearray(build_batch([Record(offset, 1, None, bytes([offset]) * 5000) for offset in range(9)]))
    (part,) = ArrowDecoder(["value"]).take(state_with(received(frame)))
    values = part.column("value")
    start = pa.py_buffer(frame).address
    assert start <= values.buffers()[2].address < start + len(frame)
    assert values.to_pylist() == [bytes([offset]) * 5000 for offset in range(9)]
