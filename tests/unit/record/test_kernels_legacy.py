"""The kernels for old message sets: one behaviour of the compiled ones and their twins, held to hand-made bytes."""

import struct
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ottla.record import _twin as twin
from ottla.record._legacy_types import MessageRun, MessageTotals, StoredMessage
from ottla.wire.errors import EncodeError, ErrorCode, ProtocolError
from tests.unit.record.samples import EXAMPLE, NOW, Fields, compiled, outcome, section_of, some_bytes, some_fields
from tests.unit.record.test_kernels import each_kernel, needs_compiled

LARGEST = 2**63 - 1
SMALLEST = -(2**63)


def message(
    offset: int,
    value: bytes | None,
    *,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = NOW,
    key: bytes | None = None,
    extra: bytes = b"",
) -> bytes:
    """One message, written by hand."""

    def field(data: bytes | None) -> bytes:
        return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data

    fixed = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    body = fixed + field(key) + field(value) + extra
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def whole(data: bytes, **context: Any) -> MessageRun:
    return MessageRun(data, 0, len(data), **context)


def records_from(kernel: Any, fields: list[Fields], *, base_offset: int = 0, step: int = 1) -> list[Any]:
    """The fields as this kernel's records, without headers."""
    return [
        kernel.Record(base_offset + step * number, timestamp, key, value)
        for number, (timestamp, key, value, _) in enumerate(fields)
    ]


some_magic = st.sampled_from([0, 1])
some_offsets = st.integers(0, 40) | st.integers(SMALLEST, LARGEST)
some_messages = st.builds(
    message,
    some_offsets,
    some_bytes,
    magic=some_magic,
    attributes=st.sampled_from([0, 0, 0, 0, 0x08, 1, -1]),
    timestamp=st.integers(-1, 50) | st.integers(SMALLEST, LARGEST),
    key=some_bytes,
    extra=st.sampled_from([b"", b"", b"", b"extra"]),
)
ordered_messages = st.lists(some_bytes, min_size=1, max_size=8).map(
    lambda values: b"".join(message(3 * number, value, magic=number % 2) for number, value in enumerate(values))
)
some_sets = st.lists(some_messages, max_size=5).map(b"".join) | ordered_messages
some_contexts = st.fixed_dictionaries(
    {
        "codec": st.sampled_from([0, 1, 3]),
        "shift": st.sampled_from([0, 1, 7, LARGEST, -1, SMALLEST]),
        "append_time": st.none() | st.sampled_from([-1, NOW, SMALLEST]),
    }
)


# ---- both kernels ----


def appended(kernel: Any, run: MessageRun, *, renumber: bool = False, **options: Any) -> Any:
    """What becomes of a writer that the messages are added to, also where they end in an error."""
    writer = kernel.RecordWriter(**options)
    result = outcome(lambda: kernel.append_run(writer, run, renumber))
    state = (writer.count, writer.last_offset_delta, writer.base_timestamp, writer.max_timestamp)
    return result, state, bytes(writer.records())


def written(kernel: Any, magic: int, *, wrapped: bool, extend: Callable[[Any], None]) -> Any:
    """What becomes of a message writer that is extended twice, also where that ends in an error."""
    writer = kernel.MessageWriter(magic, wrapped)
    results = [outcome(lambda: extend(writer)), outcome(lambda: extend(writer))]
    return results, writer.magic, writer.count, writer.last_offset, writer.max_timestamp, bytes(writer.messages())


def all_outcomes(kernel: Any, run: MessageRun) -> list[Any]:
    def rewritten(magic: int, wrapped: bool, first_offset: int) -> Any:
        return written(kernel, magic, wrapped=wrapped, extend=lambda writer: writer.extend_run(run, first_offset))

    return [
        outcome(lambda: kernel.run_end(run, run.start)),
        outcome(lambda: kernel.last_offset(run.data)),
        outcome(lambda: kernel.message_at(run, run.start)),
        outcome(lambda: kernel.message_at(run, run.stop)),
        outcome(lambda: kernel.scan_run(run)),
        outcome(lambda: kernel.read_run(run)),
        appended(kernel, run),
        appended(kernel, run, base_offset=3, base_timestamp=LARGEST),
        appended(kernel, run, base_offset=SMALLEST, base_timestamp=-5),
        appended(kernel, run, renumber=True, limit=60, base_offset=LARGEST - 2),
        rewritten(0, False, SMALLEST),
        rewritten(0, True, 2),
        rewritten(1, False, 2),
        rewritten(1, True, SMALLEST),
    ]


