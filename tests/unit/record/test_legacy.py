"""Message sets of magic 0 and 1: read and written as Java does, and safe with hostile bytes."""

import random
import struct
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.record.compression import Codec, compress, decompress
from ottla.record.kernels import Record
from ottla.record.legacy import (
    DEEPEST_NESTING,
    Message,
    build_message_set,
    check,
    entries,
    messages,
    read_messages,
)
from ottla.wire.errors import EncodeError, ErrorCode, ProtocolError

LIMIT = 1 << 20
CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
each_magic = pytest.mark.parametrize("magic", [0, 1], ids=["magic 0", "magic 1"])
each_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())

THREE = [
    Record(41, 1_700_000_000_000, b"k", b"first first first"),
    Record(43, 1_700_000_000_005, None, b"second"),
    Record(44, 1_700_000_000_003, b"", None),
]

# THREE as Java's kafka-clients 3.9.1 writes them; appended at 1234567 where the broker's time is used.
JAVA = {
    (0, Codec.NONE, False): (
        "000000000000002900000020509af8330000000000016b000000116669727374206669727374206669727374"
        "000000000000002b00000014a6f2489d0000ffffffff000000067365636f6e64"
        "000000000000002c0000000e3d314895000000000000ffffffff"
    ),
    (0, Codec.GZIP, False): (
        "000000000000002c0000006168e854690001ffffffff000000531f8b08000000000000ff636000034d20560898f5c318cc63cc06"
        "1282699945c5250a482444298336108b2cfbe4319781e13f1000796cc5a9c9f9792950791d20e6b335f4980ae182d400000ea2b3"
        "7866000000"
    ),
    (0, Codec.SNAPPY, False): (
        "000000000000002c00000079181c63d60002ffffffff0000006b82534e4150505900000000010000000100000057660000090124"
        "2900000020509af8330001012c016b000000116669727374201d06011b700000002b00000014a6f2489d0000ffffffff00000006"
        "7365636f6e64000901482c0000000e3d314895000000000000ffffffff"
    ),
    (0, Codec.LZ4, False): (
        "000000000000002c00000076b0fc044f0003ffffffff0000006804224d1860401a5900000012000100912900000020509af8330f"
        "00c7016b000000116669727374200600011c00f00c00002b00000014a6f2489d0000ffffffff000000067365636f6e641d00f007"
        "0000002c0000000e3d314895000000000000ffffffff00000000"
    ),
    (1, Codec.NONE, False): (
        "0000000000000029000000282ff2a76201000000018bcfe56800000000016b000000116669727374206669727374206669727374"
        "000000000000002b0000001c9ba73a5501000000018bcfe56805ffffffff000000067365636f6e64"
        "000000000000002c0000001603b1124801000000018bcfe5680300000000ffffffff"
    ),
    (1, Codec.NONE, True): (
        "000000000000002900000028402f77610108000000000012d687000000016b000000116669727374206669727374206669727374"
        "000000000000002b0000001cb9ca55860108000000000012d687ffffffff000000067365636f6e64"
        "000000000000002c000000161643f9530108000000000012d68700000000ffffffff"
    ),
    (1, Codec.GZIP, False): (
        "000000000000002c00000071c341b8bc01010000018bcfe56805ffffffff0000005b1f8b08000000000000ff636080030dfd4fcb"
        "9318810cc6eef34f3340228cd94042302db3a8b844018984aa67026299d9cbad42e17a58ff030190c3569c9a9c9f970255c70cc4"
        "62cc1b853ce0ea40220c20b50065a9128f7e000000"
    ),
    (1, Codec.GZIP, True): (
        "000000000000002c0000006d7535d49d0109000000000012d687ffffffff000000571f8b08000000000000ff636080030d07fdf2"
        "44460e305be85a3b9064cc061282699945c5250a4824543d1310cbec3c15da86d0f31f08802cb6e2d4e4fcbc14a83a6620161373"
        "fe198c623603482d001a9e5fa77e000000"
    ),
    (1, Codec.SNAPPY, False): (
        "000000000000002c00000089690b95dd01020000018bcfe56805ffffffff0000007382534e415050590000000001000000010000"
        "005f7e0000190134282ff2a76201000000018bcfe56801182c016b000000116669727374201d06011b2c000000020000001c9ba7"
        "3a5515343c05ffffffff000000067365636f6e6400090120030000001603b112481528200300000000ffffffff"
    ),
    (1, Codec.LZ4, False): (
        "000000000000002c00000086e677441901030000018bcfe56805ffffffff0000007004224d186040826100000016000100e0282f"
        "f2a76201000000018bcfe5681800c7016b000000116669727374200600001b00c5000000020000001c9ba73a553400f10005ffff"
        "ffff000000067365636f6e642600b50000030000001603b112482800900300000000ffffffff00000000"
    ),
}


