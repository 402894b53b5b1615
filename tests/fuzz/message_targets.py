"""Decoders of messages, and of what stands around them and inside them."""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

from ottla.wire import api
from ottla.wire.compile import PYTHON, Decoder, compiled_engine, encode, make_decoder
from ottla.wire.embedded import decode_key, decode_versioned, encode_key, encode_versioned
from ottla.wire.frame import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    read_request_prefix,
)
from ottla.wire.schema import schema_of
from tests.conformance.codecs import Codec, api_codecs, other_codecs
from tests.conformance.samples import Limits, make_sample
from tests.interop.frames import FrameReader

from .target import Target, agree


def targets() -> Iterator[Target]:
    """Every message in both engines, alone and against each other; frames; whole requests; embedded messages."""
    compiled = compiled_engine()
    for codec in [*api_codecs(), *other_codecs()]:
        make = partial(_message, codec)
        python = make_decoder(PYTHON, codec.message, codec.version)
        yield Target("messages, python", str(codec), make, partial(_decode, python))
        if compiled is not None:
            fast = make_decoder(compiled, codec.message, codec.version)
            yield Target("messages, compiled", str(codec), make, partial(_decode, fast))
            yield Target("messages, both the same", str(codec), make, partial(_decode_both, codec, python, fast))
    yield Target("frames", "frames", _frames, _read_frames)
    yield from _whole_targets()
    yield from _embedded_targets()


def _sample(codec: Codec, random: Random) -> Any:
    return make_sample(codec, random.randrange(2, 1 << 30), Limits(unknown_tags=True))


def _message(codec: Codec, random: Random) -> bytes:
    return encode(_sample(codec, random), codec.version)


def _decode(take: Decoder[Any], data: bytes) -> object:
    return take(data, 0)


def _decode_both(codec: Codec, first: Decoder[Any], second: Decoder[Any], data: bytes) -> None:
    def end(take: Decoder[Any]) -> object:
        message, position = take(data, 0)
        # As bytes: a NaN is not equal to itself, and a view is shown by its address.
        return encode(message, codec.version), position

    agree(partial(end, first), partial(end, second))


def _frames(random: Random) -> bytes:
    return b"".join(
        size.to_bytes(4, "big") + random.randbytes(size) for size in (random.randrange(30) for _ in range(4))
    )


def _read_frames(data: bytes) -> None:
    reader = FrameReader(max_size=64, scratch_bytes=256)
    for start in range(0, len(data), 7):
        for frame in reader.feed(data[start : start + 7]):
            if len(frame) > 20:
                read_request_prefix(frame)


def _whole_targets() -> Iterator[Target]:
    """The oldest and the newest version of each API, with its header."""
    for key in api.MODULES:
        for message, take in ((api.request(key), decode_request), (api.response(key), decode_response)):
            versions = schema_of(message).versions
            for version in sorted({versions.first, versions.last}):
                codec = Codec(take.__name__, key, message, version)
                yield Target(
                    "requests and responses", str(codec), partial(_whole, codec), partial(take, message, version)
                )
    yield Target("requests and responses", "prefix", lambda random: random.randbytes(8), read_request_prefix)


def _whole(codec: Codec, random: Random) -> bytes:
    message = _sample(codec, random)
    if codec.kind == "decode_request":
        buffers = encode_request(message, codec.version, correlation_id=7, client_id="fuzz")
    else:
        buffers = encode_response(message, codec.version, correlation_id=7)
    return b"".join(buffers)[4:]


def _embedded_targets() -> Iterator[Target]:
    for codec in other_codecs():
        if codec.kind != "data":
            continue
        is_key = schema_of(codec.message).key is not None
        take: Callable[[bytes], object]
        if is_key:
            take = partial(decode_key, codec.message)
        else:
            take = partial(decode_versioned, codec.message, from_the_future=codec.version % 2 == 0)
        yield Target("embedded", str(codec), partial(_embedded, codec, is_key), take)


def _embedded(codec: Codec, is_key: bool, random: Random) -> bytes:
    message = _sample(codec, random)
    return encode_key(message) if is_key else encode_versioned(message, codec.version)