@needs_compiled
@settings(max_examples=300)
@given(data=some_sets, context=some_contexts)
@example(data=message(SMALLEST, b"a") + message(SMALLEST + 1, b"b"), context={})
@example(data=message(LARGEST, b"a") + message(SMALLEST, b"b"), context={})
def test_both_kernels_make_the_same_of_messages(data: bytes, context: dict[str, Any]) -> None:
    run = whole(data, **context)
    assert all_outcomes(compiled, run) == all_outcomes(twin, run)


@needs_compiled
@settings(max_examples=500)
@given(data=some_sets.filter(len), context=some_contexts, draw=st.data())
def test_both_kernels_make_the_same_of_cut_and_mutated_messages(
    data: bytes, context: dict[str, Any], draw: st.DataObject
) -> None:
    bad = bytearray(data)
    for _ in range(draw.draw(st.integers(0, 3))):
        bad[draw.draw(st.integers(0, len(bad) - 1))] = draw.draw(st.integers(0, 255))
    if draw.draw(st.booleans()):
        # Lengths and offsets are looked at only where the checksum is right.
        size = int.from_bytes(bad[8:12], "big", signed=True)
        bad[12:16] = zlib.crc32(bad[16 : max(12 + size, 16)]).to_bytes(4, "big")
    stop = draw.draw(st.integers(0, len(bad) + 1)) if draw.draw(st.booleans()) else len(bad)
    run = MessageRun(bytes(bad), draw.draw(st.sampled_from([0, 0, 0, 1, -1])), stop, **context)
    assert all_outcomes(compiled, run) == all_outcomes(twin, run)


@needs_compiled
@settings(max_examples=300)
@given(data=st.binary(max_size=80), count=st.integers(-1, 9))
def test_both_kernels_make_the_same_of_random_bytes(data: bytes, count: int) -> None:
    def section(writer: Any) -> None:
        writer.extend_section(data, count, 5, NOW)

    assert all_outcomes(compiled, whole(data)) == all_outcomes(twin, whole(data))
    results = [written(kernel, 1, wrapped=True, extend=section) for kernel in (compiled, twin)]
    assert results[0] == results[1]


@needs_compiled
@settings(max_examples=300)
@given(fields=some_fields, magic=some_magic, wrapped=st.booleans(), draw=st.data())
def test_both_kernels_make_the_same_of_sections_sound_and_damaged(
    fields: list[Fields], magic: int, wrapped: bool, draw: st.DataObject
) -> None:
    section = bytearray(section_of(fields))
    for _ in range(draw.draw(st.integers(0, 2))):
        section[draw.draw(st.integers(0, len(section) - 1))] = draw.draw(st.integers(0, 255))
    base_offset = draw.draw(st.sampled_from([0, 5, SMALLEST, LARGEST - 3]))
    append_time = draw.draw(st.none() | st.just(17))
    first_offset = draw.draw(st.sampled_from([SMALLEST, 2, 7]))

    def extend(writer: Any) -> None:
        writer.extend_section(bytes(section), len(fields), base_offset, fields[0][0], append_time, first_offset)

    results = [written(kernel, magic, wrapped=wrapped, extend=extend) for kernel in (compiled, twin)]
    assert results[0] == results[1]


@needs_compiled
@given(fields=some_fields, magic=some_magic, wrapped=st.booleans(), stamped=st.booleans())
def test_both_kernels_write_the_same_bytes(fields: list[Fields], magic: int, wrapped: bool, stamped: bool) -> None:
    def results(kernel: Any) -> Any:
        records = records_from(kernel, fields, base_offset=SMALLEST, step=2**60)
        return written(
            kernel, magic, wrapped=wrapped, extend=lambda writer: writer.extend_records(records, False, stamped)
        )

    assert results(compiled) == results(twin)


@each_kernel
def test_the_checksum_is_that_of_zlib_for_every_length(kernel: Any) -> None:
    for length in range(100):
        value = bytes(range(7, 7 + length))
        writer = kernel.MessageWriter(0)
        writer.extend_records([kernel.Record(5, -1, None, value)])
        assert bytes(writer.messages()) == message(5, value, magic=0)


