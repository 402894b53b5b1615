"""The compiled kernels and their Python twins: one behaviour, held to each other and to hand-made bytes."""

import gc
import pickle
import subprocess
import sys
import tracemalloc
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.record import _twin as twin
from ottla.record._kernel_types import LARGEST_SECTION
from ottla.wire.errors import EncodeError, ErrorCode, ProtocolError
from tests.unit.record.samples import (
    EXAMPLE,
    NOW,
    AiokafkaBuilder,
    Fields,
    compiled,
    dated_fields,
    gather,
    outcome,
    plain,
    records_of,
    section_of,
    some_fields,
)

needs_compiled = pytest.mark.skipif(compiled is None, reason="the compiled kernels were not built")
each_kernel = pytest.mark.parametrize(
    "kernel", [pytest.param(compiled, id="compiled", marks=needs_compiled), pytest.param(twin, id="twin")]
)

LARGEST = 2**63 - 1


@each_kernel
def test_a_record_compares_hashes_prints_and_pickles_by_its_fields(kernel: Any) -> None:
    record = kernel.Record(7, NOW, b"k", None, [("h", b"v")])
    same = kernel.Record(offset=7, timestamp=NOW, key=b"k", value=None, headers=(("h", b"v"),))
    assert record == same
    assert hash(record) == hash(same)
    assert record != kernel.Record(8, NOW, b"k", None, [("h", b"v")])
    assert record != (7, NOW, b"k", None, (("h", b"v"),))
    assert repr(record) == (f"Record(offset=7, timestamp={NOW}, key=b'k', value=None, headers=(('h', b'v'),))")
    assert pickle.loads(pickle.dumps(record)) == record


@each_kernel
def test_a_record_cannot_be_changed_and_takes_only_what_it_can_hold(kernel: Any) -> None:
    record = kernel.Record(7, NOW, b"k", None)
    with pytest.raises(AttributeError):
        record.offset = 8
    with pytest.raises(TypeError, match="a key is bytes or None, not str"):
        kernel.Record(0, 0, "k", None)
    with pytest.raises(TypeError, match="a value is bytes or None, not int"):
        kernel.Record(0, 0, None, 5)
    with pytest.raises(OverflowError):
        kernel.Record(2**63, 0, None, None)


@each_kernel
def test_bytes_of_a_subclass_become_plain_bytes(kernel: Any) -> None:
    class Tagged(bytes):
        pass

    assert type(kernel.Record(0, 0, Tagged(b"k"), None).key) is bytes
    tagged: list[Fields] = [(0, Tagged(b"k"), Tagged(b"v"), [("h", Tagged(b"w"))])]
    assert section_of(tagged, kernel) == section_of([(0, b"k", b"v", [("h", b"w")])], kernel)


# ---- writing and reading ----


@each_kernel
def test_a_record_is_written_as_the_protocol_guide_lays_it_out(kernel: Any) -> None:
    writer = kernel.RecordWriter()
    assert writer.append(NOW, b"key", b"value", [("h", b"x"), ("n", None)]) == 0
    assert writer.append(NOW - 3, None, None) == 1
    first = "2a 00 00 00 06 6b6579 0a 76616c7565 04 02 68 02 78 02 6e 01"
    second = "0c 00 05 02 01 01 00"
    assert bytes(writer.records()).hex() == bytes.fromhex(first + second).hex()
    assert (writer.count, writer.last_offset_delta, writer.base_timestamp, writer.max_timestamp) == (2, 1, NOW, NOW)


@needs_compiled
@given(dated_fields)
def test_both_kernels_write_the_same_bytes_as_aiokafka(fields: list[Fields]) -> None:
    section = section_of(fields, compiled)
    assert section == section_of(fields, twin)
    builder = AiokafkaBuilder(2, 0, False, -1, -1, -1, 2**30)
    for offset, (timestamp, key, value, headers) in enumerate(fields):
        assert builder.append(offset, timestamp, key, value, headers) is not None
    assert bytes(builder.build())[61:] == section


@needs_compiled
@given(some_fields)
def test_both_kernels_write_the_same_bytes(fields: list[Fields]) -> None:
    assert section_of(fields, compiled) == section_of(fields, twin)


@each_kernel
@given(fields=some_fields, base_offset=st.integers(0, 2**62))
def test_what_is_written_is_read_back(kernel: Any, fields: list[Fields], base_offset: int) -> None:
    section = section_of(fields, kernel)
    expected = [plain(record) for record in records_of(fields, base_offset)]
    found = kernel.read(section, len(fields), base_offset, fields[0][0])
    assert [plain(record) for record in found] == expected
    stamped = kernel.read(section, len(fields), base_offset, fields[0][0], NOW)
    assert [record.timestamp for record in stamped] == [NOW] * len(fields)


