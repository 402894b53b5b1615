"""Compression: other people's bytes read, ours read by others, and hostile input that stays harmless."""

import os
import random
import struct
import tracemalloc
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import aiokafka.codec
import cramjam
import pyarrow
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ottla.record import compression
from ottla.record.compression import Codec, compress, decompress, xxh32_short
from ottla.wire.errors import EncodeError, ErrorCode, ProtocolError

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    import kafka.codec

COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
SAMPLES = {
    "empty": b"",
    "one byte": b"a",
    "repetitive": b"the same again and again " * 8000,
    "zeros": bytes(300_000),
    "random": random.Random(7).randbytes(100_000),
}
each_codec = pytest.mark.parametrize("codec", COMPRESSING, ids=lambda codec: codec.name.lower())
each_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())

# Written by Java's kafka-clients 3.9.1.
JAVA = {
    Codec.GZIP: "1f8b08000000000000ff4b040043beb7e801000000",
    Codec.SNAPPY: "82534e4150505900000000010000000100000003010061",
    Codec.LZ4: "04224d18604082010000806100000000",
    Codec.ZSTD: "28b52ffd005808000061010000",
}
JAVA_LZ4_MAGIC_0 = bytes.fromhex("04224d1860401a010000806100000000")


def inflated(codec: Codec, data: bytes | bytearray | memoryview, limit: int, **options: bool) -> bytes:
    return bytes(decompress(codec, data, limit, **options))


def harmless(codec: Codec, data: bytes | bytearray, limit: int, **options: bool) -> bool:
    try:
        return len(decompress(codec, data, limit, **options)) <= limit
    except ProtocolError as error:
        return error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


def error_of(codec: Codec, data: bytes, limit: int = 1 << 20, **options: bool) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        decompress(codec, data, limit, **options)
    return caught.value


def peak_bytes(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@each_sample
@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name.lower())
def test_what_is_compressed_comes_back_within_a_limit_of_its_exact_size(codec: Codec, sample: bytes) -> None:
    assert inflated(codec, compress(codec, sample), limit=len(sample)) == sample


@each_codec
@given(data=st.binary(max_size=2000), repeat=st.integers(1, 100))
@example(data=b"x", repeat=1)
@settings(max_examples=30, deadline=None)
def test_any_bytes_survive_in_any_kind_of_buffer(codec: Codec, data: bytes, repeat: int) -> None:
    original = data * repeat
    packed = compress(codec, memoryview(bytearray(original)))
    assert inflated(codec, bytearray(packed), len(original)) == original
    assert inflated(codec, memoryview(b"--" + packed)[2:], len(original)) == original


@each_codec
def test_what_the_java_client_writes_is_read(codec: Codec) -> None:
    assert inflated(codec, bytes.fromhex(JAVA[codec]), limit=1) == b"a"


@each_codec
@each_sample
@pytest.mark.parametrize("peer", [aiokafka.codec, kafka.codec], ids=["aiokafka", "kafka-python"])
def test_peers_read_ours_and_theirs_is_read(peer: Any, codec: Codec, sample: bytes) -> None:
    name = codec.name.lower()
    if not getattr(peer, f"has_{name}")():
        pytest.skip(f"{peer.__name__} has no {name} library here")
    if codec is Codec.SNAPPY and not sample:
        pytest.skip("neither peer can read the empty stream that it writes")
    encode, decode = getattr(peer, f"{name}_encode"), getattr(peer, f"{name}_decode")
    assert decode(compress(codec, sample)) == sample
    assert inflated(codec, encode(sample), len(sample)) == sample


@each_codec
@each_sample
def test_arrows_own_libraries_agree(codec: Codec, sample: bytes) -> None:
    if codec is Codec.SNAPPY:
        # Arrow knows raw blocks only, so ours are tried one by one.
        position, blocks = 16, []
        packed = compress(codec, sample)
        while position < len(packed):
            (length,) = struct.unpack_from(">i", packed, position)
            block = packed[position + 4 : position + 4 + length]
            size = cramjam.snappy.decompress_raw_len(block)
            blocks.append(pyarrow.decompress(block, size, "snappy", asbytes=True))
            position += 4 + length
        assert b"".join(blocks) == sample
        assert all(len(block) == 32 * 1024 for block in blocks[:-1])
    elif sample:
        name = codec.name.lower()
        assert pyarrow.decompress(compress(codec, sample), len(sample), name, asbytes=True) == sample
    theirs = pyarrow.compress(sample, codec.name.lower(), asbytes=True)
    assert inflated(codec, theirs, len(sample)) == sample


