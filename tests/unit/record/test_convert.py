"""Conversion between the formats: what they share survives, what they do not is dropped by rule."""

import contextlib
import random
import struct
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.record.batch import Batch, batches, records
from ottla.record.build import build_batch
from ottla.record.compression import Codec, compress
from ottla.record.convert import downconvert, reformat, upconvert
from ottla.record.kernels import Record
from ottla.record.legacy import build_message_set, entries, messages, read_messages
from ottla.wire.errors import EncodeError, ErrorCode, ProtocolError

LIMIT = 1 << 20
OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
each_magic = pytest.mark.parametrize("magic", [0, 1], ids=["magic 0", "magic 1"])
each_codec = pytest.mark.parametrize("codec", OLD_CODECS, ids=lambda codec: codec.name.lower())

FOUR = [Record(20 + n, 1500 + n, b"key %d" % n, b"value %d" % n) for n in range(4)]

# Records at offsets 41, 43 and 44 as a batch by Java's kafka-clients 3.9.1, and what Java makes of it from offset 43.
JAVA_BATCH = (
    "00000000000000290000005effffffff0222b75ede0000000000030000018bcfe568000000018bcfe56805ffffffffffffffffffff"
    "ffffffff0000000330000000026b2266697273742066697273742066697273740018000a04010c7365636f6e64000c000606000100"
)
JAVA_DOWN = {
    0: (
        "000000000000002b00000014a6f2489d0000ffffffff000000067365636f6e64"
        "000000000000002c0000000e3d314895000000000000ffffffff"
    ),
    1: (
        "000000000000002b0000001c9ba73a5501000000018bcfe56805ffffffff000000067365636f6e64"
        "000000000000002c0000001603b1124801000000018bcfe5680300000000ffffffff"
    ),
}

payloads = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=5), payloads), max_size=2).map(tuple)
rows = st.tuples(st.integers(1, 4), st.integers(-1, 2**62), payloads, payloads, headers)


def numbered(
    drawn: list[tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
) -> list[Record]:
    offset, made = 100, []
    for step, timestamp, key, value, with_headers in drawn:
        offset += step
        made.append(Record(offset, timestamp, key, value, with_headers))
    return made


record_lists = st.lists(rows, min_size=1, max_size=15).map(numbered)


def plain(originals: list[Record], *, timestamps: bool = True) -> list[Record]:
    """Records with no more than an old format keeps."""
    return [Record(r.offset, r.timestamp if timestamps else -1, r.key, r.value) for r in originals]


def renumbered(originals: list[Record], base_offset: int) -> list[Record]:
    return [Record(base_offset + n, r.timestamp, r.key, r.value) for n, r in enumerate(originals)]


def error_of(action: Callable[[], object]) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        action()
    return caught.value


def message(offset: int, value: bytes, *, magic: int = 1, attributes: int = 0, timestamp: int = 0) -> bytes:
    fixed = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    body = fixed + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


# Up and down again


@each_magic
@each_codec
@given(originals=record_lists)
@settings(max_examples=40, deadline=None)
def test_up_and_down_again_keeps_all_that_the_old_format_has(codec: Codec, magic: int, originals: list[Record]) -> None:
    old = build_message_set(originals, magic, codec, drop_headers=True)
    batch = Batch(upconvert(old, LIMIT))
    batch.validate(gaps=True)
    assert batch.codec is codec
    assert records(batch) == plain(originals, timestamps=magic == 1)
    assert downconvert(batch.data, magic, LIMIT) == old


@each_magic
@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name.lower())
@given(first=record_lists, second=record_lists)
@settings(max_examples=25, deadline=None)
def test_down_and_up_again_loses_only_headers_and_in_magic_0_timestamps(
    codec: Codec, magic: int, first: list[Record], second: list[Record]
) -> None:
    second = [Record(r.offset + 1000, r.timestamp, r.key, r.value, r.headers) for r in second]
    run = build_batch(first, codec) + build_batch(second, codec)
    old = downconvert(run, magic, LIMIT, zstd_as=Codec.LZ4)
    expected = plain(first + second, timestamps=magic == 1)
    assert read_messages(old, LIMIT, partial_tail=False) == expected
    batch = Batch(upconvert(old, LIMIT))
    assert records(batch) == expected
    assert batch.codec is (Codec.LZ4 if codec is Codec.ZSTD else codec)