# ---- reading ----

FAULTS: dict[str, tuple[bytes, int, str, ErrorCode]] = {
    "a message cut in its size": (message(0, b"v")[:11], 0, "cut short: 11 bytes", ErrorCode.CORRUPT_MESSAGE),
    "a message cut in its value": (message(0, b"v")[:-1], 0, "cut short: 34 bytes", ErrorCode.CORRUPT_MESSAGE),
    "a size too small for any format": (bytes(12), 8, "message size 0 is below 14", ErrorCode.CORRUPT_MESSAGE),
    "a negative size": (b"\0" * 8 + b"\xff" * 9, 8, "message size -1 is below 14", ErrorCode.CORRUPT_MESSAGE),
    "a size too small for its format": (
        struct.pack(">qiIb", 0, 21, 0, 1) + bytes(16),
        8,
        "message size 21 is below 22",
        ErrorCode.CORRUPT_MESSAGE,
    ),
    "an unknown format": (message(0, b"v", magic=2), 16, "magic 2 is not that", ErrorCode.CORRUPT_MESSAGE),
    "a changed byte": (message(0, b"v")[:-1] + b"w", 12, "the message's CRC is 0x", ErrorCode.CORRUPT_MESSAGE),
    "a key beyond the message": (
        message(0, None, magic=0, key=b"")[:12]
        + struct.pack(">Ibbii", zlib.crc32(struct.pack(">bbii", 0, 0, 1, -1)), 0, 0, 1, -1),
        18,
        "key length 1 is below -1 or beyond",
        ErrorCode.INVALID_RECORD,
    ),
    "a value length below -1": (
        message(0, None, magic=0, key=b"")[:12]
        + struct.pack(">Ibbii", zlib.crc32(struct.pack(">bbii", 0, 0, -1, -2)), 0, 0, -1, -2),
        22,
        "value length -2 is below -1 or beyond",
        ErrorCode.INVALID_RECORD,
    ),
    "a compressed message": (message(0, b"v", attributes=3), 17, "compressed with codec 3", ErrorCode.INVALID_RECORD),
}


@each_kernel
@pytest.mark.parametrize("name", FAULTS)
def test_a_malformed_run_is_refused_and_the_error_says_why_and_where(kernel: Any, name: str) -> None:
    bad, position, reason, code = FAULTS[name]
    good = message(0, b"good")
    run = MessageRun(b"---" + good + bad, 3, 3 + len(good) + len(bad))
    calls: list[Callable[[], Any]] = [
        lambda: kernel.scan_run(run),
        lambda: kernel.read_run(run),
        lambda: kernel.append_run(kernel.RecordWriter(), run, True),
        lambda: kernel.MessageWriter(1).extend_run(run),
    ]
    for call in calls:
        with pytest.raises(ProtocolError) as caught:
            call()
        assert reason in caught.value.reason
        assert caught.value.offset == 3 + len(good) + position
        assert caught.value.code is code


@each_kernel
def test_a_run_must_lie_within_its_buffer(kernel: Any) -> None:
    data = message(0, b"v")
    for start, stop in ((-1, 5), (6, 5), (0, len(data) + 1)):
        with pytest.raises(IndexError, match=f"bytes {start} to {stop} are not a range of {len(data)} bytes"):
            kernel.scan_run(MessageRun(data, start, stop))
    for function in (kernel.message_at, kernel.run_end):
        with pytest.raises(IndexError, match=f"bytes {len(data) + 1} to"):
            function(whole(data), len(data) + 1)


@each_kernel
def test_the_plain_messages_end_where_something_else_begins(kernel: Any) -> None:
    plain = message(0, b"a", magic=0) + message(1, b"b", magic=1)
    others = [message(2, b"c", attributes=1), message(2, b"c", magic=2), message(2, b"c")[:-1], bytes(40), b"\0" * 3]
    for other in others:
        run = MessageRun(b"--" + plain + other, 2, 2 + len(plain + other))
        assert kernel.run_end(run, 2) == 2 + len(plain)
    assert kernel.run_end(whole(plain), 0) == len(plain)
    assert kernel.run_end(whole(b""), 0) == 0


