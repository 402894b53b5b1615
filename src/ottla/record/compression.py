"""The five codecs of Kafka's record formats, with a hard bound on what decompression may produce.

What a frame claims to hold is not believed: room is made for what usually comes out, and more only once that is full.
So small inputs stay cheap however they are malformed, and a bomb stops at the limit.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import cache
from typing import Any

from ottla.record._kernel_types import Buffer
from ottla.wire.errors import EncodeError, ErrorCode, ProtocolError


class _WhenNeeded:
    """cramjam, loaded by whoever needs it first: that takes a tenth of a broker's start, and some of its memory."""

    def __getattr__(self, name: str) -> Any:
        import cramjam

        found = getattr(cramjam, name)
        setattr(self, name, found)
        return found


cramjam: Any = _WhenNeeded()


class Codec(IntEnum):
    """A compression codec, numbered as in the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, attributes: int) -> "Codec":
        """The codec that the attributes of a batch or message name.

        >>> Codec.of(0x0B)
        <Codec.LZ4: 3>
        """
        number = attributes & 0x07
        if number > cls.ZSTD:
            raise ProtocolError(
                f"compression codec {number} is unknown",
                where="attributes",
                code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            )
        return _CODECS[number]


_CODECS = tuple(Codec)
_LEVELS = {Codec.GZIP: (1, 9, 6), Codec.LZ4: (1, 17, 1), Codec.ZSTD: (-131072, 22, 3)}


def compress(codec: Codec, data: Buffer, level: int | None = None, *, legacy_lz4: bool = False) -> bytes:
    """Compress `data` in the framing that Kafka's clients expect of `codec`.

    `legacy_lz4` writes the wrong LZ4 header checksum that readers of magic 0 insist on.

    >>> squeezed = compress(Codec.ZSTD, b"over and " * 100)
    >>> bytes(decompress(Codec.ZSTD, squeezed, limit=1000)) == b"over and " * 100
    True
    """
    if codec not in _LEVELS:
        if level is not None:
            raise EncodeError(f"{codec.name.lower()} has no compression levels, got level {level}")
        return bytes(data) if codec is Codec.NONE else _snappy_compress(memoryview(data))
    lowest, highest, default = _LEVELS[codec]
    if level is None:
        level = default
    elif not lowest <= level <= highest:
        raise EncodeError(f"{codec.name.lower()} level {level} is not within {lowest} to {highest}")
    if codec is Codec.GZIP:
        return zlib.compress(data, level, wbits=_GZIP_WINDOW_BITS)
    if codec is Codec.LZ4:
        return _lz4_compress(data, level, legacy_lz4)
    return bytes(cramjam.zstd.compress(data, level=level))


def decompress(codec: Codec, data: Buffer, limit: int, *, legacy_lz4: bool = False) -> memoryview:
    """Decompress `data`, which may give `limit` bytes at most.

    Malformed or truncated data is a ProtocolError with CORRUPT_MESSAGE. Too large a result is one with
    MESSAGE_TOO_LARGE, which makes a Java producer split its batch and try again. An offset in the error counts from
    the start of `data`. `legacy_lz4` accepts any LZ4 header checksum, as readers of magic 0 must.

    >>> decompress(Codec.GZIP, compress(Codec.GZIP, bytes(1000)), limit=999)
    Traceback (most recent call last):
    ottla.wire.errors.ProtocolError: gzip data decompresses to more than the limit of 999 bytes (compressed data)
    """
    view = memoryview(data)
    match codec:
        case Codec.NONE:
            _check_size("uncompressed", len(view), limit)
            return view
        case Codec.GZIP:
            return _gzip_decompress(view, limit)
        case Codec.SNAPPY:
            return _snappy_decompress(view, limit)
        case Codec.LZ4:
            return _lz4_decompress(view, limit, legacy_lz4)
        case Codec.ZSTD:
            return _decompress_growing("zstd", cramjam.zstd.decompress_into, view, _zstd_claim(view), limit)


def moved(error: ProtocolError, start: int, where: str) -> ProtocolError:
    """The same error, of compressed data that begins at byte `start` of what `where` names a part of.

    >>> moved(ProtocolError("it is malformed", offset=7, where="compressed data"), 61, "records")
    ProtocolError('it is malformed (records, byte 68)')
    """
    return ProtocolError(error.reason, offset=start + (error.offset or 0), where=where, code=error.code)


def _corrupt(reason: str, offset: int | None = None) -> ProtocolError:
    return ProtocolError(reason, offset=offset, where="compressed data", code=ErrorCode.CORRUPT_MESSAGE)


def _check_size(name: str, size: int, limit: int) -> None:
    if size > limit:
        raise ProtocolError(
            f"{name} data decompresses to more than the limit of {limit} bytes",
            where="compressed data",
            code=ErrorCode.MESSAGE_TOO_LARGE,
        )


_USUAL_ROOM = 16 * 1024
_USUAL_RATIO = 8
_GROWTH = 4
# Differs from process to process, as hashes of strings do, so that no data can be made to look like it.
_UNTOUCHED = hash("untouched").to_bytes(8, "little", signed=True)


def _decompress_growing(
    name: str, function: Callable[..., int], data: Buffer, claim: int | None, limit: int
) -> memoryview:
    """Decompress into a buffer that grows up to the limit, each time from the start.

    The first has the size that the data claims to need, as far as that is not unusual.
    """
    size = min(limit, _USUAL_ROOM + _USUAL_RATIO * len(data))
    if claim is not None:
        size = min(size, claim)
    while True:
        output = bytearray(size + len(_UNTOUCHED))
        # What the decoder complains of is not told apart from lack of room, but it fills what room there is.
        output[size:] = _UNTOUCHED
        try:
            written = _guarded(name, function, data, output)
            break
        except ProtocolError:
            if output[size:] == _UNTOUCHED:
                raise
            _check_size(name, size + 1, limit)
        size = min(limit, max(_USUAL_ROOM, _GROWTH * size))
    _check_size(name, written, limit)
    return memoryview(output)[:written]


def _guarded(name: str, function: Callable[..., int], *arguments: Any, offset: int | None = None) -> int:
    """Call into cramjam; whatever it finds wrong with the peer's bytes becomes a ProtocolError."""
    try:
        return function(*arguments)
    except cramjam.DecompressionError as error:
        raise _corrupt(f"{name} data is malformed: {error}", offset) from error
    except BaseException as error:
        # A panic of the Rust code is a BaseException, of a class that cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        raise _corrupt(f"{name} data is malformed: {error}", offset) from error