@each_kernel
@given(fields=some_fields)
def test_a_scan_sums_up_what_the_records_hold(kernel: Any, fields: list[Fields]) -> None:
    summary = kernel.scan(section_of(fields, kernel), len(fields))
    deltas = [timestamp - fields[0][0] for timestamp, *_ in fields]
    headers = [header for *_, group in fields for header in group]
    assert summary.last_offset_delta == len(fields) - 1
    assert (summary.min_timestamp_delta, summary.max_timestamp_delta) == (min(deltas), max(deltas))
    assert summary.max_timestamp_offset_delta == deltas.index(max(deltas))
    assert summary.null_keys == sum(key is None for _, key, _, _ in fields)
    assert summary.key_bytes == sum(len(key or b"") for _, key, _, _ in fields)
    assert summary.value_bytes == sum(len(value or b"") for _, _, value, _ in fields)
    assert summary.header_count == len(headers)
    assert summary.header_key_bytes == sum(len(key.encode()) for key, _ in headers)
    assert summary.header_value_bytes == sum(len(value or b"") for _, value in headers)


@each_kernel
def test_an_empty_section_has_no_records(kernel: Any) -> None:
    assert kernel.scan(b"", 0)[:4] == (-1, 0, 0, -1)
    assert kernel.read(b"", 0, 0, 0) == []


@each_kernel
def test_any_contiguous_buffer_is_read_and_no_other(kernel: Any) -> None:
    section = section_of(EXAMPLE)
    words = array("i", section + bytes(-len(section) % 4))
    tail = -len(section) % 4
    assert len(kernel.read(bytearray(section), 4, 0, NOW)) == 4
    assert len(kernel.read(memoryview(b"--" + section)[2:], 4, 0, NOW)) == 4
    with pytest.raises(ProtocolError, match=f"{tail} bytes follow"):
        kernel.read(words, 4, 0, NOW)
    with pytest.raises(BufferError):
        kernel.read(memoryview(section)[::2], 1, 0, 0)


@each_kernel
def test_header_keys_that_are_not_utf8_are_read_with_replacement_characters(kernel: Any) -> None:
    section = bytes.fromhex("1400000001010204ff680261")
    section = bytes([2 * (len(section) - 1)]) + section[1:]
    [record] = kernel.read(section, 1, 0, 0)
    assert record.headers == (("\ufffdh", b"a"),)


@each_kernel
def test_header_keys_without_a_utf8_form_are_refused(kernel: Any) -> None:
    with pytest.raises(EncodeError, match="not valid Unicode"):
        kernel.RecordWriter().append(0, None, None, [("\ud800", None)])
    with pytest.raises(TypeError, match="a header key is a str, not bytes"):
        kernel.RecordWriter().append(0, None, None, [(b"h", None)])
    with pytest.raises(TypeError, match="a header value is bytes or None, not str"):
        kernel.RecordWriter().append(0, None, None, [("h", "v")])


@each_kernel
def test_the_writer_stops_at_its_limit_but_takes_the_first_record_whatever_its_size(kernel: Any) -> None:
    writer = kernel.RecordWriter(limit=100)
    assert writer.append(NOW, None, bytes(500)) == 0
    assert writer.append(NOW, None, b"") is None
    exact = kernel.RecordWriter(limit=2 * len(section_of([(0, None, b"12345", [])])))
    assert exact.append(0, None, b"12345") == 0
    assert exact.append(0, None, b"12345") == 1
    assert exact.append(0, None, None) is None
    assert exact.size == exact.limit
    assert exact.count == 2


@each_kernel
def test_offsets_may_leave_gaps_but_not_go_back(kernel: Any) -> None:
    writer = kernel.RecordWriter(base_offset=100)
    assert writer.append(0, None, None, (), 103) == 3
    assert writer.append(0, None, None) == 4
    with pytest.raises(EncodeError, match="offset 104 is not after 104"):
        writer.append(0, None, None, (), 104)
    with pytest.raises(EncodeError, match="offset 99 "):
        writer.append(0, None, None, (), 99)
    with pytest.raises(EncodeError, match="2\\*\\*31 or more past 100"):
        writer.append(0, None, None, (), 100 + 2**31)
    assert writer.append(0, None, None, (), 99 + 2**31) == 2**31 - 1
    with pytest.raises(EncodeError, match="offset 2147483748"):
        writer.append(0, None, None)
    section = bytes(writer.records())
    assert kernel.scan(section, 3, True).last_offset_delta == 2**31 - 1
    with pytest.raises(ProtocolError, match="offset delta 3 does not follow"):
        kernel.scan(section, 3)


