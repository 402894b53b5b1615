import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.net.receiving import AHEAD, FrameTooLargeError
from ottla.wire.api import MODULES, request, response
from ottla.wire.api.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.api.metadata import MetadataRequest, MetadataResponse
from ottla.wire.api.produce import ProduceRequest
from ottla.wire.compile import encoder
from ottla.wire.errors import EncodeError, ProtocolError
from ottla.wire.frame import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    read_request_prefix,
    request_header_version,
    response_header_version,
)
from ottla.wire.header import RequestHeader
from ottla.wire.schema import Schema, Versions, schema_of
from tests.interop.frames import FrameReader

SCRATCH = 4096


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(0, 400), max_size=20))
def test_frames_come_out_whole_however_the_bytes_are_cut(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(framed, payloads))
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    reader = FrameReader(max_size=40)
    frames = [frame for a, b in pairwise(edges) for frame in reader.feed(stream[a:b])]
    assert frames == payloads
    assert not reader.mid_frame


def test_frames_come_out_whole_byte_by_byte() -> None:
    payloads = [b"", b"a", b"bc" * 100]
    reader = FrameReader(max_size=1000)
    frames = [frame for byte in b"".join(map(framed, payloads)) for frame in reader.feed(bytes([byte]))]
    assert frames == payloads


@pytest.mark.parametrize("size", [101, 2**31 - 1, -1, -(2**31)])
def test_a_size_out_of_bounds_is_refused_as_soon_as_it_is_there(size: int) -> None:
    reader = FrameReader(max_size=100)
    raw = size.to_bytes(4, "big", signed=True)
    assert reader.feed(raw[:3]) == []
    with pytest.raises(FrameTooLargeError, match=str(size)):
        reader.feed(raw[3:])


def test_a_frame_of_the_largest_size_passes() -> None:
    assert FrameReader(max_size=100).feed(framed(b"x" * 100)) == [b"x" * 100]


@pytest.mark.parametrize("cut", range(1, 10))
def test_a_stream_that_ends_inside_a_frame_is_noticed(cut: int) -> None:
    reader = FrameReader(max_size=100)
    reader.feed(framed(b"payload")[:cut])
    assert reader.mid_frame


def test_good_frames_before_a_bad_size_are_not_lost() -> None:
    reader = FrameReader(max_size=100)
    assert reader.feed(framed(b"good") + bytes.fromhex("7fffffff") + b"rest") == [b"good"]
    assert reader.failure is not None
    assert reader.failure.offset == 8
    with pytest.raises(FrameTooLargeError, match="frame size, byte 8"):
        reader.feed(framed(b"never"))


@pytest.mark.parametrize("piece", [1, 2, 100, 5000])
def test_a_reader_keeps_about_what_arrived_and_not_what_was_announced(piece: int) -> None:
    reader = FrameReader(max_size=2**31 - 1, scratch_bytes=SCRATCH)
    data = b"x" * 200_000
    tracemalloc.start()
    reader.feed((2**31 - 1).to_bytes(4, "big"))
    for start in range(0, len(data), piece):
        reader.feed(data[start : start + piece])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (AHEAD + 1) * len(data) + 2 * SCRATCH


def test_the_smallest_metadata_request_of_the_protocol_guide() -> None:
    data = bytes.fromhex("00000012 0003 0000 00000001 0004 74657374 ffffffff")
    (frame,) = FrameReader(max_size=100).feed(data)
    assert read_request_prefix(frame) == (3, 0, 1)
    header, body = decode_request(MetadataRequest, 0, frame)
    assert header.client_id == "test"
    assert body.topics is None
    assert b"".join(encode_request(body, 0, correlation_id=1, client_id="test")) == data


def test_the_smallest_metadata_response_of_the_protocol_guide() -> None:
    data = bytes.fromhex("0000000c 00000001 00000000 00000000")
    assert b"".join(encode_response(MetadataResponse(), 0, correlation_id=1)) == data
    header, body = decode_response(MetadataResponse, 0, data[4:])
    assert (header.correlation_id, body) == (1, MetadataResponse())


def test_a_flexible_produce_request_opens_as_the_protocol_guide_says() -> None:
    data = b"".join(encode_request(ProduceRequest(), 9, correlation_id=42, client_id="prod1"))
    assert data[4:].startswith(bytes.fromhex("0000 0009 0000002a 0005 70726f6431 00"))


@pytest.mark.parametrize("client_id", [None, "", "c"])
def test_every_api_and_version_has_a_header_that_reads_back(client_id: str | None) -> None:
    for key in MODULES:
        for version in schema_of(request(key)).versions:
            frame = b"".join(encode_request(request(key)(), version, correlation_id=7, client_id=client_id))[4:]
            assert read_request_prefix(frame) == (key, version, 7)
            header, body = decode_request(request(key), version, frame)
            assert (header.client_id, body) == (client_id, request(key)())
            frame = b"".join(encode_response(response(key)(), version, correlation_id=-1))[4:]
            assert decode_response(response(key), version, frame)[0].correlation_id == -1


def test_api_versions_replies_have_the_old_header_even_when_flexible() -> None:
    assert response_header_version(schema_of(ApiVersionsResponse), 3) == 0
    assert request_header_version(schema_of(ApiVersionsRequest), 3) == 2


def test_controlled_shutdown_v0_has_no_client_id() -> None:
    shutdown = Schema(7, Versions(0, 3), Versions(3, 3), {}, {})
    assert [request_header_version(shutdown, version) for version in range(4)] == [0, 1, 1, 2]


def test_a_frame_too_short_for_a_header_is_refused() -> None:
    with pytest.raises(ProtocolError, match="8 bytes"):
        read_request_prefix(b"\0\0\0")


@pytest.mark.parametrize("client_id", [None, "", "ottla", "größer", "x" * 32767])
@pytest.mark.parametrize(("cls", "version"), [(MetadataRequest, 0), (MetadataRequest, 12)])
def test_the_header_is_what_its_codec_makes(cls: type[Any], version: int, client_id: str | None) -> None:
    frame = b"".join(encode_request(cls(), version, correlation_id=2**31 - 1, client_id=client_id))[4:]
    header, _ = decode_request(cls, version, frame)
    pieces: list[Any] = []
    encoder(RequestHeader, request_header_version(schema_of(cls), version))(header, pieces, [])
    assert frame.startswith(b"".join(pieces))
    assert (header.correlation_id, header.client_id) == (2**31 - 1, client_id)


@pytest.mark.parametrize("client_id", ["x" * 32768, "\ud800"])
def test_a_client_id_that_does_not_fit_is_refused(client_id: str) -> None:
    with pytest.raises(EncodeError, match="client id"):
        encode_request(MetadataRequest(), 0, correlation_id=1, client_id=client_id)