def test_levels_trade_size_for_time_and_stay_readable() -> None:
    sample = b"".join(str(number * number).encode() for number in range(20_000))
    for codec, lowest, highest in ((Codec.GZIP, 1, 9), (Codec.LZ4, 1, 12), (Codec.ZSTD, -1, 19)):
        loose, tight = compress(codec, sample, lowest), compress(codec, sample, highest)
        assert len(tight) < len(loose) < len(sample)
        assert inflated(codec, tight, len(sample)) == inflated(codec, loose, len(sample)) == sample


@pytest.mark.parametrize(
    ("codec", "level"),
    [(Codec.GZIP, 0), (Codec.GZIP, 10), (Codec.LZ4, 18), (Codec.ZSTD, 23), (Codec.SNAPPY, 1), (Codec.NONE, 1)],
)
def test_a_level_that_the_codec_does_not_have_is_the_callers_fault(codec: Codec, level: int) -> None:
    with pytest.raises(EncodeError, match=str(level)):
        compress(codec, b"data", level)


def test_an_unknown_codec_in_the_attributes_is_named() -> None:
    assert Codec.of(0b0001_1010) is Codec.SNAPPY
    with pytest.raises(ProtocolError, match="codec 5 is unknown") as caught:
        Codec.of(5)
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert caught.value.where == "attributes"


# Framing


def test_snappy_is_written_in_blocks_and_read_raw_too() -> None:
    packed = compress(Codec.SNAPPY, bytes(40_000))
    assert packed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    assert inflated(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(b"raw" * 500)), 1500) == b"raw" * 500


def test_snappy_versions_in_the_wrong_byte_order_are_tolerated() -> None:
    packed = bytearray(compress(Codec.SNAPPY, b"data"))
    packed[8:16] = struct.pack("<ii", 1, 1)
    assert inflated(Codec.SNAPPY, packed, 4) == b"data"


def test_lz4_blocks_are_written_independent_of_each_other_and_read_linked_too() -> None:
    sample = SAMPLES["repetitive"]
    assert compress(Codec.LZ4, sample)[:7] == bytes.fromhex(JAVA[Codec.LZ4])[:7], "Java refuses linked blocks"
    assert compress(Codec.LZ4, sample, 9)[4] & 0x20
    linked = bytes(cramjam.lz4.compress(sample))
    assert not linked[4] & 0x20
    assert inflated(Codec.LZ4, linked, len(sample)) == sample


def test_lz4_with_a_wrong_checksum_of_its_header_is_refused_whoever_wrote_it() -> None:
    for level in (1, 9):
        packed = bytearray(compress(Codec.LZ4, SAMPLES["random"], level))
        packed[6] ^= 1
        assert "lz4 data is malformed" in error_of(Codec.LZ4, bytes(packed), 1 << 20).reason


def test_lz4_of_magic_0_has_kafkas_wrong_checksum_both_ways() -> None:
    assert inflated(Codec.LZ4, JAVA_LZ4_MAGIC_0, 1, legacy_lz4=True) == b"a"
    assert "lz4 data is malformed" in error_of(Codec.LZ4, JAVA_LZ4_MAGIC_0).reason
    for sample in SAMPLES.values():
        right, wrong = compress(Codec.LZ4, sample), compress(Codec.LZ4, sample, legacy_lz4=True)
        assert wrong[:6] + wrong[7:] == right[:6] + right[7:]
        assert wrong[6] == xxh32_short(wrong[:6]) >> 8 & 0xFF
        # Newer writers of magic 0 may have it right, so either is read.
        assert inflated(Codec.LZ4, right, len(sample), legacy_lz4=True) == sample
        assert inflated(Codec.LZ4, wrong, len(sample), legacy_lz4=True) == sample


def test_lz4_with_a_content_size_is_read_in_either_way() -> None:
    packed = pyarrow.compress(b"sized" * 100, "lz4", asbytes=True)
    sized = bytearray(packed[:4] + bytes([packed[4] | 0x08, packed[5]]) + struct.pack("<Q", 500) + packed[6:])
    sized[14] = xxh32_short(sized[4:14]) >> 8 & 0xFF
    assert inflated(Codec.LZ4, sized, 500) == b"sized" * 100
    sized[14] ^= 0xFF
    assert inflated(Codec.LZ4, sized, 500, legacy_lz4=True) == b"sized" * 100