@each_codec
@given(originals=record_lists)
@settings(max_examples=25, deadline=None)
def test_magic_1_and_back_from_magic_0_loses_only_timestamps(codec: Codec, originals: list[Record]) -> None:
    newer = build_message_set(originals, 1, codec, drop_headers=True)
    older = build_message_set(originals, 0, codec, drop_headers=True)
    assert reformat(newer, 0, LIMIT) == older == downconvert(newer, 0, LIMIT)
    assert read_messages(reformat(older, 1, LIMIT), LIMIT) == plain(originals, timestamps=False)
    assert reformat(newer, 1, LIMIT) == newer
    assert downconvert(older, 1, LIMIT) == older, "old enough already"


# Up


@each_codec
def test_a_broker_numbers_what_is_produced(codec: Codec) -> None:
    produced = build_message_set(FOUR, 1, codec)
    batch = Batch(upconvert(produced, LIMIT, base_offset=7000))
    batch.validate()
    assert records(batch) == renumbered(FOUR, 7000)


def test_a_broker_numbers_messages_whatever_their_own_offsets() -> None:
    produced = message(5, b"a") + message(-1, b"b") + message(5, b"c")
    assert [(r.offset, r.value) for r in records(Batch(upconvert(produced, LIMIT, base_offset=0)))] == [
        (0, b"a"),
        (1, b"b"),
        (2, b"c"),
    ]


def test_a_broker_stamps_what_is_produced() -> None:
    batch = Batch(upconvert(build_message_set(FOUR, 1), LIMIT, base_offset=0, append_time=9000))
    assert batch.log_append_time
    assert {record.timestamp for record in records(batch)} == {9000}


def test_formats_and_codecs_may_mix_on_the_way_up() -> None:
    mixed = (
        build_message_set(FOUR[:1], 0) + build_message_set(FOUR[1:3], 1, Codec.GZIP) + build_message_set(FOUR[3:], 1)
    )
    batch = Batch(upconvert(mixed, LIMIT))
    assert records(batch) == plain(FOUR[:1], timestamps=False) + FOUR[1:]
    assert (batch.codec, batch.max_timestamp) == (Codec.GZIP, 1503)


def test_another_codec_may_be_asked_for_on_the_way_up() -> None:
    produced = build_message_set(FOUR, 1, Codec.GZIP)
    batch = Batch(upconvert(produced, LIMIT, codec=Codec.ZSTD, level=9))
    assert batch.codec is Codec.ZSTD
    assert records(batch) == FOUR


@each_codec
def test_the_append_time_survives_where_it_is_one_for_all(codec: Codec) -> None:
    stamped = [Record(r.offset, 777, r.key, r.value) for r in FOUR]
    batch = Batch(upconvert(build_message_set(stamped, 1, codec, log_append_time=True), LIMIT))
    assert batch.append_time == 777
    assert records(batch) == stamped


def test_append_times_that_differ_survive_as_times_of_creation() -> None:
    old = build_message_set(FOUR, 1, log_append_time=True)
    batch = Batch(upconvert(old, LIMIT))
    assert not batch.log_append_time
    assert records(batch) == FOUR


def test_an_empty_set_makes_no_batch() -> None:
    assert upconvert(b"", LIMIT) == b""


def test_a_partial_message_is_refused_on_the_way_up_unless_it_was_fetched() -> None:
    cut = build_message_set(FOUR, 1)[:-1]
    assert "cut short" in error_of(lambda: upconvert(cut, LIMIT)).reason
    assert records(Batch(upconvert(cut, LIMIT, partial_tail=True))) == FOUR[:3]


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        (message(5, b"a") + message(5, b"b"), "offset 5 follows 5"),
        (message(5, b"a") + message(4, b"b"), "offset 4 follows 5"),
        (message(0, b"a") + message(2**31, b"b"), "offset 2147483648 follows 0"),
        (
            message(0, b"a", timestamp=-(2**63)) + message(1, b"b", timestamp=2**63 - 1),
            "too far apart",
        ),
    ],
)
def test_a_set_that_one_batch_cannot_hold_is_an_invalid_record(old: bytes, reason: str) -> None:
    error = error_of(lambda: upconvert(old, LIMIT))
    assert reason in error.reason
    assert error.code is ErrorCode.INVALID_RECORD