@each_kernel
def test_the_last_offset_is_found_without_a_look_at_the_messages(kernel: Any) -> None:
    assert kernel.last_offset(b"") == 0
    assert kernel.last_offset(message(4, b"a") + message(9, b"b", attributes=1)) == 9
    assert kernel.last_offset(message(4, b"a") + message(9, b"b")[:12] + b"cut") == 9


@each_kernel
def test_a_message_is_given_as_its_run_has_it(kernel: Any) -> None:
    data = message(4, b"v", key=b"k", timestamp=70, attributes=0x0B)
    assert kernel.message_at(whole(data), 0) == StoredMessage(4, 70, b"k", b"v", 1, 3, True, len(data))
    inside = whole(data, codec=1, shift=100)
    assert kernel.message_at(inside, 0) == StoredMessage(104, 70, b"k", b"v", 1, 3, False, len(data))
    stamped = whole(data, codec=1, append_time=900)
    assert kernel.message_at(stamped, 0) == StoredMessage(4, 900, b"k", b"v", 1, 3, True, len(data))
    assert kernel.message_at(whole(data[:-1]), 0) is None


@each_kernel
def test_the_totals_sum_up_a_run(kernel: Any) -> None:
    data = (
        message(5, b"a", timestamp=70)
        + message(6, b"b", timestamp=90, key=b"k", attributes=0x08)
        + message(7, None, magic=0)
    )
    assert kernel.scan_run(whole(data)) == MessageTotals(
        messages=3,
        magic_1=2,
        null_keys=2,
        log_append_times=1,
        first_offset=5,
        consecutive=True,
        min_timestamp=-1,
        max_timestamp=90,
    )
    assert not kernel.scan_run(whole(data + message(9, b"d"))).consecutive
    assert kernel.scan_run(whole(b"")) == (0, 0, 0, 0, 0, False, 0, 0)


@each_kernel
def test_an_offset_out_of_range_is_refused_where_it_is_relative(kernel: Any) -> None:
    data = message(3, b"v")
    assert kernel.read_run(whole(data, codec=1, shift=LARGEST - 3))[0].offset == LARGEST
    for shift in (LARGEST - 2, -4):
        with pytest.raises(ProtocolError, match=f"offset 3 relative to {shift} is out of range"):
            kernel.read_run(whole(data, codec=1, shift=shift))


# ---- to v2 records ----


@each_kernel
@given(fields=some_fields, magic=some_magic)
def test_messages_become_the_records_that_they_were(kernel: Any, fields: list[Fields], magic: int) -> None:
    fields = [(timestamp if magic else -1, key, value, []) for timestamp, key, value, _ in fields]
    data = b"".join(
        message(offset, value, magic=magic, timestamp=timestamp, key=key)
        for offset, (timestamp, key, value, _) in enumerate(fields, start=40)
    )
    writer = kernel.RecordWriter(base_offset=40)
    assert kernel.append_run(writer, whole(data)) == kernel.scan_run(whole(data))
    assert bytes(writer.records()) == section_of(fields)
    assert (writer.count, writer.max_timestamp) == (len(fields), max(timestamp for timestamp, *_ in fields))


@each_kernel
def test_runs_follow_one_another_into_a_writer_at_their_offsets_or_at_the_next_ones(kernel: Any) -> None:
    first, second = message(40, b"a") + message(42, b"b"), message(0, b"c")
    kept = kernel.RecordWriter(base_offset=40)
    kernel.append_run(kept, whole(first))
    kernel.append_run(kept, whole(second, codec=1, shift=45))
    assert [r.offset for r in kernel.read(kept.records(), 3, 40, kept.base_timestamp)] == [40, 42, 45]
    numbered = kernel.RecordWriter(base_offset=7)
    for part in (first, second):
        kernel.append_run(numbered, whole(part), renumber=True)
    assert [r.offset for r in kernel.read(numbered.records(), 3, 7, numbered.base_timestamp)] == [7, 8, 9]


