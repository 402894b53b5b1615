"""What consumers with sticky assignors write into the user data of their subscriptions. No version stands in front."""

from ottla.wire.compile import decode, decoder
from ottla.wire.embedded.consumer_protocol import TopicPartition
from ottla.wire.errors import ProtocolError
from ottla.wire.schema import Bytes, int32, message, v


@message(versions="0-1")
class StickyAssignorUserData:
    """v1 adds generation."""

    previous_assignment: list[TopicPartition] = v()
    generation: int32 = v("1+", -1)


@message(versions="0")
class CooperativeStickyAssignorUserData:
    """The only version so far. From v2 on a subscription has the generation in a field of its own."""

    generation: int32 = -1


# kafka-python 3 puts the version in front of v1, as nobody else does. Taken as a count, it announces 65,536 topics.
_READINGS = ((1, 0), (0, 0), (1, 2))


def read_sticky_user_data(data: Bytes) -> StickyAssignorUserData | None:
    """Read the user data of a sticky assignor, whichever version it is; None if it is none.

    Nothing says which version it is: the newest that fits is taken.

    >>> from ottla.wire.compile import encode
    >>> read_sticky_user_data(encode(StickyAssignorUserData(generation=7), 1)).generation
    7
    >>> read_sticky_user_data(encode(StickyAssignorUserData(), 0)).generation
    -1
    >>> read_sticky_user_data(b"?") is None
    True
    """
    for version, start in _READINGS:
        try:
            return decoder(StickyAssignorUserData, version)(data, start)[0]
        except ProtocolError:
            continue
    return None


def read_generation(data: Bytes) -> int:
    """The generation in the user data of a cooperative sticky assignor, -1 if it says none.

    librdkafka writes there what its sticky assignor writes.

    >>> read_generation(bytes.fromhex("00000007")), read_generation(bytes.fromhex("00000000 00000007"))
    (7, 7)
    >>> read_generation(b"")
    -1
    """
    if len(data) == 4:
        return decode(CooperativeStickyAssignorUserData, 0, data).generation
    sticky = read_sticky_user_data(data)
    return -1 if sticky is None else sticky.generation