def told_of_lz4(data: bytes, limit: int, *, legacy: bool) -> tuple[object, ...]:
    """The content, or all that is said of why there is none."""
    try:
        return (inflated(Codec.LZ4, data, limit, legacy_lz4=legacy),)
    except ProtocolError as error:
        return error.reason, error.offset, error.where, error.code


@given(data=st.data())
@settings(max_examples=500, deadline=None)
def test_lz4_of_one_block_is_what_it_is_on_the_long_way(data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from([b"a", b"abcdefgh" * 300, bytes(65_536), b"0123456789" * 6000]))
    frame = bytearray(compress(Codec.LZ4, sample))
    descriptor = data.draw(st.sampled_from([0x40, 0x40, 0x40, 0x50, 0x60, 0x70, 0x30, 0x41]))
    frame[5], frame[6] = descriptor, xxh32_short(bytes((0x60, descriptor))) >> 8 & 0xFF
    if data.draw(st.booleans()):
        frame[data.draw(st.integers(4, min(40, len(frame) - 1)))] ^= data.draw(st.sampled_from([1, 0x80, 0xFF]))
    frame += data.draw(st.binary(max_size=9))
    del frame[len(frame) - data.draw(st.integers(0, 6)) :]
    most = min(65_536, 255 * (len(frame) - 15))
    limit = max(0, data.draw(st.sampled_from([most - 1, most, most + 1, len(sample) - 1, len(sample), 1 << 28])))
    legacy = data.draw(st.booleans())
    found = told_of_lz4(bytes(frame), limit, legacy=legacy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "_lz4_only_block", lambda data, limit: None)
        assert told_of_lz4(bytes(frame), limit, legacy=legacy) == found


def test_lz4_of_one_block_takes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = compress(Codec.LZ4, b"abcdefgh" * 2000)
    monkeypatch.setattr(compression, "_lz4_frame", None)
    assert inflated(Codec.LZ4, frame, 1 << 20) == b"abcdefgh" * 2000
    with pytest.raises(TypeError):
        inflated(Codec.LZ4, compress(Codec.LZ4, bytes(70_000)), 1 << 20)


@pytest.mark.parametrize(
    ("data", "digest"),
    [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF), (b"0123456789abcde", 0x1DBDFA0F)],
)
def test_the_short_hash_matches_published_vectors(data: bytes, digest: int) -> None:
    assert xxh32_short(data) == digest


def test_the_short_hash_refuses_what_it_cannot_do() -> None:
    with pytest.raises(EncodeError, match="16 bytes"):
        xxh32_short(bytes(16))


def test_zstd_without_a_content_size_and_with_a_window_beyond_the_limit_is_read() -> None:
    stream = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(stream, "zstd") as writer:
        for _ in range(3):
            writer.write(SAMPLES["random"])
            writer.flush()
    packed = stream.getvalue().to_pybytes()
    assert packed[4] >> 5 == 0, "no content size is declared"
    assert inflated(Codec.ZSTD, packed, 300_000) == SAMPLES["random"] * 3


# As Java's readers do, tried out with kafka-clients 3.9.1.


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.ZSTD], ids=lambda codec: codec.name.lower())
def test_streams_written_one_after_another_are_read_as_one(codec: Codec) -> None:
    packed = compress(codec, b"first ") + compress(codec, b"second") + compress(codec, b"")
    assert inflated(codec, packed, 12) == b"first second"


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4], ids=lambda codec: codec.name.lower())
def test_what_follows_the_stream_is_ignored_where_java_ignores_it(codec: Codec) -> None:
    assert inflated(codec, compress(codec, b"data") + b"q" * 50, 4) == b"data"


def test_lz4_is_one_frame_and_a_second_one_is_ignored() -> None:
    assert inflated(Codec.LZ4, compress(Codec.LZ4, b"first") + compress(Codec.LZ4, b"second"), 100) == b"first"


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.ZSTD], ids=lambda codec: codec.name.lower())
def test_what_follows_the_stream_is_an_error_where_java_finds_one(codec: Codec) -> None:
    assert error_of(codec, compress(codec, b"data") + b"q" * 50).code is ErrorCode.CORRUPT_MESSAGE


def test_zstd_skippable_frames_are_skipped() -> None:
    skippable = struct.pack("<II", 0x184D2A53, 5) + b"hello"
    packed = skippable + compress(Codec.ZSTD, b"data") + skippable + compress(Codec.ZSTD, b" more")
    assert inflated(Codec.ZSTD, packed, 9) == b"data more"