def stamped(records: list[Record], magic: int, timestamp: int | None = None) -> list[Record]:
    """Records as they come back: without a timestamp in magic 0, or all with that of the append."""
    return [
        Record(
            record.offset,
            -1 if magic == 0 else record.timestamp if timestamp is None else timestamp,
            record.key,
            record.value,
        )
        for record in records
    ]


def entry(offset: int, magic: int, attributes: int, value: bytes | None, timestamp: int = 0) -> bytes:
    """One entry without a key, written by hand."""
    fixed = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    body = fixed + struct.pack(">ii", -1, -1 if value is None else len(value)) + (value or b"")
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def error_of(data: bytes, limit: int = LIMIT, *, partial_tail: bool = True) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        read_messages(data, limit, partial_tail=partial_tail)
    return caught.value


def harmless(data: bytes | bytearray) -> bool:
    """Whether the bytes are read or refused, and nothing else; what `check` accepts must be readable."""
    try:
        count = check(data, LIMIT).message_count
    except ProtocolError:
        count = -1
    try:
        return count in (-1, len(read_messages(data, LIMIT)))
    except ProtocolError:
        return count == -1


# Against Java


@pytest.mark.parametrize(("magic", "codec", "appended"), JAVA, ids=str)
def test_what_java_writes_is_read(magic: int, codec: Codec, appended: bool) -> None:
    data = bytes.fromhex(JAVA[magic, codec, appended])
    assert read_messages(data, LIMIT) == stamped(THREE, magic, 1234567 if appended else None)
    for message in messages(data, LIMIT):
        assert (message.magic, message.codec, message.log_append_time) == (magic, codec, appended)


@pytest.mark.parametrize(("magic", "codec", "appended"), JAVA, ids=str)
def test_what_is_written_is_what_java_writes_but_for_the_compressors_choices(
    magic: int, codec: Codec, appended: bool
) -> None:
    def unpacked(data: bytes) -> list[tuple[Message, bytes]]:
        return [
            (stored._replace(value=None), bytes(decompress(codec, stored.value, LIMIT, legacy_lz4=magic == 0)))
            for stored in entries(data)
            if stored.value is not None
        ]

    theirs = bytes.fromhex(JAVA[magic, codec, appended])
    records = stamped(THREE, magic, 1234567 if appended else None)
    ours = build_message_set(records, magic, codec, log_append_time=appended)
    assert unpacked(ours) == unpacked(theirs)
    if codec is Codec.NONE:
        assert ours == theirs


# Round trips

payloads = st.none() | st.binary(max_size=50)
record_lists = st.lists(st.tuples(st.integers(1, 5), st.integers(-1, 2**62), payloads, payloads), max_size=20).map(
    lambda rows: [
        Record(sum(row[0] for row in rows[: number + 1]), timestamp, key, value)
        for number, (_, timestamp, key, value) in enumerate(rows)
    ]
)


@each_magic
@each_codec
@given(records=record_lists, base_offset=st.integers(0, 2**62))
@settings(max_examples=40, deadline=None)
def test_what_is_written_is_read_back(magic: int, codec: Codec, records: list[Record], base_offset: int) -> None:
    records = [Record(r.offset + base_offset, r.timestamp, r.key, r.value) for r in records]
    data = build_message_set(records, magic, codec)
    assert read_messages(data, LIMIT, partial_tail=False) == stamped(records, magic)
    summary = check(data, LIMIT)
    assert summary.message_count == len(records)
    assert summary.null_keys == sum(record.key is None for record in records)
    assert summary.max_timestamp == max([r.timestamp for r in stamped(records, magic)], default=-1)


def test_no_records_make_no_bytes() -> None:
    assert build_message_set([], 1, Codec.GZIP) == b""
    assert read_messages(b"", 0) == []
    assert check(b"", 0).message_count == 0


# Wrappers


def test_offsets_in_a_magic_1_wrapper_count_from_its_first_message() -> None:
    (wrapper,) = entries(build_message_set(THREE, 1, Codec.GZIP))
    assert (wrapper.offset, wrapper.timestamp) == (44, 1_700_000_000_005)
    assert wrapper.value is not None
    assert [e.offset for e in entries(decompress(Codec.GZIP, wrapper.value, LIMIT))] == [0, 2, 3]


