"""Unsigned varints: seven bits a byte, least significant first. Lengths, counts and tags of flexible versions."""

from ottla.wire.errors import ProtocolError

_SHORT = tuple(bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80, value >> 7]) for value in range(0x1000))


def encode_uvarint(value: int) -> bytes:
    """Encode a number from 0 to 2**32 - 1.

    >>> encode_uvarint(300).hex()
    'ac02'
    """
    if value < 0x1000:
        return _SHORT[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_uvarint(buffer: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """Decode a number of at most 32 bits; returns it and the position after it. IndexError if the bytes end.

    >>> decode_uvarint(bytes.fromhex("ac02"), 0)
    (300, 2)
    """
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise ProtocolError("a varint runs over five bytes", offset=position)
    if value > 0xFFFFFFFF:
        raise ProtocolError(f"varint {value} does not fit 32 bits", offset=position)
    return value, position
