"""Makes what is around damaged bytes right, so that the damage is met by what it was meant for."""

from struct import Struct, pack, pack_into
from zlib import crc32

from crc32c import crc32c

from ottla.record.compression import Codec, compress

_ENTRY = Struct(">qiib")
_V2_HEADER_SIZE = 61
_V2_ATTRIBUTES = 22


def mend(data: bytes) -> bytes:
    """A run of entries with CRCs that fit, and a last length, as far as the entries can be told apart."""
    mended = bytearray(data)
    position = 0
    while position + _ENTRY.size <= len(mended):
        _, length, _, magic = _ENTRY.unpack_from(mended, position)
        end = min(position + 12 + length, len(mended))
        if end < position + (61 if magic == 2 else 26) or magic not in (0, 1, 2):
            break
        pack_into(">i", mended, position + 8, end - position - 12)
        if magic == 2:
            pack_into(">I", mended, position + 17, crc32c(mended[position + 21 : end]))
        else:
            pack_into(">I", mended, position + 12, crc32(mended[position + 16 : end]))
        position = end
    return bytes(mended)


def wrapped(data: bytes) -> bytes:
    """A message set inside a wrapper; codec and magic depend on the bytes alone, so that a case can be repeated."""
    choice = crc32(data)
    codec = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4)[choice % 3]
    magic = choice // 3 % 2
    value = compress(codec, data, legacy_lz4=magic == 0)
    timestamp = pack(">q", 1_700_000_000_000) if magic else b""
    body = pack(">bb", magic, codec) + timestamp + pack(">ii", -1, len(value)) + value
    # Some producers leave a wrapper's offset at 0.
    offset = choice // 6 % 2 * 100
    return pack(">qiI", offset, len(body) + 4, crc32(body)) + body


def sealed(data: bytes) -> bytes:
    """A batch whose records are compressed, and its length and CRC made right; the codec depends on the bytes."""
    if len(data) < _V2_HEADER_SIZE:
        return data
    codec = list(Codec)[crc32(data) % len(Codec)]
    payload = compress(codec, data[_V2_HEADER_SIZE:])
    header = bytearray(data[:_V2_HEADER_SIZE])
    pack_into(">i", header, 8, _V2_HEADER_SIZE - 12 + len(payload))
    header[16] = 2
    header[_V2_ATTRIBUTES] = header[_V2_ATTRIBUTES] & ~0x07 | codec
    return mend(bytes(header) + payload)