def test_offsets_in_a_magic_0_wrapper_are_absolute() -> None:
    (wrapper,) = entries(build_message_set(THREE, 0, Codec.GZIP))
    assert wrapper.offset == 44
    assert wrapper.value is not None
    assert [e.offset for e in entries(decompress(Codec.GZIP, wrapper.value, LIMIT))] == [41, 43, 44]


def test_a_produced_wrapper_at_offset_0_leaves_the_offsets_inside_alone() -> None:
    inner = entry(0, 1, 0, b"a") + entry(1, 1, 0, b"b")
    wrapper = entry(0, 1, Codec.GZIP, compress(Codec.GZIP, inner))
    assert [record.offset for record in read_messages(wrapper, LIMIT)] == [0, 1]


def test_the_append_time_of_a_wrapper_goes_for_the_magic_1_messages_inside() -> None:
    inner = entry(0, 1, 0, b"a", timestamp=5) + entry(1, 0, 0, b"b")
    wrapper = entry(7, 1, Codec.GZIP | 0x08, compress(Codec.GZIP, inner), timestamp=900)
    assert [(m.timestamp, m.log_append_time) for m in messages(wrapper, LIMIT)] == [(900, True), (-1, False)]


def test_the_create_time_of_a_wrapper_overrules_the_type_inside() -> None:
    wrapper = entry(7, 1, Codec.GZIP, compress(Codec.GZIP, entry(0, 1, 0x08, b"a", timestamp=5)))
    assert [(m.timestamp, m.log_append_time) for m in messages(wrapper, LIMIT)] == [(5, False)]


def nested(depth: int) -> bytes:
    data = entry(0, 1, 0, b"innermost")
    for level in range(depth):
        data = entry(10 if level == depth - 1 else 0, 1, Codec.GZIP, compress(Codec.GZIP, data))
    return data


def test_wrappers_may_be_nested_but_not_without_end() -> None:
    assert [(r.offset, r.value) for r in read_messages(nested(DEEPEST_NESTING), LIMIT)] == [(10, b"innermost")]
    error = error_of(nested(DEEPEST_NESTING + 1))
    assert error.code is ErrorCode.INVALID_RECORD
    assert f"wrapped {DEEPEST_NESTING} times" in error.reason


