"""Many batches into columns with one call: as far as nothing is special about them, and no further."""

from array import array
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from ottla.record import Batch, Codec, Record, build_batch, build_end_marker
from ottla.record import _twin as twin
from ottla.record.batch import CODEC_MASK, CONTROL, LOG_APPEND_TIME, TRANSACTIONAL
from ottla.record.legacy import build_message_set
from tests.unit.record.samples import Fields, compiled, records_of, some_fields, values_seen

needs_compiled = pytest.mark.skipif(compiled is None, reason="the compiled kernels were not built")
each_kernel = pytest.mark.parametrize(
    "kernel", [pytest.param(compiled, id="compiled", marks=needs_compiled), pytest.param(twin, id="twin")]
)

EVERY = 2**31
MASK = CODEC_MASK | CONTROL


def batch(*offsets: int, epoch: int = 0, **options: Any) -> bytes:
    records = [Record(offset, 1000 + offset, b"k%d" % offset, b"v%d" % offset) for offset in offsets]
    return build_batch(records, leader_epoch=epoch, **options)


def stamped(data: bytes) -> bytes:
    changed = bytearray(data)
    Batch(changed).set_max_timestamp(9000, append_time=True)
    return bytes(changed)


def damaged(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


FIRST = batch(0, 1, epoch=3)
SECOND = batch(2, 3, epoch=4)


def gather(kernel: Any, data: bytes, **options: Any) -> tuple[list[int], tuple[int, int, int]]:
    """The offsets of the rows, and where the kernel says that it ended."""
    columns = kernel.Columns()
    chosen = {"at": 0, "max_bytes": EVERY, "max_rows": EVERY, "mask": MASK, "attributes": 0, "checksum": crc32c}
    ended = columns.extend_batches(data, **(chosen | options))
    return array("q", bytes(columns.finish().offsets)).tolist(), ended


@each_kernel
@given(runs=st.lists(some_fields, min_size=1, max_size=4))
def test_batches_together_give_the_columns_that_they_give_one_by_one(kernel: Any, runs: list[list[Fields]]) -> None:
    bases = [100 * number for number in range(len(runs))]
    data = [build_batch(records_of(run, base)) for base, run in zip(bases, runs, strict=True)]
    together, one_by_one = kernel.Columns(), kernel.Columns()
    end, next_offset, _ = together.extend_batches(b"".join(data), 0, EVERY, EVERY, MASK, 0, crc32c)
    for single in map(Batch, data):
        one_by_one.extend(single.section(), single.count, single.base_offset, single.base_timestamp)
    assert (end, next_offset) == (sum(map(len, data)), bases[-1] + len(runs[-1]))
    assert together.finish() == one_by_one.finish()


@each_kernel
@given(runs=st.lists(some_fields, min_size=1, max_size=4))
def test_views_of_batches_point_into_what_was_fetched(kernel: Any, runs: list[list[Fields]]) -> None:
    data = b"".join(build_batch(records_of(run, 100 * number)) for number, run in enumerate(runs))
    columns = kernel.Columns(views=True)
    # In two steps, as when a limit lies between.
    at, _, _ = columns.extend_batches(data, 0, Batch(data).size, EVERY, MASK, 0, crc32c)
    end, _, _ = columns.extend_batches(data, at, EVERY, EVERY, MASK, 0, crc32c)
    found = columns.finish().value
    assert end == len(data)
    assert values_seen(found) == [value for run in runs for _, _, value, _ in run]
    assert [source.obj for source in found.sources] == [data]


@each_kernel
def test_nothing_is_held_of_which_no_batch_was_taken(kernel: Any) -> None:
    columns = kernel.Columns(views=True)
    data = batch(4, codec=Codec.ZSTD)
    assert columns.extend_batches(data, 0, EVERY, EVERY, MASK, 0, crc32c)[0] == 0
    assert columns.finish().value.sources == ()


@each_kernel
@given(runs=st.lists(some_fields, min_size=1, max_size=4), spare=st.integers(0, 400), views=st.booleans())
def test_bytes_that_may_be_overwritten_give_the_same_columns(
    kernel: Any, runs: list[list[Fields]], spare: int, views: bool
) -> None:
    data = b"".join(build_batch(records_of(run, 100 * number)) for number, run in enumerate(runs))
    frame, first = bytearray(data + bytes(spare)), Batch(data).size
    usual, consuming = kernel.Columns(views=views), kernel.Columns(views=views)
    part = memoryview(frame)[: len(data)]
    for at, max_bytes in ((0, first), (first, EVERY)):
        ended = usual.extend_batches(data, at, max_bytes, EVERY, MASK, 0, crc32c)
        assert consuming.extend_batches(part, at, max_bytes, EVERY, MASK, 0, crc32c, consume=True) == ended
    expected, found = usual.finish(), consuming.finish()
    if views:
        assert values_seen(found.value) == values_seen(expected.value)
    else:
        assert found == expected
    assert frame[len(data) :] == bytes(spare)


def large(*offsets: int) -> bytes:
    return build_batch([Record(offset, 1, b"k", b"%d" % (offset % 10) * 999) for offset in offsets])


LARGE = large(0, 1, 2) + large(3, 4, 5)
LARGE_VALUES = [b"%d" % number * 999 for number in range(6)]


@needs_compiled
def test_large_values_stay_in_bytes_that_may_be_overwritten() -> None:
    frame = bytearray(LARGE)
    columns = compiled.Columns()
    columns.extend_batches(memoryview(frame), 0, EVERY, EVERY, MASK, 0, crc32c, consume=True)
    found = columns.finish().value
    assert found.data.obj is frame
    assert bytes(found.data) == b"".join(LARGE_VALUES)
    # The object begins anew, and remembers nothing of where it was.
    columns.extend_batches(LARGE, 0, EVERY, EVERY, MASK, 0, crc32c)
    assert values_seen(columns.finish().value) == LARGE_VALUES
    assert bytes(found.data) == b"".join(LARGE_VALUES)


@needs_compiled
@pytest.mark.parametrize("kind", ["read-only", "a part of more", "mostly something else"])
def test_values_are_copied_where_they_cannot_stay(kind: str) -> None:
    columns = compiled.Columns()
    data = build_batch([Record(0, 1, bytes(999), b"v")]) if kind == "mostly something else" else LARGE
    frame = bytearray(data + bytes(len(data) if kind == "a part of more" else 0))
    part = memoryview(frame)[: len(data)]
    if kind == "read-only":
        part = part.toreadonly()
    columns.extend_batches(part, 0, EVERY, EVERY, MASK, 0, crc32c, consume=True)
    found = columns.finish().value
    assert values_seen(found) == ([b"v"] if kind == "mostly something else" else LARGE_VALUES)
    assert isinstance(found.data, bytearray)
    assert found.data is not frame
    if kind != "mostly something else":
        assert frame[: len(data)] == data


@each_kernel
@pytest.mark.parametrize("wanted", [{"start": 4}, {"stop": 5}, {"start": 1, "stop": 5}])
def test_a_batch_of_which_only_some_records_are_wanted_stays_whole(kernel: Any, wanted: dict[str, int]) -> None:
    frame = bytearray(LARGE)
    columns = kernel.Columns()
    end, _, _ = columns.extend_batches(memoryview(frame), 0, EVERY, EVERY, MASK, 0, crc32c, consume=True, **wanted)
    assert values_seen(columns.finish().value) == LARGE_VALUES[wanted.get("start", 0) : wanted.get("stop", 6)]
    second = len(large(0, 1, 2))
    assert end == len(LARGE)
    if "stop" in wanted:
        assert frame[second:] == LARGE[second:]
    if wanted.get("start") == 1:
        assert frame == LARGE


@each_kernel
@pytest.mark.parametrize("check", [crc32c, None])
def test_a_batch_that_is_broken_stays_as_it_was(kernel: Any, check: Any) -> None:
    second = len(large(0, 1, 2))
    data = LARGE[:-1] + b"\x7e"
    frame = bytearray(data)
    columns = kernel.Columns()
    assert columns.extend_batches(memoryview(frame), 0, EVERY, EVERY, MASK, 0, check, consume=True)[0] == second
    assert frame[second:] == data[second:]
    assert values_seen(columns.finish().value) == LARGE_VALUES[:3]


@each_kernel
@pytest.mark.parametrize("follows", ["a section", "other batches", "batches that must stay"])
def test_values_of_other_bytes_follow_those_that_were_moved_together(kernel: Any, follows: str) -> None:
    frame, other = bytearray(LARGE), bytearray(large(6, 7, 8))
    columns = kernel.Columns()
    columns.extend_batches(memoryview(frame), 0, EVERY, EVERY, MASK, 0, crc32c, consume=True)
    if follows == "a section":
        single = Batch(other)
        columns.extend(single.section(), single.count, single.base_offset, single.base_timestamp)
    else:
        columns.extend_batches(memoryview(other), 0, EVERY, EVERY, MASK, 0, crc32c, consume=follows == "other batches")
    assert values_seen(columns.finish().value) == [*LARGE_VALUES, *(b"%d" % number * 999 for number in (6, 7, 8))]
    assert other == large(6, 7, 8)


SPECIAL: dict[str, tuple[bytes, dict[str, Any]]] = {
    "compressed": (batch(4, codec=Codec.ZSTD), {}),
    "a marker": (
        build_end_marker(
            commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0, base_offset=4
        ),
        {},
    ),
    "of a transaction": (
        batch(4, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True),
        {"mask": MASK | TRANSACTIONAL},
    ),
    "of other timestamps": (stamped(batch(4)), {"mask": MASK | LOG_APPEND_TIME}),
    "of an old format": (build_message_set([Record(4, 1, None, b"v")], 1), {}),
    "damaged": (damaged(batch(4), 70), {}),
    "malformed": (batch(4)[:-1] + b"\x7e", {"checksum": None}),
    "cut": (batch(4)[:-1], {}),
    "cut in its header": (batch(4)[:50], {}),
    "of too many bytes": (batch(4), {"max_bytes": len(FIRST + SECOND) + 10}),
    "of too many rows": (batch(4, 5), {"max_rows": 5}),
    "at a negative offset": (b"\xff" + batch(4)[1:], {}),
    "past the largest offset": (b"\x7f" + b"\xff" * 7 + batch(4)[8:], {}),
    "of more records than bytes": (batch(4)[:57] + b"\x7f\xff\xff\xff" + batch(4)[61:], {"checksum": None}),
    "of a negative number of records": (batch(4)[:57] + b"\xff" * 4 + batch(4)[61:], {"checksum": None}),
}


@each_kernel
@pytest.mark.parametrize("name", SPECIAL)
def test_it_ends_before_a_batch_that_is(kernel: Any, name: str) -> None:
    special, options = SPECIAL[name]
    end = len(FIRST + SECOND)
    after = b"" if name.startswith("cut") else batch(8)
    assert gather(kernel, FIRST + SECOND + special + after, **options) == ([0, 1, 2, 3], (end, 4, 4))
    assert gather(kernel, FIRST + special, at=len(FIRST), **options | {"max_bytes": 10}) == ([], (len(FIRST), 0, -1))


@each_kernel
def test_what_is_asked_for_is_not_special(kernel: Any) -> None:
    appended = stamped(SECOND)
    assert gather(kernel, FIRST + appended)[0] == [0, 1, 2, 3]
    wanted = {"mask": MASK | LOG_APPEND_TIME, "attributes": LOG_APPEND_TIME}
    assert gather(kernel, appended + FIRST, **wanted) == ([2, 3], (len(appended), 4, 4))
    columns = kernel.Columns()
    columns.extend_batches(FIRST + appended, 0, EVERY, EVERY, MASK, 0)
    assert array("q", bytes(columns.finish().timestamps)).tolist() == [1000, 1001, 9000, 9000]


@each_kernel
def test_rows_begin_and_end_at_the_offsets_that_are_wanted(kernel: Any) -> None:
    data = damaged(FIRST, 70) + SECOND + batch(4, 5) + batch(6)
    # What is not wanted is not looked into; the batch in which the rows end is the last.
    end = len(FIRST + SECOND + batch(4, 5))
    assert gather(kernel, data, start=2, stop=5) == ([2, 3, 4], (end, 6, 0))
    assert gather(kernel, data, start=1)[1] == (0, 0, -1)


@each_kernel
def test_a_position_outside_the_bytes_is_refused(kernel: Any) -> None:
    for at in (-1, len(FIRST) + 1):
        with pytest.raises(IndexError, match=f"position {at} is outside the {len(FIRST)} bytes"):
            gather(kernel, FIRST, at=at)


@needs_compiled
@given(st.lists(some_fields, min_size=1, max_size=3), st.data())
def test_both_kernels_go_as_far_over_bytes_that_were_changed(runs: list[list[Fields]], data: Any) -> None:
    found = bytearray(b"".join(build_batch(records_of(run, 50 * number)) for number, run in enumerate(runs)))
    for _ in range(data.draw(st.integers(0, 3))):
        found[data.draw(st.integers(0, len(found) - 1))] = data.draw(st.integers(0, 255))
    pair = [kernel.Columns() for kernel in (compiled, twin)]
    ends = [columns.extend_batches(bytes(found), 0, EVERY, EVERY, MASK, 0) for columns in pair]
    assert ends[0] == ends[1]
    assert pair[0].finish() == pair[1].finish()


@each_kernel
@given(tail=st.binary(max_size=80), cut=st.integers(0, 200))
def test_the_walk_from_entry_to_entry_ends_after_the_last_whole_one(kernel: Any, tail: bytes, cut: int) -> None:
    old = build_message_set([Record(0, 1, None, b"a"), Record(1, 1, None, b"b")], 1)
    parts = [old[: len(old) // 2], old[len(old) // 2 :], FIRST, SECOND]
    data = b"".join(parts)[: len(b"".join(parts)) - cut]
    ends = [sum(map(len, parts[: number + 1])) for number in range(len(parts))]
    whole = [end for end in ends if end <= len(data)]
    records = [1, 1, 2, 2]
    begins = (0, *ends)[len(whole) - 1] if whole else -1
    assert kernel.whole_entries(data) == (whole[-1] if whole else 0, begins, sum(records[: len(whole)]))
    assert kernel.whole_entries(memoryview(data + tail)) == twin.whole_entries(data + tail)


@each_kernel
def test_the_walk_believes_no_length_and_counts_what_a_batch_says(kernel: Any) -> None:
    liar = bytearray(FIRST)
    for length in (-1, len(FIRST) - 11, 2**31 - 1, -(2**31)):
        liar[8:12] = length.to_bytes(4, "big", signed=True)
        assert kernel.whole_entries(liar) == (0, -1, 0)
    liar = bytearray(FIRST + SECOND)
    liar[57:61] = (-7).to_bytes(4, "big", signed=True)
    assert kernel.whole_entries(liar) == (len(liar), len(FIRST), -5)
    too_short = bytes(8) + (5).to_bytes(4, "big") + bytes(4) + b"\x02"
    assert kernel.whole_entries(too_short) == (17, 0, 1)
    unknown = bytes(8) + (49).to_bytes(4, "big") + bytes(4) + b"\xff" + bytes(44)
    assert kernel.whole_entries(unknown) == (61, 0, 1)