# gzip: the standard library is as fast as cramjam here, and stops at a given size of itself.

_GZIP_WINDOW_BITS = 31
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_LATER_WINDOW = 16 * 1024


def _gzip_decompress(data: memoryview, limit: int) -> memoryview:
    chunks: list[bytes] = []
    size = position = start = 0
    # Whole at first, as there is nearly always one member; then in small windows: zlib copies the rest of its
    # input at the end of a member, which thousands of tiny members would make quadratic.
    window = max(len(data), 1)
    member = zlib.decompressobj(_GZIP_WINDOW_BITS)
    while True:
        piece = data[position : position + window]
        if not piece:
            raise _corrupt(f"gzip data ends within a member, after {len(data)} bytes", start)
        try:
            chunks.append(member.decompress(piece, limit - size + 1))
        except zlib.error as error:
            raise _corrupt(f"gzip data is malformed: {error}", start) from error
        size += len(chunks[-1])
        _check_size("gzip", size, limit)
        position += len(piece) - len(member.unused_data)
        if member.eof:
            # Java reads member after member, and ignores what does not begin as one.
            if data[position : position + 2] != _GZIP_MAGIC:
                return memoryview(chunks[0] if len(chunks) == 1 else b"".join(chunks))
            member = zlib.decompressobj(_GZIP_WINDOW_BITS)
            start = position
            window = _GZIP_LATER_WINDOW


