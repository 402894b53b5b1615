"""What serializers with a schema registry write before a value: a zero byte, and the id of its schema."""

MAGIC = 0
FRAME_BYTES = 5


def read_schema_id(value: bytes) -> int:
    """The id of the schema that a value was written with.

    >>> read_schema_id(bytes([0, 0, 0, 0, 7]) + b"...")
    7
    """
    if len(value) < FRAME_BYTES or value[0] != MAGIC:
        raise ValueError(f"it begins with {value[:FRAME_BYTES].hex(' ') or 'nothing'}, not with 00 and a schema's id")
    return int.from_bytes(value[1:FRAME_BYTES], "big")


def skip_message_indexes(value: bytes) -> int:
    """Where a Protobuf message begins: after the id comes which of the schema's messages it is, as zigzag numbers.

    >>> skip_message_indexes(bytes([0, 0, 0, 0, 7, 0]) + b"...")
    6
    >>> skip_message_indexes(bytes([0, 0, 0, 0, 7, 4, 2, 0]) + b"...")
    8
    """
    read_schema_id(value)
    count, place = _varint(value, FRAME_BYTES)
    for _ in range(count >> 1):
        _, place = _varint(value, place)
    return place


def _varint(value: bytes, place: int) -> tuple[int, int]:
    number = 0
    for turn, byte in enumerate(value[place : place + 5]):
        number |= (byte & 0x7F) << 7 * turn
        if byte < 0x80:
            return number, place + turn + 1
    raise ValueError("the numbers that say which message it is have no end")