def test_nested_offsets_and_timestamps_follow_from_the_outside_in() -> None:
    pair = entry(0, 1, 0, b"a", 1) + entry(1, 1, 0, b"b", 2)
    middle = entry(0, 1, 0, b"c", 3) + entry(2, 1, Codec.GZIP, compress(Codec.GZIP, pair), 2)
    outer = entry(102, 1, Codec.SNAPPY | 0x08, compress(Codec.SNAPPY, middle), 900)
    assert [(r.offset, r.timestamp, r.value) for r in read_messages(outer, LIMIT)] == [
        (100, 900, b"c"),
        (101, 900, b"a"),
        (102, 900, b"b"),
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (entry(5, 1, Codec.GZIP, None), "has no value"),
        (entry(5, 1, Codec.GZIP, b""), "has no value"),
        (entry(5, 1, Codec.GZIP, compress(Codec.GZIP, b"")), "holds no message"),
        (entry(5, 1, Codec.ZSTD, compress(Codec.ZSTD, entry(0, 1, 0, b"v"))), "zstd is not defined"),
        (entry(5, 1, Codec.GZIP, compress(Codec.GZIP, entry(6, 1, 0, b"v"))), "below that of its last message, 6"),
        (
            entry(2**63 - 1, 1, Codec.GZIP, compress(Codec.GZIP, entry(6, 1, 0, b"v") + entry(0, 1, 0, b"w"))),
            "out of range",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrapper_that_makes_no_sense_is_an_invalid_record(data: bytes, reason: str) -> None:
    error = error_of(data)
    assert reason in error.reason
    assert error.code is ErrorCode.INVALID_RECORD


def test_a_set_inside_a_wrapper_must_be_whole() -> None:
    inner = entry(0, 1, 0, b"a") + entry(1, 1, 0, b"b")
    assert "cut short" in error_of(entry(5, 1, Codec.GZIP, compress(Codec.GZIP, inner[:-1]))).reason


def test_an_unknown_codec_is_named() -> None:
    assert error_of(entry(5, 1, 6, b"x")).code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


# Edges


@each_magic
def test_a_partial_last_message_is_ignored_when_fetched_and_refused_when_produced(magic: int) -> None:
    data = build_message_set(THREE, magic)
    whole = len(build_message_set(THREE[:2], magic))
    for length in range(whole + 1, len(data)):
        assert read_messages(data[:length], LIMIT) == stamped(THREE[:2], magic)
        assert "cut short" in error_of(data[:length], partial_tail=False).reason
        with pytest.raises(ProtocolError, match="cut short"):
            check(data[:length], LIMIT)


def test_formats_may_mix_in_a_fetched_set() -> None:
    data = (
        build_message_set([Record(1, -1, None, b"old")], 0)
        + build_message_set([Record(2, 50, None, b"new")], 1, Codec.LZ4)
        + build_message_set([Record(3, -1, None, b"old again")], 0, Codec.LZ4)
    )
    assert [(m.offset, m.magic, m.codec, m.value) for m in messages(data, LIMIT)] == [
        (1, 0, Codec.NONE, b"old"),
        (2, 1, Codec.LZ4, b"new"),
        (3, 0, Codec.LZ4, b"old again"),
    ]


def test_every_flipped_bit_under_the_crc_is_found() -> None:
    data = bytearray(build_message_set(THREE[:1], 1))
    for position in range(12, len(data)):
        data[position] ^= 0x10
        assert error_of(bytes(data)).code is ErrorCode.CORRUPT_MESSAGE
        data[position] ^= 0x10


@pytest.mark.parametrize(
    ("data", "reason", "code"),
    [
        (struct.pack(">qi", 0, 13) + bytes(13), "size 13 is below 14", ErrorCode.CORRUPT_MESSAGE),
        (struct.pack(">qi", 0, -1) + bytes(20), "size -1 is below 14", ErrorCode.CORRUPT_MESSAGE),
        (struct.pack(">qiIb", 0, 21, 0, 1) + bytes(16), "size 21 is below 22", ErrorCode.CORRUPT_MESSAGE),
        (entry(0, 2, 0, b"v"), "magic 2 is not that of a message set", ErrorCode.CORRUPT_MESSAGE),
        (entry(0, -1, 0, b"v"), "magic 255 is not that of a message set", ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_bytes_that_are_no_message_are_named(data: bytes, reason: str, code: ErrorCode) -> None:
    error = error_of(data)
    assert reason in error.reason
    assert error.code is code


@pytest.mark.parametrize(
    ("key_length", "value_length", "reason"),
    [
        (-2, 0, "key length -2"),
        (1, 0, "key length 1"),
        (2**31 - 1, 0, "key length 2147483647"),
        (0, 1, "value length 1"),
        (-1, -5, "value length -5"),
    ],
)
def test_lengths_that_point_outside_the_message_are_named(key_length: int, value_length: int, reason: str) -> None:
    body = struct.pack(">bbii", 0, 0, key_length, value_length)
    error = error_of(struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body)
    assert reason in error.reason
    assert error.code is ErrorCode.INVALID_RECORD


def test_bytes_after_the_value_are_skipped_as_kafka_does() -> None:
    body = struct.pack(">bbii", 0, 0, -1, 1) + b"v" + b"extra"
    data = struct.pack(">qiI", 3, len(body) + 4, zlib.crc32(body)) + body
    assert read_messages(data + data, LIMIT) == [Record(3, -1, None, b"v")] * 2


# What a broker asks


def test_the_summary_tells_what_a_broker_has_to_know() -> None:
    produced = [Record(0, 70, None, b"a"), Record(1, 90, b"k", b"b"), Record(2, 80, None, None)]
    summary = check(build_message_set(produced, 1, Codec.SNAPPY), LIMIT)
    assert (summary.entry_count, summary.message_count, summary.null_keys) == (1, 3, 2)
    assert (summary.max_timestamp, summary.log_append_time) == (90, False)
    assert summary.magics == {1}
    assert summary.codecs == {Codec.SNAPPY}
    assert summary.sequential_offsets


def test_the_summary_tells_of_offsets_that_a_producer_should_not_have_set() -> None:
    gaps = [Record(0, 0, None, b"a"), Record(2, 0, None, b"b")]
    late = [Record(5, 0, None, b"a"), Record(6, 0, None, b"b")]
    for magic in (0, 1):
        assert not check(build_message_set(gaps, magic, Codec.GZIP), LIMIT).sequential_offsets
        assert not check(build_message_set(late, magic, Codec.GZIP), LIMIT).sequential_offsets
        assert check(build_message_set(gaps, magic), LIMIT).sequential_offsets, "free outside of a wrapper"


def test_the_summary_tells_of_mixed_formats_and_of_a_producer_that_claims_the_append_time() -> None:
    inner = entry(0, 0, 0, b"a") + entry(1, 1, 0, b"b")
    data = entry(1, 1, Codec.GZIP | 0x08, compress(Codec.GZIP, inner)) + entry(9, 0, 0, b"c")
    summary = check(data, LIMIT)
    assert summary.magics == {0, 1}
    assert summary.codecs == {Codec.GZIP, Codec.NONE}
    assert summary.log_append_time
    assert (summary.entry_count, summary.message_count) == (2, 3)


# What cannot be written


@pytest.mark.parametrize(
    ("records", "magic", "codec", "reason"),
    [
        (THREE, 2, Codec.NONE, "magic 0 or 1, not 2"),
        (THREE, 1, Codec.ZSTD, "zstd needs record batches of magic 2"),
        (THREE[::-1], 1, Codec.NONE, "offset 43 does not follow 44"),
        ([THREE[0], THREE[0]], 0, Codec.GZIP, "offset 41 does not follow 41"),
        ([Record(1, 0, None, None, (("h", b"1"),))], 1, Codec.NONE, "record 1 has headers"),
    ],
)
def test_what_the_format_cannot_carry_is_the_callers_fault(
    records: list[Record], magic: int, codec: Codec, reason: str
) -> None:
    with pytest.raises(EncodeError, match=reason):
        build_message_set(records, magic, codec)


def test_headers_are_dropped_when_asked() -> None:
    data = build_message_set([Record(1, 0, b"k", b"v", (("h", b"1"),))], 1, drop_headers=True)
    assert read_messages(data, LIMIT) == [Record(1, 0, b"k", b"v")]


def test_a_timestamp_out_of_range_is_the_callers_fault() -> None:
    class Far:
        offset, timestamp, key, value, headers = 3, 2**63, None, b"v", ()

    far: Any = Far()
    with pytest.raises(EncodeError, match="offset 3 does not fit"):
        build_message_set([far], 1)


# Hostile bytes


def test_a_bomb_stops_at_the_limit() -> None:
    zeros = compress(Codec.GZIP, bytes(64 << 20))
    tracemalloc.start()
    try:
        error = error_of(entry(5, 1, Codec.GZIP, zeros), limit=1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert peak < 4 << 20


def test_the_limit_is_for_all_wrappers_together() -> None:
    one = build_message_set([Record(0, 0, None, bytes(1000))], 1, Codec.GZIP)
    assert len(read_messages(one * 3, 4000)) == 3
    assert error_of(one * 4, 4000).code is ErrorCode.MESSAGE_TOO_LARGE
    deep = entry(0, 1, Codec.GZIP, compress(Codec.GZIP, one))
    assert error_of(deep, 1034).code is ErrorCode.MESSAGE_TOO_LARGE
    assert len(read_messages(deep, 1034 + len(one))) == 1


@given(data=st.binary(max_size=200))
@settings(max_examples=500, deadline=None)
def test_random_bytes_are_read_or_refused(data: bytes) -> None:
    assert harmless(data)
    assert harmless(entry(5, 1, 1, data) + entry(6, 0, 0, data))


@each_magic
@each_codec
def test_mutated_sets_are_read_or_refused_also_when_the_crc_vouches_for_them(codec: Codec, magic: int) -> None:
    rng = random.Random(magic * 10 + codec)
    good = build_message_set(THREE, magic, codec)
    for _ in range(1500):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        elif rng.random() < 0.7:
            (size,) = struct.unpack_from(">i", good, 8)
            data[8:12] = good[8:12]
            data[12:16] = struct.pack(">I", zlib.crc32(data[16 : 12 + size]))
        assert harmless(data)


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_mutated_sets_inside_a_good_wrapper_are_read_or_refused(data: st.DataObject) -> None:
    inner = bytearray(build_message_set(THREE, 1))
    for _ in range(data.draw(st.integers(0, 3))):
        inner[data.draw(st.integers(0, 15))] = data.draw(st.integers(0, 255))
    wrapper_offset = data.draw(st.sampled_from([0, 1, 44, -1, 2**63 - 1]))
    assert harmless(entry(wrapper_offset, 1, Codec.SNAPPY, compress(Codec.SNAPPY, inner)))