# Down


@each_magic
def test_the_way_down_is_javas_byte_for_byte(magic: int) -> None:
    old = downconvert(bytes.fromhex(JAVA_BATCH), magic, LIMIT, first_offset=43)
    assert old.hex() == JAVA_DOWN[magic]


@each_magic
def test_headers_and_control_batches_are_dropped_on_the_way_down(magic: int) -> None:
    marker = build_batch([Record(1, 0, b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00")], control=True)
    with_headers = [Record(0, 5, b"k", b"v", (("trace", b"1"),))]
    run = build_batch(with_headers) + marker + build_batch([Record(2, 6, None, b"w")])
    old = downconvert(run, magic, LIMIT)
    assert [(r.offset, r.value) for r in read_messages(old, LIMIT)] == [(0, b"v"), (2, b"w")]
    assert downconvert(marker, magic, LIMIT) == b""


@each_magic
def test_a_batch_that_straddles_the_fetch_offset_keeps_only_what_is_wanted(magic: int) -> None:
    old = downconvert(build_batch(FOUR), magic, LIMIT, first_offset=22)
    assert [record.offset for record in read_messages(old, LIMIT)] == [22, 23]


@each_magic
def test_a_compressed_batch_that_straddles_the_fetch_offset_is_kept_whole(magic: int) -> None:
    old = downconvert(build_batch(FOUR, Codec.GZIP), magic, LIMIT, first_offset=22)
    assert [record.offset for record in read_messages(old, LIMIT)] == [20, 21, 22, 23]


def test_magic_1_messages_before_the_fetch_offset_are_left_out_on_the_way_to_magic_0() -> None:
    assert read_messages(downconvert(build_message_set(FOUR, 1), 0, LIMIT, first_offset=22), LIMIT) == plain(
        FOUR[2:], timestamps=False
    )
    wrapped = downconvert(build_message_set(FOUR, 1, Codec.GZIP), 0, LIMIT, first_offset=22)
    assert read_messages(wrapped, LIMIT) == plain(FOUR, timestamps=False)


@each_codec
def test_the_append_time_survives_on_the_way_down(codec: Codec) -> None:
    old = downconvert(build_batch(FOUR, codec, append_time=4000), 1, LIMIT)
    assert {(m.timestamp, m.log_append_time) for m in messages(old, LIMIT)} == {(4000, True)}
    reformatted = reformat(old, 1, LIMIT)
    assert reformatted == old


def test_each_batch_becomes_one_wrapper_at_the_offset_of_its_last_record() -> None:
    run = build_batch(FOUR[:2], Codec.SNAPPY) + build_batch(FOUR[2:], Codec.GZIP)
    assert [(e.offset, e.codec) for e in entries(downconvert(run, 1, LIMIT))] == [
        (21, Codec.SNAPPY),
        (23, Codec.GZIP),
    ]


@each_magic
def test_zstd_has_no_old_form_unless_another_codec_is_named(magic: int) -> None:
    run = build_batch(FOUR, Codec.ZSTD)
    error = error_of(lambda: downconvert(run, magic, LIMIT))
    assert error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert "offset 20 is compressed with zstd" in error.reason
    for codec in OLD_CODECS:
        old = downconvert(run, magic, LIMIT, first_offset=21, zstd_as=codec)
        kept = FOUR[1:] if codec is Codec.NONE else FOUR
        assert read_messages(old, LIMIT) == plain(kept, timestamps=magic == 1)
        assert {m.codec for m in messages(old, LIMIT)} == {codec}


def test_lz4_gets_the_checksum_of_its_format() -> None:
    newer = build_message_set(FOUR, 1, Codec.LZ4)
    older = downconvert(newer, 0, LIMIT)
    assert older == build_message_set(FOUR, 0, Codec.LZ4)
    frames = [next(entries(data)).value for data in (newer, older)]
    assert frames[0] is not None
    assert frames[1] is not None
    assert (frames[0][6], frames[1][6]) == (0x82, 0x1A)


def test_old_and_new_may_mix_in_a_run_that_ends_in_a_partial_batch() -> None:
    run = build_message_set(FOUR[:1], 0) + build_message_set(FOUR[1:2], 1) + build_batch(FOUR[2:])
    run += build_batch(FOUR)[:30]
    assert [(m.offset, m.magic) for m in messages(downconvert(run, 1, LIMIT), LIMIT)] == [
        (20, 0),
        (21, 1),
        (22, 1),
        (23, 1),
    ]
    assert {m.magic for m in messages(downconvert(run, 0, LIMIT), LIMIT)} == {0}


def test_a_compacted_batch_without_records_gives_nothing() -> None:
    assert downconvert(build_batch([], Codec.GZIP, base_offset=5, last_offset=9), 1, LIMIT) == b""


def test_damage_is_not_hidden_behind_new_checksums() -> None:
    run = bytearray(build_batch(FOUR))
    run[-1] ^= 1
    assert error_of(lambda: downconvert(run, 1, LIMIT)).code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("convert", [downconvert, reformat])
def test_only_old_formats_can_be_asked_for(convert: Callable[[bytes, int, int], bytes]) -> None:
    with pytest.raises(EncodeError, match="not 2"):
        convert(b"", 2, LIMIT)


# Limits and hostile bytes


def test_the_limit_is_for_the_whole_run() -> None:
    large = [Record(0, 0, None, bytes(1000))]
    new, old = build_batch(large, Codec.GZIP), build_message_set(large, 1, Codec.GZIP)
    assert len(list(batches(new * 3))) == 3
    assert downconvert(new * 3, 0, 3500)
    assert error_of(lambda: downconvert(new * 4, 0, 3500)).code is ErrorCode.MESSAGE_TOO_LARGE
    assert error_of(lambda: downconvert(old * 4, 0, 3500)).code is ErrorCode.MESSAGE_TOO_LARGE
    assert error_of(lambda: downconvert(old * 2 + new * 2, 0, 3500)).code is ErrorCode.MESSAGE_TOO_LARGE
    assert error_of(lambda: upconvert(old * 4, 3500, base_offset=0)).code is ErrorCode.MESSAGE_TOO_LARGE
    assert error_of(lambda: reformat(old * 4, 0, 3500)).code is ErrorCode.MESSAGE_TOO_LARGE


CONVERSIONS: list[Callable[[bytes], bytes]] = [
    lambda data: upconvert(data, LIMIT),
    lambda data: upconvert(data, LIMIT, base_offset=3, partial_tail=True),
    lambda data: downconvert(data, 0, LIMIT, first_offset=21, zstd_as=Codec.NONE),
    lambda data: downconvert(data, 1, LIMIT),
    lambda data: reformat(data, 0, LIMIT),
    lambda data: reformat(data, 1, LIMIT),
]


def convert_every_way(data: bytes) -> None:
    """Fails with whatever a conversion raises that is not a ProtocolError."""
    for convert in CONVERSIONS:
        with contextlib.suppress(ProtocolError):
            convert(data)


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name.lower())
def test_mutated_runs_are_converted_or_refused_and_nothing_else(codec: Codec) -> None:
    rng = random.Random(codec)
    newer = build_batch(FOUR, codec)
    sets = [newer]
    if codec is not Codec.ZSTD:
        sets += [build_message_set(FOUR, 0, codec), build_message_set(FOUR, 1, codec)]
    for _ in range(400):
        data = bytearray(rng.choice(sets))
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        if data[16] < 2 and rng.random() < 0.8:
            (size,) = struct.unpack_from(">i", data, 8)
            data[12:16] = struct.pack(">I", zlib.crc32(data[16 : max(12 + size, 16)]))
        convert_every_way(bytes(data))


@given(inner=st.binary(max_size=100), offset=st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=200, deadline=None)
def test_random_bytes_are_converted_or_refused_and_nothing_else(inner: bytes, offset: int) -> None:
    convert_every_way(inner)
    convert_every_way(message(offset, compress(Codec.GZIP, inner), attributes=Codec.GZIP))
    nested = message(offset, inner) + message(0, inner, magic=0)
    convert_every_way(message(offset, compress(Codec.SNAPPY, nested), attributes=Codec.SNAPPY))
