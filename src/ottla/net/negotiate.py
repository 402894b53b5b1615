"""Which version of each API to use with a broker.

A broker says in its ApiVersions reply what it offers; the highest version that both sides have is used. Brokers before
0.10 do not know the question and close the connection: for them, what Kafka 0.9 offered is assumed.
"""

import struct
from collections.abc import Mapping
from typing import Any

from ottla.wire.api import api_name
from ottla.wire.api.api_versions import ApiVersionsResponse
from ottla.wire.errors import ErrorCode, KafkaError, ProtocolError
from ottla.wire.frame import decode_response
from ottla.wire.schema import Versions, schema_of

Offer = Mapping[int, Versions]
"""The versions that a broker offers, by API key."""

API_VERSIONS = 18


class UnsupportedVersionError(KafkaError):
    """The broker does not offer this, or only in versions that this side does not have.

    >>> print(UnsupportedVersionError("localhost:9092 offers no ConsumerGroupHeartbeat"))
    UNSUPPORTED_VERSION: localhost:9092 offers no ConsumerGroupHeartbeat
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, message)


BEFORE_API_VERSIONS: Offer = {
    0: Versions(0, 1),
    1: Versions(0, 1),
    2: Versions(0, 0),
    3: Versions(0, 0),
    8: Versions(0, 2),
    9: Versions(0, 1),
    10: Versions(0, 0),
    11: Versions(0, 0),
    12: Versions(0, 0),
    13: Versions(0, 0),
    14: Versions(0, 0),
    15: Versions(0, 0),
    16: Versions(0, 0),
}
"""What Kafka 0.9 offered, in which there was no way to ask."""

_START = struct.Struct(">ih")
"""Correlation id and error code, with which all versions begin."""


def decode_offer(frame: bytes | bytearray, version: int) -> tuple[ErrorCode, Offer]:
    """Read an ApiVersions reply. One that says UNSUPPORTED_VERSION has the form of version 0, whatever was asked."""
    refused = len(frame) >= _START.size and _START.unpack_from(frame)[1] == ErrorCode.UNSUPPORTED_VERSION
    try:
        _, response = decode_response(ApiVersionsResponse, 0 if refused else version, frame)
    except ProtocolError:
        # Some brokers write the rest of a refusal in no version at all.
        if refused:
            return ErrorCode.UNSUPPORTED_VERSION, {}
        raise
    return (
        ErrorCode(response.error_code),
        {item.api_key: Versions(item.min_version, item.max_version) for item in response.api_keys},
    )


def best_version(request: type[Any], offer: Offer, broker: str) -> int:
    """The highest version of a request that this side and the broker both have.

    >>> from ottla.wire.api.fetch import FetchRequest
    >>> best_version(FetchRequest, {1: Versions(4, 11)}, "localhost:9092")
    11
    >>> try:
    ...     best_version(FetchRequest, {1: Versions(30, 31)}, "old:9092")
    ... except UnsupportedVersionError as error:
    ...     print(error)
    UNSUPPORTED_VERSION: old:9092 offers Fetch v30 to v31, this client has v0 to v18
    """
    schema = schema_of(request)
    assert schema.key is not None, f"{request.__name__} is no request"
    ours, theirs = schema.versions, offer.get(schema.key)
    if theirs is None:
        raise UnsupportedVersionError(f"{broker} does not offer {api_name(schema.key)}")
    version = min(ours.last, theirs.last)
    if version < max(ours.first, theirs.first):
        raise UnsupportedVersionError(
            f"{broker} offers {api_name(schema.key)} v{theirs.first} to v{theirs.last}, "
            f"this client has v{ours.first} to v{ours.last}",
        )
    return version
