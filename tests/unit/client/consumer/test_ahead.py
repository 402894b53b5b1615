"""Columns that a thread makes ahead: the same rows, whatever becomes of the thread."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer import ahead
from ottla.client.consumer.ahead import Maker
from ottla.client.consumer.arrow import ArrowDecoder
from ottla.client.consumer.chunk import Chunk
from ottla.client.consumer.subscription import PartitionState
from ottla.client.errors import CorruptRecordError
from ottla.record import Batch, Codec, Record, build_end_marker
from ottla.record.legacy import build_message_set
from ottla.wire.api.fetch import AbortedTransaction

from .fetched import batch, chunk, state_with

ALL = 2**31


@contextmanager
def maker_of(decoder: ArrowDecoder, notify: Callable[[], None] = lambda: None) -> Iterator[Maker]:
    """A maker that takes chunks of any size, on an event loop that nobody runs."""
    loop = asyncio.new_event_loop()

    async def make() -> Maker:
        return Maker(decoder.wish, notify)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead, "LEAST_BYTES", 0)
        maker = loop.run_until_complete(make())
        try:
            yield maker
        finally:
            maker.close()
            maker._thread.shutdown(wait=True)
            loop.close()


def begin_all(maker: Maker, state: PartitionState) -> None:
    start = state.position or 0
    for one in state.chunks:
        maker.begin(one, start)
        start = one.next_offset


def rows_of(decoder: ArrowDecoder, state: PartitionState) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    while state.chunks:
        found += [row for part in decoder.take(state) for row in part.to_pylist()]
    return found


def append_time(data: bytes) -> bytes:
    stamped = bytearray(data)
    Batch(stamped).set_max_timestamp(9000, append_time=True)
    return bytes(stamped)


def marker(offset: int) -> bytes:
    return build_end_marker(
        commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0, base_offset=offset
    )


KINDS: dict[str, Callable[[int], bytes]] = {
    "plain": lambda offset: batch(offset, offset + 1),
    "compressed": lambda offset: batch(offset, offset + 1, codec=Codec.LZ4),
    "stamped": lambda offset: append_time(batch(offset, offset + 1)),
    "marker": marker,
    "old": lambda offset: build_message_set([Record(offset, 1700, b"k", b"old")], 1),
}


@given(
    kinds=st.lists(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6), min_size=1, max_size=4),
    position=st.integers(0, 12),
    columns=st.sampled_from([None, ("offset", "value"), ("topic", "timestamp_type", "offset")]),
    zero_copy=st.booleans(),
)
def test_rows_are_the_same_as_without_a_thread(
    kinds: list[list[str]], position: int, columns: tuple[str, ...] | None, zero_copy: bool
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

    plain, with_thread = fetched(), fetched()
    decoder = ArrowDecoder(columns, zero_copy=zero_copy)
    with maker_of(decoder) as maker:
        begin_all(maker, with_thread)
        assert rows_of(decoder, with_thread) == rows_of(ArrowDecoder(columns), plain)
    assert (with_thread.position, with_thread.leader_epoch) == (plain.position, plain.leader_epoch)


def test_what_the_thread_has_made_is_what_is_taken() -> None:
    decoder = ArrowDecoder(["offset"])
    state = state_with(chunk(batch(0, 1)))
    with maker_of(decoder) as maker:
        begin_all(maker, state)
        made = state.chunks[0].ahead
        assert made is not None
        result = made.result()
        assert result is not None
        (part,) = decoder.take(state)
    assert part["offset"].buffers()[1].address == _address(result.columns.offsets)


def _address(buffer: object) -> int:
    import pyarrow as pa

    address: int = pa.py_buffer(buffer).address
    return address


def test_somebody_is_told_when_columns_are_made() -> None:
    async def example() -> None:
        told = asyncio.Event()
        decoder = ArrowDecoder(["offset"])
        maker = Maker(decoder.wish, told.set)
        state = state_with(chunk(batch(*range(20_000))))
        assert state.chunks[0].size >= ahead.LEAST_BYTES
        begin_all(maker, state)
        async with asyncio.timeout(30):
            await told.wait()
        assert decoder.is_ready(state)
        assert len(rows_of(decoder, state)) == 20_000
        maker.close()

    asyncio.run(example())


def test_small_chunks_are_left_to_those_who_take_them() -> None:
    async def example() -> None:
        maker = Maker(ArrowDecoder().wish, lambda: None)
        state = state_with(chunk(batch(0)))
        begin_all(maker, state)
        assert state.chunks[0].ahead is None
        maker.close()

    asyncio.run(example())


def test_rows_that_are_there_do_not_wait_for_those_that_are_being_made() -> None:
    decoder = ArrowDecoder(["offset"])
    state = state_with(chunk(batch(0)), chunk(batch(1)))
    may_go_on = threading.Event()
    with maker_of(decoder) as maker:
        first, second = state.chunks
        maker.begin(first, 0)
        maker._thread.submit(may_go_on.wait)
        maker.begin(second, 1)
        assert first.ahead is not None
        first.ahead.result()
        assert decoder.is_ready(state)
        assert [row["offset"] for part in decoder.take(state) for row in part.to_pylist()] == [0]
        assert not decoder.is_ready(state)
        may_go_on.set()
        assert [row["offset"] for row in rows_of(decoder, state)] == [1]


@pytest.mark.parametrize("what", ["another position", "other columns", "so many rows", "an end inside"])
def test_what_was_made_for_something_else_is_not_used(what: str) -> None:
    decoder = ArrowDecoder(["offset"])
    state = state_with(chunk(batch(0, 1, 2)))
    with maker_of(ArrowDecoder(["value"]) if what == "other columns" else decoder) as maker:
        maker.begin(state.chunks[0], 1 if what == "another position" else 0)
        limits = {"so many rows": (2, ALL), "an end inside": (None, 2)}.get(what, (None, ALL))
        found = [row["offset"] for part in decoder.take(state, *limits) for row in part.to_pylist()]
    assert found == ([0, 1] if what in ("so many rows", "an end inside") else [0, 1, 2])
    assert state.position == len(found)


@pytest.mark.parametrize("made_to", [1, 2, 3, 4, ALL])
@pytest.mark.parametrize("stop", [1, 2, 3, 4, ALL])
def test_rows_end_where_they_are_wanted_to_wherever_the_thread_ended(made_to: int, stop: int) -> None:
    decoder = ArrowDecoder(["offset"])
    state = state_with(chunk(batch(0, 1), batch(2, 3)))
    with maker_of(decoder) as maker:
        maker.begin(state.chunks[0], 0, made_to)
        found = []
        while state.chunks and (state.position or 0) < stop:
            found += [row["offset"] for part in decoder.take(state, None, stop) for row in part.to_pylist()]
    assert found == list(range(min(stop, 4)))
    assert state.position == min(stop, 4)


def test_what_is_dropped_is_not_made() -> None:
    decoder = ArrowDecoder(["offset"])
    state = state_with(chunk(batch(0)), chunk(batch(1)))
    may_go_on = threading.Event()
    with maker_of(decoder) as maker:
        maker._thread.submit(may_go_on.wait)
        begin_all(maker, state)
        made = [one.ahead for one in state.chunks]
        state.seek(7)
        may_go_on.set()
        assert [one is not None and one.result() for one in made] == [None, None]


def test_where_no_thread_can_be_had_rows_are_read_without(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = ArrowDecoder(["offset"])
    state = state_with(chunk(batch(0)))

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with maker_of(decoder) as maker:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            begin_all(maker, state)
        assert state.chunks[0].ahead is None
        assert [row["offset"] for row in rows_of(decoder, state)] == [0]


def test_chunks_that_are_taken_by_rows_are_read_whether_made_or_not() -> None:
    decoder = ArrowDecoder(["offset"])
    state = state_with(chunk(batch(0, 1)), chunk(batch(2, 3)), chunk(batch(4)))
    with maker_of(decoder) as maker:
        begin_all(maker, state)
        assert [len(part) for part in decoder.take(state, 3)] == [3]
        assert [row["offset"] for row in rows_of(decoder, state)] == [3, 4]


def test_batches_of_transactions_that_were_given_up_stay_out() -> None:
    decoder = ArrowDecoder(["offset"])
    given_up = batch(1, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    end = build_end_marker(
        commit=False, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0, base_offset=2
    )
    aborted = [AbortedTransaction(producer_id=7, first_offset=1)]
    state = state_with(chunk(batch(0), given_up, end, batch(3), aborted=aborted))
    with maker_of(decoder) as maker:
        begin_all(maker, state)
        assert [row["offset"] for row in rows_of(decoder, state)] == [0, 3]


def test_broken_bytes_are_told_after_the_rows_before_them() -> None:
    decoder = ArrowDecoder(["offset"])
    broken = bytearray(batch(1))
    broken[-1] ^= 1
    state = state_with(chunk(batch(0), bytes(broken)))
    with maker_of(decoder) as maker:
        begin_all(maker, state)
        assert [row["offset"] for part in decoder.take(state) for row in part.to_pylist()] == [0]
        assert state.position == 1
        state.chunks.append(chunk(bytes(broken)))
        maker.begin(state.chunks[0], 1)
        with pytest.raises(CorruptRecordError):
            decoder.take(state)
    assert state.position == 1


def test_who_stops_in_the_middle_leaves_the_work_to_those_who_take_rows() -> None:
    decoder = ArrowDecoder(["offset"])
    state = state_with(chunk(batch(0)), chunk(batch(1)))
    may_go_on = threading.Event()
    with maker_of(decoder) as maker:
        maker._thread.submit(may_go_on.wait)
        begin_all(maker, state)
        maker.close()
        may_go_on.set()
        assert [row["offset"] for row in rows_of(decoder, state)] == [0, 1]


def test_a_thread_that_fails_leaves_the_work_to_those_who_take_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = ArrowDecoder(["offset"])
    state = state_with(chunk(batch(0)))
    gather, failed = Chunk.gather, threading.Event()

    def fail_in_the_thread(self: Chunk, *arguments: object, **options: object) -> object:
        if threading.current_thread() is threading.main_thread():
            return gather(self, *arguments, **options)  # type: ignore[arg-type]
        failed.set()
        raise MemoryError

    monkeypatch.setattr(Chunk, "gather", fail_in_the_thread)
    with maker_of(decoder) as maker:
        begin_all(maker, state)
        assert [row["offset"] for row in rows_of(decoder, state)] == [0]
    assert failed.is_set()