@each_kernel
def test_timestamps_reach_as_far_as_64_bits_do(kernel: Any) -> None:
    writer = kernel.RecordWriter(base_timestamp=-1)
    for timestamp in (LARGEST - 1, -(2**63), 0):
        writer.append(timestamp, None, None)
    section = bytes(writer.records())
    assert [record.timestamp for record in kernel.read(section, 3, 0, -1)] == [LARGEST - 1, -(2**63), 0]
    with pytest.raises(EncodeError, match="more than 64 bits away"):
        writer.append(LARGEST, None, None)
    with pytest.raises(OverflowError):
        writer.append(2**63, None, None)
    with pytest.raises(ProtocolError, match="outside 64 bits"):
        kernel.read(section, 3, 0, 5)
    assert len(kernel.read(section, 3, 0, 5, NOW)) == 3


@each_kernel
def test_an_offset_past_the_largest_is_refused(kernel: Any) -> None:
    section = section_of(EXAMPLE)
    assert kernel.read(section, 4, LARGEST - 3, 0)[3].offset == LARGEST
    with pytest.raises(ProtocolError, match="offset delta 3 leads past the largest offset"):
        kernel.read(section, 4, LARGEST - 2, 0)


# ---- hostile bytes ----

FAULTS = {
    "a record count beyond the bytes": ("0c 00 00 00 01 01 00", 2, "2 records cannot be held in 7 bytes"),
    "a negative record count": ("0c 00 00 00 01 01 00", -1, "-1 records cannot be held"),
    "a length varint that never ends": ("80 80 80 80 80 80 80", 1, "a varint does not fit its 32 bits"),
    "a length varint of more than 32 bits": ("ff ff ff ff 1f 00 00", 1, "a varint does not fit its 32 bits"),
    "a negative record length": ("0b 00 00 00 01 01 00", 1, "record length -6 is below 6"),
    "a record length beyond the bytes": ("0e 00 00 00 01 01 00", 1, "record length 7 is below 6 or beyond"),
    "a record length too short for its fields": ("0a 00 00 00 01 01 00", 1, "record length 5 is below 6"),
    "a timestamp varint that leaves the record": ("0c 00 80 80 80 80 80 00", 1, "end inside a varint"),
    "a timestamp of more than 64 bits": (
        "1e 00 ff ff ff ff ff ff ff ff ff 02 00 01 01 00",
        1,
        "a varint does not fit its 64 bits",
    ),
    "an offset delta that does not start at 0": ("0c 00 00 02 01 01 00", 1, "offset delta 1 does not follow"),
    "a negative offset delta": ("0c 00 00 01 01 01 00", 1, "offset delta -1 does not follow"),
    "a key length below -1": ("0c 00 00 00 03 01 00", 1, "key length -2 is below -1"),
    "a key beyond the record": ("0c 00 00 00 06 01 00", 1, "key length 3 is below -1 or beyond the record"),
    "a value beyond the record": ("0c 00 00 00 01 04 00", 1, "value length 2 is below -1 or beyond the record"),
    "a negative header count": ("0c 00 00 00 01 01 01", 1, "header count -1 is negative"),
    "two billion headers": ("16 00 00 00 01 01 fe ff ff ff 0f 00", 1, "header count 2147483647 is negative or"),
    "a null header key": ("10 00 00 00 01 01 02 01 00", 1, "header key length -1 is negative"),
    "a header key beyond the record": ("10 00 00 00 01 01 02 08 00", 1, "header key length 4"),
    "a header value beyond the record": ("10 00 00 00 01 01 02 00 08", 1, "header value length 4"),
    "bytes after the headers": ("12 00 00 00 01 01 02 00 00 00", 1, "leaves 1 bytes after its last field"),
    "bytes after a record without headers": ("0e 00 00 00 01 01 00 00", 1, "leaves 1 bytes after its last field"),
    "bytes after the last record": ("0c 00 00 00 01 01 00 00", 1, "1 bytes follow the last record"),
}


@each_kernel
@pytest.mark.parametrize("name", FAULTS)
def test_a_malformed_section_is_refused_and_the_error_says_why_and_where(kernel: Any, name: str) -> None:
    text, count, reason = FAULTS[name]
    data = bytes.fromhex(text)
    calls: dict[str, Callable[[], Any]] = {
        "scan": lambda: kernel.scan(data, count),
        "read": lambda: kernel.read(data, count, 0, 0),
        "columns": lambda: gather(kernel, data, count, 0, 0),
        "columns without headers": lambda: gather(kernel, data, count, 0, 0, headers=False),
    }
    if "does not start at 0" in name:
        # Readers take what compaction leaves; the scan of what a client sends does not.
        calls = {"scan": calls["scan"]}
    for call in calls.values():
        with pytest.raises(ProtocolError) as caught:
            call()
        assert reason in str(caught.value)
        assert caught.value.code is ErrorCode.INVALID_RECORD
        assert "records cannot be held" in str(caught.value) or caught.value.offset is not None


