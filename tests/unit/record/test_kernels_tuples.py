"""Records as a consumer hands them out: the same from both kernels, and the same as `read` has them."""

import gc
from collections import namedtuple
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.record import _twin as twin
from ottla.record._legacy_types import MessageRun
from ottla.wire.errors import ProtocolError
from tests.unit.record.samples import EXAMPLE, NOW, Fields, compiled, outcome, section_of, some_fields
from tests.unit.record.test_kernels import FAULTS, LARGEST, each_kernel, needs_compiled, run_python
from tests.unit.record.test_kernels_legacy import message, some_messages, whole


class Row(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def place(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


def rows(
    kernel: Any, data: bytes, count: int, base_offset: int = 0, append_time: int | None = None, start_offset: int = 0
) -> list[Row]:
    found: list[Row] = kernel.read_tuples(data, count, base_offset, NOW, append_time, start_offset, Row, "t", 3, 0)
    return found


@each_kernel
def test_the_records_are_instances_of_the_type_that_was_handed_in(kernel: Any) -> None:
    first, second, *_ = rows(kernel, section_of(EXAMPLE), 4, 10)
    assert type(first) is Row
    assert first == Row("t", 3, 10, NOW, 0, b"k1", b"first", ())
    assert second.headers == (("trace", b"a1"), ("ünïcode", None), ("", b""))
    assert (first.place, first._replace(offset=11).place) == ("t-3@10", "t-3@11")
    assert hash(first) == hash(tuple(first))


@each_kernel
@given(fields=some_fields, base_offset=st.integers(0, 2**62), append_time=st.none() | st.integers(0, 2**42))
def test_they_hold_what_read_has(kernel: Any, fields: list[Fields], base_offset: int, append_time: int | None) -> None:
    section = section_of(fields)
    base_timestamp = fields[0][0]
    expected = [
        Row("t", 3, record.offset, record.timestamp, 1, record.key, record.value, record.headers)
        for record in kernel.read(section, len(fields), base_offset, base_timestamp, append_time)
    ]
    found = kernel.read_tuples(section, len(fields), base_offset, base_timestamp, append_time, 0, Row, "t", 3, 1)
    assert found == expected
    later = kernel.read_tuples(
        section, len(fields), base_offset, base_timestamp, append_time, base_offset + 2, Row, "t", 3, 1
    )
    assert later == expected[2:]


@each_kernel
def test_records_share_what_they_have_in_common(kernel: Any) -> None:
    topic = "".join(["some", "topic"])
    found = kernel.read_tuples(section_of(EXAMPLE), 4, 0, NOW, None, 0, Row, topic, 1000, 0)
    assert all(row.topic is topic for row in found)
    assert all(row.partition is found[0].partition for row in found)
    assert found[0].headers is found[2].headers == ()


@each_kernel
@pytest.mark.parametrize("name", FAULTS)
def test_a_malformed_section_is_refused_as_read_refuses_it(kernel: Any, name: str) -> None:
    text, count, reason = FAULTS[name]
    data = bytes.fromhex(text)
    if "does not start at 0" in name:
        assert len(rows(kernel, data, count)) == 1
        return
    # Of a record that is left out everything is checked as well.
    for start_offset in (0, 5):
        with pytest.raises(ProtocolError) as caught:
            rows(kernel, data, count, start_offset=start_offset)
        assert reason in str(caught.value)
        assert outcome(lambda: kernel.read(data, count, 0, NOW)) == outcome(lambda: rows(kernel, data, count))


def all_outcomes(kernel: Any, data: bytes, count: int) -> list[Any]:
    return [
        outcome(lambda: tuple(rows(kernel, data, count, 5))),
        outcome(lambda: tuple(rows(kernel, data, count, LARGEST - 2, None, LARGEST - 1))),
        outcome(lambda: tuple(rows(kernel, data, count, 5, 17, 6))),
    ]


@needs_compiled
@settings(max_examples=300)
@given(some_fields, st.data())
def test_cut_and_mutated_sections_get_the_same_answer_from_both_kernels(fields: list[Fields], data: Any) -> None:
    section = bytearray(section_of(fields))
    for _ in range(data.draw(st.integers(0, 3))):
        section[data.draw(st.integers(0, len(section) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(section[: data.draw(st.integers(0, len(section)))]) if data.draw(st.booleans()) else bytes(section)
    count = len(fields) + data.draw(st.integers(-1, 1))
    assert all_outcomes(compiled, cut, count) == all_outcomes(twin, cut, count)


# ---- old message sets ----


@each_kernel
def test_a_message_says_by_itself_whose_clock_its_timestamp_is_of(kernel: Any) -> None:
    data = (
        message(4, b"a", magic=0, key=b"k")
        + message(5, b"b", timestamp=NOW)
        + message(6, None, attributes=8, timestamp=NOW + 1)
    )
    found = kernel.read_run_tuples(whole(data), 0, Row, "t", 3)
    assert found == [
        Row("t", 3, 4, -1, -1, b"k", b"a", ()),
        Row("t", 3, 5, NOW, 0, None, b"b", ()),
        Row("t", 3, 6, NOW + 1, 1, None, None, ()),
    ]
    assert {type(row) for row in found} == {Row}
    assert {type(row.timestamp_type) for row in found} == {int}
    assert kernel.read_run_tuples(whole(data), 6, Row, "t", 3) == found[2:]


@needs_compiled
@given(st.lists(some_messages, max_size=4), st.none() | st.integers(0, 2**42), st.integers(0, 1), st.data())
def test_runs_get_the_same_answer_from_both_kernels(
    messages: list[bytes], append_time: int | None, codec: int, data: Any
) -> None:
    joined = bytearray(b"".join(messages))
    if joined and data.draw(st.booleans()):
        joined[data.draw(st.integers(0, len(joined) - 1))] = data.draw(st.integers(0, 255))
    run = MessageRun(bytes(joined), 0, len(joined), codec, 0, append_time)
    answers = [
        outcome(lambda kernel=kernel: tuple(kernel.read_run_tuples(run, 3, Row, "t", 3)))  # type: ignore[misc]
        for kernel in (compiled, twin)
    ]
    assert answers[0] == answers[1]


# ---- what may be handed in ----


class WithAttributes(Row):
    """Without slots, its instances have a dictionary."""


class Fewer(NamedTuple):
    topic: str
    partition: int


@each_kernel
@pytest.mark.parametrize(
    "record_type",
    [tuple, list, int, Fewer, WithAttributes, namedtuple("Others", "a b c d e f g h")],
)
def test_a_type_without_the_right_fields_is_refused(kernel: Any, record_type: type) -> None:
    with pytest.raises(
        TypeError, match=f"{record_type.__name__} is not a NamedTuple, without attributes of its own, of"
    ):
        kernel.read_tuples(b"", 0, 0, 0, None, 0, record_type, "t", 0, 0)
    with pytest.raises(TypeError, match="is not a NamedTuple"):
        kernel.read_run_tuples(whole(b""), 0, record_type, "t", 0)


@each_kernel
def test_arguments_of_other_types_are_refused(kernel: Any) -> None:
    for record_type, topic in ((None, "t"), (Row, None), (Row, b"t"), (Row("t", 0, 0, 0, 0, None, None, ()), "t")):
        with pytest.raises(TypeError):
            kernel.read_tuples(b"", 0, 0, 0, None, 0, record_type, topic, 0, 0)
    for partition, timestamp_type in ((2**31, 0), (0, 2**31), (-(2**31) - 1, 0)):
        with pytest.raises(OverflowError):
            kernel.read_tuples(b"", 0, 0, 0, None, 0, Row, "t", partition, timestamp_type)


# ---- memory ----


@needs_compiled
def test_the_collector_has_no_work_with_records() -> None:
    found = rows(compiled, section_of(EXAMPLE), 4)
    assert not any(gc.is_tracked(row) for row in found)
    assert not any(gc.is_tracked(header) for row in found for header in row.headers)


@needs_compiled
def test_the_collector_never_shows_a_record_that_is_half_made() -> None:
    """A hole in a tuple is a null pointer, which most who look at it do not survive."""
    code = """
import gc
from typing import NamedTuple
from ottla.record._kernels import RecordWriter, read_tuples
class Row(NamedTuple):
    topic: str; partition: int; offset: int; timestamp: int; timestamp_type: int; key: object; value: object
    headers: object
writer = RecordWriter()
for number in range(300):
    writer.append(number, b"key", b"value", [("header", b"")])
looks, seen = 0, []
def look(phase, info):
    global looks
    looks += 1
    seen.extend(found for found in gc.get_objects() if type(found) is Row)
gc.callbacks.append(look)
gc.set_threshold(1)
found = read_tuples(writer.records(), 300, 0, 0, None, 0, Row, "t", 0, 0)
gc.collect()
print(looks > 0, len(seen), len(found))
"""
    assert run_python(code) == "True 0 300\n"


@needs_compiled
def test_records_are_freed_with_their_type_counted_right() -> None:
    code = """
import sys
from typing import NamedTuple
from ottla.record._kernels import RecordWriter, read_tuples
class Row(NamedTuple):
    topic: str; partition: int; offset: int; timestamp: int; timestamp_type: int; key: object; value: object
    headers: object
writer = RecordWriter()
for number in range(1000):
    writer.append(number, b"key", b"value", [("header", b"v")] if number % 2 else ())
section, topic = bytes(writer.records()), "".join(["a", "topic"])
def once():
    read_tuples(section, 1000, 10**6, 10**12, None, 10**6 + 10, Row, topic, 5000, 0)
    try:
        read_tuples(section[:-1], 1000, 10**6, 10**12, None, 0, Row, topic, 5000, 0)
    except Exception:
        pass
once()
before = sys.getrefcount(Row), sys.getrefcount(topic), sys.getallocatedblocks()
for _ in range(20):
    once()
after = sys.getrefcount(Row), sys.getrefcount(topic), sys.getallocatedblocks()
print(after[0] - before[0], after[1] - before[1], abs(after[2] - before[2]) < 50)
"""
    assert run_python(code) == "0 0 True\n"