# Snappy: written in the blocks of Java's snappy library ("xerial"), read in these or as one raw block.

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_SIZE = 32 * 1024
# The densest element of the format is a copy of 64 bytes in three.
_SNAPPY_MOST_RATIO = 22
_INT32 = struct.Struct(">i")


def _snappy_compress(data: memoryview) -> bytes:
    parts: list[Buffer] = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_SIZE]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _snappy_decompress(data: memoryview, limit: int) -> memoryview:
    # The blocks are walked twice and not kept: of tiny ones there can be very many.
    total = 0
    for start, length in _snappy_blocks(data):
        total += _snappy_size(data[start : start + length], start)
    _check_size("snappy", total, limit)
    output = memoryview(bytearray(total))
    position = 0
    for start, length in _snappy_blocks(data):
        block = data[start : start + length]
        end = position + _snappy_size(block, start)
        _guarded("snappy", cramjam.snappy.decompress_raw_into, block, output[position:end], offset=start)
        position = end
    return output


def _snappy_size(block: memoryview, start: int) -> int:
    """Bytes that a block holds, by its own account."""
    size = _guarded("snappy", cramjam.snappy.decompress_raw_len, block, offset=start)
    if size > len(block) * _SNAPPY_MOST_RATIO:
        raise _corrupt(f"snappy block of {len(block)} bytes claims to hold {size}, more than it can", start)
    return size


