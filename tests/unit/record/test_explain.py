"""Records explained field by field, and bytes that make no sense refused with the field's name."""

import struct
import time
from contextlib import suppress
from itertools import pairwise
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.record.build import build_batch
from ottla.record.compression import Codec, compress
from ottla.record.explain import explain
from ottla.record.kernels import Record
from ottla.record.legacy import DEEPEST_NESTING, build_message_set
from ottla.wire.errors import ErrorCode, ProtocolError
from tests.unit.record.samples import EXAMPLE, NOW, Fields, records_of, some_fields

PLAIN = build_batch(records_of(EXAMPLE))
RECORDS_AT = 61


def refusal(data: bytes, limit: int = 1 << 20) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        list(explain(data, limit))
    return caught.value


def with_records(section: bytes, count: int) -> bytes:
    """A batch of these bytes, whatever they are; the CRC is not looked at here."""
    header = bytearray(PLAIN[:RECORDS_AT])
    struct.pack_into(">i", header, 8, RECORDS_AT - 12 + len(section))
    struct.pack_into(">i", header, 57, count)
    return bytes(header) + section


def wrapper(inner: bytes, codec: Codec = Codec.GZIP) -> bytes:
    value = compress(codec, inner, legacy_lz4=True)
    body = struct.pack(">bbii", 0, codec, -1, len(value)) + value
    return struct.pack(">qiI", 0, len(body) + 4, crc32(body)) + body


@given(some_fields)
def test_every_byte_of_a_plain_batch_is_in_one_step(fields: list[Fields]) -> None:
    data = build_batch(records_of(fields))
    steps = list(explain(data + data))
    assert (steps[0].start, steps[-1].end) == (0, 2 * len(data))
    assert all(before.end == after.start for before, after in pairwise(steps))
    values = {step.path: step.value for step in steps}
    for number, (_, key, value, headers) in enumerate(fields):
        path = f"batch[1].records[{number}]"
        assert (values[f"{path}.key"], values[f"{path}.value"]) == (key, value)
        for index, (name, content) in enumerate(headers):
            assert values[f"{path}.headers[{index}].key"] == name.encode()
            assert values[f"{path}.headers[{index}].value"] == content


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_messages_inside_a_wrapper_are_explained_too(magic: int, codec: Codec) -> None:
    records = [Record(offset, NOW, b"k", b"v%d" % offset) for offset in range(3)]
    values = {step.path: step.value for step in explain(build_message_set(records, magic, codec))}
    assert values["message[0].attributes"] == codec
    assert values["message[0].message[2].value"] == b"v2"
    assert ("message[0].message[2].timestamp" in values) == (magic == 1)


@pytest.mark.parametrize(
    ("section", "count", "reason"),
    [
        (b"", 1, "the bytes end inside a varint (batch[0].records[0].length, byte 61)"),
        (b"", 2**31 - 1, "the bytes end inside a varint (batch[0].records[0].length, byte 61)"),
        (b"", -1, "the record count is -1 (batch[0].count, byte 61)"),
        (b"\x7e" + bytes(9), 1, "the record has length 63, and 9 bytes are left (batch[0].records[0].length, byte 62)"),
        (b"\x01", 1, "the record has length -1, and 0 bytes are left (batch[0].records[0].length, byte 62)"),
        (b"\xff\xff\xff\xff\x7f", 1, "a varint does not fit its 32 bits (batch[0].records[0].length, byte 61)"),
        (b"\x80" * 12, 1, "a varint does not fit its 32 bits (batch[0].records[0].length, byte 61)"),
        (b"\x00", 1, "int8 has length 1, and 0 bytes are left (batch[0].records[0].attributes, byte 62)"),
        (b"\x0c\0\0\0\x03\1\0", 1, "bytes has length -2, and 2 bytes are left (batch[0].records[0].key, byte 66)"),
        (b"\x0c\0\0\0\1\1\x03", 1, "the header count is -2 (batch[0].records[0].header_count, byte 68)"),
        (
            b"\x14\0\0\0\1\1\xfe\xff\xff\xff\x0f",
            1,
            "the bytes end inside a varint (batch[0].records[0].headers[0].key_length, byte 72)",
        ),
        (b"\x0e\0\0\0\1\1\0\0", 1, "1 bytes follow the last field (batch[0].records[0], byte 68)"),
        (b"\x0c\0\0\0\1\1\0\0\0", 1, "2 bytes follow the last field (batch[0].records, byte 68)"),
    ],
)
def test_records_that_make_no_sense_are_refused_by_field(section: bytes, count: int, reason: str) -> None:
    error = refusal(with_records(section, count))
    assert str(error) == reason
    assert error.code is ErrorCode.INVALID_RECORD


def test_lengths_beyond_a_message_are_refused_by_field() -> None:
    data = bytearray(build_message_set([Record(0, NOW, b"key", b"value")], 1))
    struct.pack_into(">i", data, 26, 1000)
    assert "bytes has length 1000, and 12 bytes are left (message[0].key, byte 30)" in str(refusal(bytes(data)))
    data = bytearray(build_message_set([Record(0, NOW, b"key", b"value")], 1))
    struct.pack_into(">i", data, 26, 10)
    assert "message[0].value_length" in str(refusal(bytes(data)))


def test_malformed_compressed_data_is_placed_in_what_holds_it() -> None:
    batch = bytearray(build_batch(records_of(EXAMPLE), Codec.GZIP))
    batch[RECORDS_AT] ^= 0xFF
    error = refusal(PLAIN + bytes(batch))
    assert (error.where, error.offset) == ("batch[1].records", len(PLAIN) + RECORDS_AT)
    message = bytearray(build_message_set(records_of([EXAMPLE[0]]), 0, Codec.GZIP))
    message[26] ^= 0xFF
    error = refusal(bytes(message))
    assert (error.where, error.offset) == ("message[0].value", 26)


def test_nesting_has_an_end() -> None:
    data = build_message_set([Record(0, NOW, None, b"v")], 0)
    for _ in range(DEEPEST_NESTING):
        data = wrapper(data)
    assert list(explain(data))[-1].value == b"v"
    assert f"wrapped more than {DEEPEST_NESTING} times" in refusal(wrapper(data)).reason
    for _ in range(100):
        data = wrapper(data)
    assert "wrapped more than" in refusal(data).reason


def test_all_entries_share_one_limit() -> None:
    for large in (
        build_batch([Record(0, NOW, None, bytes(60_000))], Codec.GZIP),
        build_message_set([Record(0, NOW, None, bytes(60_000))], 1, Codec.GZIP),
        wrapper(build_message_set([Record(0, NOW, None, bytes(60_000))], 0)),
    ):
        list(explain(large, 100_000))
        assert refusal(large * 2, 100_000).code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_hostile_count_costs_nothing() -> None:
    started = time.thread_time()
    refusal(with_records(PLAIN[RECORDS_AT:], 2**31 - 1))
    assert time.thread_time() - started < 1


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_bytes_are_explained_or_refused(data: st.DataObject) -> None:
    sound = data.draw(st.sampled_from([PLAIN, wrapper(build_message_set([Record(0, NOW, b"k", b"v")], 1))]))
    damaged = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(sound) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ProtocolError):
        list(explain(bytes(damaged), 10_000))