# Limits and hostile input


@each_codec
def test_one_byte_over_the_limit_is_too_large(codec: Codec) -> None:
    sample = SAMPLES["repetitive"]
    error = error_of(codec, compress(codec, sample), limit=len(sample) - 1)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert f"limit of {len(sample) - 1} bytes" in error.reason


def test_the_limit_holds_for_what_is_not_compressed() -> None:
    assert error_of(Codec.NONE, b"data", limit=3).code is ErrorCode.MESSAGE_TOO_LARGE


@each_codec
def test_a_bomb_stops_at_the_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(64 << 20))
    peak = peak_bytes(lambda: error_of(codec, bomb, limit=1 << 20))
    assert peak < 3 << 20


def test_a_size_that_the_bytes_cannot_hold_allocates_nothing() -> None:
    claims = {
        Codec.SNAPPY: b"\xff\xff\xff\xff\x0f" + b"abcd",
        Codec.ZSTD: b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 30) + b"\x09\x00\x00a",
        Codec.LZ4: b"\x04\x22\x4d\x18\x6c\x70" + struct.pack("<Q", 1 << 30) + b"\x00\x01\x00\x00\x00aXXXX",
        Codec.GZIP: compress(Codec.GZIP, b"a")[:-4] + struct.pack("<I", 1 << 30),
    }
    for codec, claim in claims.items():
        assert peak_bytes(lambda codec=codec, claim=claim: error_of(codec, claim, 1 << 31)) < 100_000  # type: ignore[misc]


ZSTD_START = bytes.fromhex("28b52ffd0058")
"""A frame that does not tell its size."""


def zstd_block(kind: int, length: int, content: bytes = b"", *, last: bool = False) -> bytes:
    return (length << 3 | kind << 1 | last).to_bytes(3, "little") + content


@pytest.mark.parametrize(
    "block",
    [
        zstd_block(2, 0),
        zstd_block(2, 5, b"wrong"),
        zstd_block(1, (1 << 21) - 1, b"a"),
        zstd_block(0, (1 << 21) - 1, b"a"),
        zstd_block(3, 100, b"a"),
    ],
    ids=["compressed, empty", "compressed, malformed", "run of over 128 KiB", "raw, cut short", "reserved"],
)
def test_zstd_blocks_that_hold_nothing_of_what_they_claim_allocate_little(block: bytes) -> None:
    claim = ZSTD_START + block * 2000
    peak = peak_bytes(lambda: error_of(Codec.ZSTD, claim, 1 << 28))
    assert peak < 20 * len(claim) + 50_000


def test_zstd_runs_give_what_they_say_up_to_the_limit() -> None:
    size = 128 << 10
    runs = b"".join(zstd_block(1, size, b"a") for _ in range(39))
    data = ZSTD_START + runs + zstd_block(0, 3, b"end", last=True)
    whole = b"a" * 39 * size + b"end"
    assert inflated(Codec.ZSTD, data, len(whole)) == whole
    assert error_of(Codec.ZSTD, data, len(whole) - 1).code is ErrorCode.MESSAGE_TOO_LARGE
    assert peak_bytes(lambda: inflated(Codec.ZSTD, data, 1 << 30)) < 8 * len(whole)
    damaged = ZSTD_START + runs + zstd_block(3, 0, last=True)
    assert error_of(Codec.ZSTD, damaged, 1 << 30).code is ErrorCode.CORRUPT_MESSAGE
    assert peak_bytes(lambda: error_of(Codec.ZSTD, damaged, 1 << 30)) < 8 * len(whole)


def test_lz4_blocks_that_hold_nothing_of_what_they_claim_allocate_little() -> None:
    malformed = struct.pack("<I", 600) + b"\xff" * 600
    frame = JAVA_LZ4_MAGIC_0[:7] + malformed * 100 + bytes(4)
    assert peak_bytes(lambda: error_of(Codec.LZ4, frame, 1 << 28, legacy_lz4=True)) < 20 * len(frame)


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD], ids=lambda codec: codec.name.lower())
@pytest.mark.parametrize("around", [0, 16 << 10, 64 << 10, 256 << 10, 1 << 20])
def test_results_of_any_size_come_out_whole(codec: Codec, around: int) -> None:
    """However the room that is made falls short of them."""
    for size in (around + offset * 9 for offset in range(0, 40)):
        packed = compress(codec, bytes(size))
        assert inflated(codec, packed, 1 << 28) == inflated(codec, packed, size) == bytes(size)
        if size:
            assert error_of(codec, packed, size - 1).code is ErrorCode.MESSAGE_TOO_LARGE