def all_outcomes(kernel: Any, data: bytes, count: int) -> list[Any]:
    return [
        outcome(lambda: kernel.scan(data, count)),
        outcome(lambda: kernel.scan(data, count, True)),
        outcome(lambda: kernel.read(data, count, 5, NOW)),
        outcome(lambda: kernel.read(data, count, LARGEST - 2, LARGEST - 50)),
        outcome(lambda: gather(kernel, data, count, 5, NOW)),
        outcome(lambda: gather(kernel, data, count, LARGEST - 2, NOW, None, 6, LARGEST)),
        outcome(lambda: gather(kernel, data, count, 5, NOW, 17, 6, 8, keys=False, headers=False)),
    ]


@needs_compiled
@settings(max_examples=300)
@given(st.binary(max_size=60), st.integers(-2, 9))
def test_random_bytes_get_the_same_answer_from_both_kernels(data: bytes, count: int) -> None:
    assert all_outcomes(compiled, data, count) == all_outcomes(twin, data, count)


@needs_compiled
@settings(max_examples=500)
@given(some_fields, st.data())
def test_cut_and_mutated_sections_get_the_same_answer_from_both_kernels(fields: list[Fields], data: Any) -> None:
    section = bytearray(section_of(fields))
    for _ in range(data.draw(st.integers(0, 3))):
        section[data.draw(st.integers(0, len(section) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(section[: data.draw(st.integers(0, len(section)))]) if data.draw(st.booleans()) else bytes(section)
    count = len(fields) + data.draw(st.integers(-1, 1))
    assert all_outcomes(compiled, cut, count) == all_outcomes(twin, cut, count)


@each_kernel
def test_claims_of_two_billion_elements_in_twenty_bytes_allocate_nothing(kernel: Any) -> None:
    many_headers = bytes.fromhex("2600000001 01 feffffff0f") + bytes(9)
    gc.collect()
    tracemalloc.start()
    try:
        for count in (2**31 - 1, 2**62):
            with pytest.raises(ProtocolError, match="cannot be held"):
                kernel.read(bytes(20), count, 0, 0)
        with pytest.raises(ProtocolError, match="header count"):
            kernel.read(many_headers, 1, 0, 0)
        with pytest.raises(ProtocolError, match="header count"):
            gather(kernel, many_headers, 1, 0, 0)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@needs_compiled
def test_the_collector_never_shows_headers_that_are_half_read() -> None:
    """A hole in a tuple is a null pointer, which most who look at it do not survive."""
    code = """
import gc
from ottla.record._kernels import RecordWriter, read
writer = RecordWriter()
writer.append(0, None, None, [(f"header {number}", b"") for number in range(3000)])
looks, seen = 0, []
def look(phase, info):
    global looks
    looks += 1
    seen.extend(found for found in gc.get_objects() if type(found) is tuple and len(found) == 3000)
gc.callbacks.append(look)
gc.set_threshold(1)
record, = read(writer.records(), 1, 0, 0)
gc.collect()
print(looks > 0, len(seen), len(record.headers))
"""
    # Nor when it is whole: there is nothing to find in it.
    assert run_python(code) == "True 0 3000\n"


# ---- choosing ----


def run_python(code: str, **environment: str) -> str:
    command = [sys.executable, "-W", "always", "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path), **environment}
    )
    return done.stdout + done.stderr


def test_the_python_kernels_are_used_without_a_word_when_asked_for() -> None:
    text = run_python("from ottla.record import kernels; print(kernels.COMPILED)", OTTLA_PURE_PYTHON="1")
    assert text == "False\n"


def test_missing_compiled_kernels_are_reported_once() -> None:
    code = """
import sys
sys.modules["ottla.record._kernels"] = None
from ottla.record import kernels
import ottla.record.batch, ottla.record.build
print(kernels.COMPILED)
"""
    text = run_python(code)
    assert text.count("RuntimeWarning: Ottla's compiled modules are not installed") == 1
    assert text.startswith("False\n")


@needs_compiled
def test_the_compiled_kernels_are_used_where_they_were_built() -> None:
    assert run_python("from ottla.record import kernels; print(kernels.COMPILED)") == "True\n"


def test_the_largest_section_leaves_room_for_the_batch_header() -> None:
    assert LARGEST_SECTION + 61 - 12 == 2**31 - 1