@each_kernel
@pytest.mark.parametrize(
    ("data", "reason", "code"),
    [
        (message(3, b"a"), "offset 3 follows 3, and", ErrorCode.INVALID_RECORD),
        (message(-9, b"a"), "offset -9 follows 3, and", ErrorCode.INVALID_RECORD),
        (message(2**31, b"a"), "offset 2147483648 follows 0, the first", ErrorCode.INVALID_RECORD),
        (message(4, b"a", timestamp=SMALLEST), "too far apart for one batch", ErrorCode.INVALID_RECORD),
        (message(4, bytes(99)), "up to offset 4 pass the batch's limit", ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
def test_what_a_batch_cannot_take_next_is_refused_and_the_rest_stays(
    kernel: Any, data: bytes, reason: str, code: ErrorCode
) -> None:
    writer = kernel.RecordWriter(limit=60)
    with pytest.raises(ProtocolError) as caught:
        kernel.append_run(writer, whole(message(3, b"v") + data))
    assert reason in caught.value.reason
    assert (caught.value.code, caught.value.offset) == (code, len(message(3, b"v")))
    assert (writer.count, writer.last_offset_delta) == (1, 3)


@each_kernel
def test_records_may_be_larger_than_the_messages_they_were(kernel: Any) -> None:
    # A timestamp of ten bytes in the record has no bytes at all in a message of magic 0.
    data = message(0, None, timestamp=LARGEST - 1) + b"".join(
        message(offset, b"", magic=0, key=b"") for offset in range(2**20, 2**20 + 5000)
    )
    writer = kernel.RecordWriter()
    kernel.append_run(writer, whole(data))
    found = kernel.read(writer.records(), 5001, 0, writer.base_timestamp)
    assert {(record.timestamp, record.value) for record in found[1:]} == {(-1, b"")}
    assert found[-1].offset == 2**20 + 4999


# ---- writing ----


@each_kernel
@given(fields=some_fields, magic=some_magic)
def test_what_is_written_is_read_back(kernel: Any, fields: list[Fields], magic: int) -> None:
    records = records_from(kernel, fields, base_offset=40, step=3)
    expected = [kernel.Record(r.offset, r.timestamp if magic else -1, r.key, r.value) for r in records]
    plain, relative = kernel.MessageWriter(magic), kernel.MessageWriter(magic, wrapped=True)
    for writer in (plain, relative):
        writer.extend_records(records[:1])
        writer.extend_records(iter(records[1:]))
        assert (writer.magic, writer.count, writer.last_offset) == (magic, len(fields), records[-1].offset)
        assert writer.max_timestamp == max(-1, *(record.timestamp for record in records))
    assert kernel.read_run(whole(bytes(plain.messages()))) == expected
    shift = 40 if magic else 0
    assert kernel.read_run(whole(bytes(relative.messages()), codec=1, shift=shift)) == expected


@each_kernel
@pytest.mark.parametrize("magic", [0, 1])
def test_a_section_and_its_records_are_written_alike(kernel: Any, magic: int) -> None:
    section = section_of(EXAMPLE)
    for append_time in (None, 99):
        records = kernel.read(section, 4, 10, NOW, append_time)
        for first in (0, 11, 12, 20):
            kept = [record for record in records if record.offset >= first]
            one, other = (kernel.MessageWriter(magic, wrapped=True) for _ in range(2))
            one.extend_section(section, 4, 10, NOW, append_time, first)
            other.extend_records(kept, drop_headers=True, log_append_time=append_time is not None)
            assert bytes(one.messages()) == bytes(other.messages())
            assert (one.count, one.last_offset, one.max_timestamp) == (
                len(kept),
                other.last_offset,
                other.max_timestamp,
            )


@each_kernel
def test_messages_are_rewritten_with_their_types_of_timestamp(kernel: Any) -> None:
    old = [message(5, b"a", attributes=0x08, key=b"k"), message(4, b"b"), message(4, None, magic=0, extra=b"junk")]
    newer, older = kernel.MessageWriter(1), kernel.MessageWriter(0)
    for writer in (newer, older):
        writer.extend_run(whole(b"".join(old)), first_offset=4)
        writer.extend_run(whole(message(3, b"c")), first_offset=4)
    assert bytes(newer.messages()) == old[0] + old[1] + message(4, None, timestamp=-1)
    plain = (message(5, b"a", magic=0, key=b"k"), message(4, b"b", magic=0), message(4, None, magic=0))
    assert bytes(older.messages()) == b"".join(plain)


@each_kernel
def test_offsets_increase_in_a_set_that_is_going_to_be_wrapped(kernel: Any) -> None:
    for magic in (0, 1):
        for second, reason in ((5, "offset 5 follows 5"), (5 + 2**31, "follows 5, the first of its set")):
            writer = kernel.MessageWriter(magic, wrapped=True)
            with pytest.raises(ProtocolError, match=reason):
                writer.extend_run(whole(message(5, b"a") + message(second, b"b")))
            assert writer.count == 1


@each_kernel
def test_records_that_the_format_cannot_hold_are_the_callers_fault(kernel: Any) -> None:
    record = kernel.Record

    class Alike:
        offset, timestamp, key, value, headers = 3, 2**63, None, b"v", ()

    bad: list[tuple[Any, str]] = [
        ([record(1, 0, None, b"v", [("h", b"w")])], "record 1 has headers, which magic 1 cannot carry"),
        ([record(1, 0, None, b"v"), record(1, 0, None, b"w")], "offset 1 does not follow 1"),
        ([record(SMALLEST, 0, None, b"v"), record(0, 0, None, b"w")], "offset 0 does not fit"),
        ([record(7, 0, None, bytes(2**31))], "offset 7 does not fit the format: it is over 2 GiB"),
        ([Alike()], "offset 3 does not fit the format"),
    ]
    for records, reason in bad:
        with pytest.raises(EncodeError, match=reason):
            kernel.MessageWriter(1, wrapped=True).extend_records(records)
    with pytest.raises(EncodeError, match="magic 0 or 1, not 2"):
        kernel.MessageWriter(2)


@each_kernel
def test_what_looks_like_a_record_is_taken_for_one(kernel: Any) -> None:
    other = twin if kernel is compiled else compiled
    if other is None:
        pytest.skip("the compiled kernels were not built")
    writer = kernel.MessageWriter(1)
    writer.extend_records(records_from(other, EXAMPLE))
    expected = kernel.MessageWriter(1)
    expected.extend_records(records_from(kernel, EXAMPLE))
    assert bytes(writer.messages()) == bytes(expected.messages())


# ---- threads ----


@needs_compiled
def test_a_writer_refuses_a_second_thread_while_it_is_busy() -> None:
    writer = compiled.MessageWriter(1)

    def records() -> Iterator[Any]:
        writer.extend_run(whole(message(0, b"v")))
        yield compiled.Record(0, 0, None, b"v")

    with pytest.raises(RuntimeError, match="another thread is writing"):
        writer.extend_records(records())
    writer.extend_records([compiled.Record(0, 0, None, b"v")])


LARGE_SET = b"".join(message(offset, bytes(1000)) for offset in range(100)) * 100
LARGE_COUNT = 10_000


def large_section() -> bytes:
    writer = twin.RecordWriter()
    for _ in range(LARGE_COUNT):
        writer.append(NOW, None, bytes(1000))
    return bytes(writer.records())


KERNELS: dict[str, Callable[[bytes], object]] = {
    "scan": lambda _: compiled.scan_run(whole(LARGE_SET)),
    "append": lambda _: compiled.append_run(compiled.RecordWriter(), whole(LARGE_SET), True),
    "extend messages": lambda _: compiled.MessageWriter(0).extend_run(whole(LARGE_SET)),
    "extend section": lambda section: compiled.MessageWriter(1).extend_section(section, LARGE_COUNT, 0, NOW),
    "one large message": lambda _: compiled.message_at(whole(message(0, LARGE_SET)), 0),
}


@needs_compiled
@pytest.mark.parametrize("name", KERNELS)
def test_other_threads_run_while_a_kernel_is_at_work(name: str) -> None:
    section = large_section() if "section" in name else b""
    interval = sys.getswitchinterval()

    def other_thread_runs() -> bool:
        gate, ran = threading.Lock(), threading.Event()

        def wait() -> None:
            with gate:
                ran.set()

        gate.acquire()
        thread = threading.Thread(target=wait)
        thread.start()
        # From here on the thread can run only if this one lets go of the interpreter by itself.
        sys.setswitchinterval(60)
        gate.release()
        KERNELS[name](section)
        result = ran.is_set()
        sys.setswitchinterval(interval)
        thread.join()
        return result

    try:
        assert any(other_thread_runs() for _ in range(50))
    finally:
        sys.setswitchinterval(interval)