def test_many_tiny_snappy_blocks_take_little_memory() -> None:
    block = bytes(cramjam.snappy.compress_raw(b"x"))
    packed = compress(Codec.SNAPPY, b"") + (struct.pack(">i", len(block)) + block) * 20_000
    assert inflated(Codec.SNAPPY, packed, 20_000) == b"x" * 20_000
    assert peak_bytes(lambda: decompress(Codec.SNAPPY, packed, 20_000)) < len(packed)


@each_codec
def test_errors_say_where(codec: Codec) -> None:
    packed = compress(codec, b"some data " * 50)
    errors = [
        error_of(codec, packed, limit=10),
        error_of(codec, packed[:-6]),
        error_of(codec, b"\xff" * 30),
        error_of(codec, packed[:20] + b"\xff" * 30),
    ]
    assert {error.where for error in errors} == {"compressed data"}
    assert "compressed data" in str(errors[0])


def test_errors_say_at_which_byte_where_the_framing_tells() -> None:
    first = compress(Codec.GZIP, b"first")
    assert error_of(Codec.GZIP, first + b"\x1f\x8b\xff" + bytes(20)).offset == len(first)
    blocks = compress(Codec.SNAPPY, b"first")
    assert error_of(Codec.SNAPPY, blocks + struct.pack(">i", 99) + b"short").offset == len(blocks)
    assert error_of(Codec.SNAPPY, blocks + struct.pack(">i", 5) + b"wrong").offset == len(blocks) + 4
    assert error_of(Codec.LZ4, b"\x04\x22\x4d\x18\x60\x00\x82").offset == 4


def test_many_tiny_gzip_members_take_linear_time() -> None:
    assert inflated(Codec.GZIP, compress(Codec.GZIP, b"x") * 20_000, 20_000) == b"x" * 20_000


@each_codec
def test_every_truncation_is_noticed_or_ends_at_a_block(codec: Codec) -> None:
    sample = random.Random(3).randbytes(200) + b"tail " * 40
    packed = compress(codec, sample)
    for length in range(len(packed)):
        if codec is Codec.SNAPPY and 16 <= length < 20:
            # The header alone is an empty stream.
            assert inflated(codec, packed[:length], 1000) == b""
        else:
            assert error_of(codec, packed[:length]).code is ErrorCode.CORRUPT_MESSAGE


@each_codec
@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_mutated_input_gives_bytes_or_a_protocol_error(codec: Codec, data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from([b"", b"abc", b"abcdefgh" * 300, os.urandom(90)]))
    packed = bytearray(compress(codec, sample))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(packed) - 1))
        packed[position] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    packed += data.draw(st.binary(max_size=20))
    assert harmless(codec, packed, 5000, legacy_lz4=data.draw(st.booleans()))


@each_codec
@given(data=st.binary(max_size=60))
@settings(max_examples=300, deadline=None)
def test_random_input_behind_a_good_start_gives_bytes_or_a_protocol_error(codec: Codec, data: bytes) -> None:
    start = {
        Codec.GZIP: b"\x1f\x8b\x08\x00",
        Codec.SNAPPY: b"\x82SNAPPY\x00",
        Codec.LZ4: b"\x04\x22\x4d\x18\x60\x40\x82",
        Codec.ZSTD: b"\x28\xb5\x2f\xfd",
    }[codec]
    for packed in (data, start + data):
        assert harmless(codec, packed, 100_000)


def test_a_panic_in_the_native_library_is_a_protocol_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panic(*arguments: object) -> int:
        raise PanicException("index out of bounds")

    monkeypatch.setattr(cramjam.zstd, "decompress_into", panic)
    assert "index out of bounds" in error_of(Codec.ZSTD, compress(Codec.ZSTD, b"data")).reason


def test_an_interrupt_during_decompression_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cramjam.zstd, "decompress_into", interrupt)
    with pytest.raises(KeyboardInterrupt):
        inflated(Codec.ZSTD, compress(Codec.ZSTD, b"data"), 4)


def test_gzip_checksums_are_checked() -> None:
    packed = bytearray(zlib.compress(b"data", wbits=31))
    packed[-8] ^= 1
    assert "incorrect data check" in error_of(Codec.GZIP, bytes(packed)).reason