def _snappy_blocks(data: memoryview) -> Iterator[tuple[int, int]]:
    """Where each block starts, and its length."""
    if len(data) >= len(_XERIAL_HEADER) and data[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
        return _xerial_blocks(data)
    return iter(((0, len(data)),))


def _xerial_blocks(data: memoryview) -> Iterator[tuple[int, int]]:
    # Some writers swap the bytes of the two version numbers; there is only one version, so skip them.
    position = len(_XERIAL_HEADER)
    # Java ignores an incomplete length at the end; what is missing shows in the records.
    while position + 4 <= len(data):
        # Java takes streams written one after another for one.
        if data[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        (length,) = _INT32.unpack_from(data, position)
        position += 4
        if not 0 <= length <= len(data) - position:
            raise _corrupt(
                f"snappy block of {length} bytes does not fit in the {len(data) - position} that follow",
                position - 4,
            )
        yield position, length
        position += length


# LZ4: a standard frame. Its blocks must not refer to each other, or Java refuses them.

_LZ4_MAGIC = 0x184D2204
_LZ4_BLOCK_SIZES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
_LZ4_BLOCK_SIZE = 1 << 16
_LZ4_PLAIN_FLAGS = 0x60
"""Blocks that do not refer to each other, and no checksum but that of the header: what Java and librdkafka write."""
_LZ4_PLAIN_HEADER = bytes.fromhex("04224d18604082")
_LZ4_PLAIN_HEADER_SIZE = len(_LZ4_PLAIN_HEADER)
_LZ4_END = bytes(4)
_LZ4_STORED = 1 << 31
"""Added to the length of a block that is not compressed."""
_LZ4_FIRST_HIGH = 3
"""The first level of those that take long."""
_LZ4_FEWEST_BYTES = 1024
"""Where blocks are smaller than this, to decompress them one by one takes longer."""
_LZ4_MOST_RATIO = 255
_UINT32_LITTLE = struct.Struct("<I")
_LZ4_START = struct.Struct("<IBB")
_MASK32 = 0xFFFFFFFF


def _lz4_compress(data: Buffer, level: int, legacy: bool) -> bytes:
    frame = _lz4_fast(memoryview(data)) if level < _LZ4_FIRST_HIGH else _lz4_high(data, level)
    # Kafka 0.8 and 0.9 take the checksum over the magic number too, and check it.
    return bytes(_lz4_with_checksum(frame, first=0)) if legacy else frame


def _lz4_fast(data: memoryview) -> bytes:
    """A frame as Java and librdkafka write it. cramjam's own has a checksum for each block, which takes time."""
    parts: list[Buffer] = [_LZ4_PLAIN_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_SIZE):
        block = data[start : start + _LZ4_BLOCK_SIZE]
        squeezed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(squeezed) < len(block):
            parts += (_UINT32_LITTLE.pack(len(squeezed)), squeezed)
        else:
            parts += (_UINT32_LITTLE.pack(len(block) | _LZ4_STORED), block)
    parts.append(_LZ4_END)
    return b"".join(parts)


def _lz4_high(data: Buffer, level: int) -> bytes:
    # `compress_block` takes a level, and does not heed it.
    compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    # Unlike the rest of cramjam, this method takes nothing but bytes.
    compressor.compress(data if isinstance(data, bytes) else bytes(data))
    return bytes(compressor.finish())


def _lz4_decompress(data: memoryview, limit: int, legacy: bool) -> memoryview:
    only = _lz4_only_block(data, limit)
    if only is not None:
        return only
    end, most, blocks = _lz4_frame(data)
    # Java reads one frame and ignores what follows.
    frame = data[:end]
    is_plain = frame[4] == _LZ4_PLAIN_FLAGS and (legacy or frame[6] == _lz4_plain_checksum(frame[5]))
    is_usual = most <= min(limit, max(_LZ4_BLOCK_SIZE, _USUAL_RATIO * end)) and blocks <= 1 + end // _LZ4_FEWEST_BYTES
    if is_plain and is_usual:
        return _lz4_decompress_blocks(frame, most)
    readable = _lz4_with_checksum(frame, first=4) if legacy else frame
    return _decompress_growing("lz4", cramjam.lz4.decompress_into, readable, most, limit)


def _lz4_only_block(data: memoryview, limit: int) -> memoryview | None:
    """What a plain frame of one compressed block holds, as nearly all batches are; None if it is anything else, or may
    hold more than usual.

    It gives what the general way would, which takes as long to find out that there is one block as to decompress it.
    """
    block_size = _lz4_plain_headers().get(bytes(data[:_LZ4_PLAIN_HEADER_SIZE]))
    if block_size is None or len(data) < _LZ4_PLAIN_HEADER_SIZE + 4:
        return None
    (length,) = _UINT32_LITTLE.unpack_from(data, _LZ4_PLAIN_HEADER_SIZE)
    start = _LZ4_PLAIN_HEADER_SIZE + 4
    end = start + length
    # A block that is stored as it is has a length beyond any of these.
    if not 0 < length <= block_size or data[end : end + 4] != _LZ4_END:
        return None
    most = min(block_size, length * _LZ4_MOST_RATIO)
    if most > limit or most > max(_LZ4_BLOCK_SIZE, _USUAL_RATIO * end):
        return None
    output = memoryview(bytearray(most))
    return output[: _guarded("lz4", _lz4_decompress_block, data[start:end], output, offset=start)]


def _lz4_decompress_blocks(frame: memoryview, most: int) -> memoryview:
    """The blocks of a frame without any checksums of content, each by itself: three times as fast as the frame."""
    output = memoryview(bytearray(most))
    size = 0
    for start, length, is_stored in _lz4_blocks(frame, _lz4_header_length(frame[4]), 0):
        block = frame[start : start + length]
        if is_stored:
            output[size : size + length] = block
            size += length
        else:
            size += _guarded("lz4", _lz4_decompress_block, block, output[size:], offset=start)
    return output[:size]


def _lz4_header_length(flags: int) -> int:
    return 15 if flags & 0x08 else 7


def _lz4_with_checksum(frame: Buffer, first: int) -> bytearray:
    """A copy of `frame` whose header checksum begins at byte `first`: 4 is right, 0 is old Kafka."""
    copy = bytearray(frame)
    last = _lz4_header_length(copy[4]) - 1
    copy[last] = xxh32_short(copy[first:last]) >> 8 & 0xFF
    return copy


def _lz4_decompress_block(block: memoryview, output: memoryview) -> int:
    # With a length, since none stands before the block itself.
    size: int = cramjam.lz4.decompress_block_into(block, output, output_len=len(output))
    return size


@cache
def _lz4_plain_headers() -> dict[bytes, int]:
    """The headers of plain frames, with the size that their blocks have at most."""
    found = {}
    for number, block_size in _LZ4_BLOCK_SIZES.items():
        start = _LZ4_START.pack(_LZ4_MAGIC, _LZ4_PLAIN_FLAGS, number << 4)
        found[start + bytes((_lz4_plain_checksum(start[-1]),))] = block_size
    return found


@cache
def _lz4_plain_checksum(block_descriptor: int) -> int:
    """The checksum of a header without any extras."""
    return xxh32_short(bytes((_LZ4_PLAIN_FLAGS, block_descriptor))) >> 8 & 0xFF


def _lz4_frame(data: memoryview) -> tuple[int, int, int]:
    """Where the first frame of `data` ends, how many bytes it holds at most, and in how many blocks."""
    if len(data) < 7:
        raise _corrupt(f"lz4 data of {len(data)} bytes is too short for a frame", 0)
    magic, flags, block_descriptor = _LZ4_START.unpack_from(data, 0)
    block_size = _LZ4_BLOCK_SIZES.get(block_descriptor >> 4 & 0x07)
    if magic != _LZ4_MAGIC:
        raise _corrupt(f"lz4 data begins with {magic:#010x}, not with the magic number of a frame", 0)
    if flags >> 6 != 1 or flags & 0x01 or block_size is None:
        raise _corrupt(f"lz4 frame has unsupported flags {flags:#04x} {block_descriptor:#04x}", 4)
    position = _lz4_header_length(flags)
    checksum_length = 4 if flags & 0x10 else 0
    most = count = 0
    for start, length, is_stored in _lz4_blocks(data, position, checksum_length):
        if length > block_size:
            raise _corrupt(f"lz4 block of {length} bytes is over the frame's {block_size}", start - 4)
        most += length if is_stored else min(block_size, length * _LZ4_MOST_RATIO)
        count += 1
        position = start + length + checksum_length
    end = position + 4 + (4 if flags & 0x04 else 0)
    if end > len(data):
        raise _corrupt(f"lz4 frame is cut short after {len(data)} bytes", len(data))
    return end, most, count


def _lz4_blocks(data: memoryview, position: int, checksum_length: int) -> Iterator[tuple[int, int, bool]]:
    """Where each block starts, its length, and whether it is stored as it is; the last may be cut short."""
    # Walked twice where need be, and not kept: of tiny ones there can be very many.
    while position + 4 <= len(data):
        (length,) = _UINT32_LITTLE.unpack_from(data, position)
        if length == 0:
            return
        stored = length & ~_LZ4_STORED
        yield position + 4, stored, stored != length
        position += 4 + stored + checksum_length


def xxh32_short(data: Buffer) -> int:
    """The xxHash32 of fewer than 16 bytes, which is all that an LZ4 frame header takes.

    >>> hex(xxh32_short(b"abc"))
    '0x32d153ff'
    """
    prime1, prime3, prime4, prime5 = 0x9E3779B1, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
    if len(data) >= 16:
        raise EncodeError(f"{len(data)} bytes to hash, at most 15 are supported")
    digest = prime5 + len(data)
    words = len(data) // 4
    for word in struct.unpack_from(f"<{words}I", data):
        digest = digest + word * prime3 & _MASK32
        digest = (digest << 17 | digest >> 15) * prime4 & _MASK32
    for byte in data[words * 4 :]:
        digest = digest + byte * prime5 & _MASK32
        digest = (digest << 11 | digest >> 21) * prime1 & _MASK32
    digest = (digest ^ digest >> 15) * 0x85EBCA77 & _MASK32
    digest = (digest ^ digest >> 13) * prime3 & _MASK32
    return digest ^ digest >> 16


# zstd: any number of frames.


def _zstd_claim(data: memoryview) -> int | None:
    """How many bytes the first frame says it holds. Those of Java's writer do not say."""
    if len(data) < 5:
        return None
    descriptor = data[4]
    single_segment = descriptor >> 5 & 1
    length = (single_segment, 2, 4, 8)[descriptor >> 6]
    start = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3]
    size = int.from_bytes(data[start : start + length], "little")
    return size + (256 if length == 2 else 0) if length else None
