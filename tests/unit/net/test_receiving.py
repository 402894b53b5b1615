"""Frames out of bytes that come in any cut, received in place."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.net.receiving import FIRST_BYTES, LARGE_BYTES, PEEK_BYTES, STEP_BYTES, TRUSTED_BYTES, Receiver, scratch
from ottla.wire.errors import ProtocolError

SCRATCH = 64 * 1024


def feed(receiver: Receiver, data: bytes, cuts: list[int]) -> list[bytes]:
    """Put bytes where the receiver wants them, in pieces of these sizes by turns, or as much as there is room for."""
    frames: list[bytes] = []
    position = turn = 0
    while position < len(data):
        room = receiver.room()
        assert len(room) > 0
        count = min(len(room), len(data) - position, cuts[turn % len(cuts)])
        room[:count] = data[position : position + count]
        # Growing a buffer needs that nobody holds a view of it.
        room.release()
        frames += map(bytes, receiver.received(count))
        position += count
        turn += 1
    return frames


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.integers(0, 50), st.integers(0, 3 * SCRATCH)), max_size=8),
    st.lists(st.integers(500, 2 * SCRATCH), min_size=1, max_size=5),
)
def test_frames_come_out_whole_however_the_bytes_are_cut(sizes: list[int], cuts: list[int]) -> None:
    frames = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    assert feed(Receiver(2**31 - 1, scratch(SCRATCH)), stream, cuts) == frames


@given(st.lists(st.integers(0, 50), max_size=8), st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_small_frames_come_out_whole_byte_by_byte(sizes: list[int], cuts: list[int]) -> None:
    frames = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    assert feed(Receiver(2**31 - 1, scratch(SCRATCH)), stream, cuts) == frames


@pytest.mark.parametrize("size", [SCRATCH - 5, SCRATCH - 4, SCRATCH - 3, SCRATCH, SCRATCH + 1])
def test_frames_around_the_size_of_the_shared_room(size: int) -> None:
    frames = [b"before", b"x" * size, b"after"]
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    assert feed(Receiver(2**31 - 1, scratch(SCRATCH)), stream, [10_000_000]) == frames
    assert feed(Receiver(2**31 - 1, scratch(SCRATCH)), stream, [1000]) == frames


def test_a_frame_of_several_steps_arrives_whole_and_its_announcement_takes_little() -> None:
    size = 3 * STEP_BYTES + 17
    receiver = Receiver(2**31 - 1, scratch(SCRATCH))
    feed(receiver, struct.pack(">i", size), [4])
    with receiver.room() as room:
        assert len(room) == FIRST_BYTES
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert feed(receiver, body, [STEP_BYTES]) == [body]
    assert feed(receiver, struct.pack(">i", 3) + b"abc", [7]) == [b"abc"]


def test_what_a_peer_is_believed_gets_its_room_at_once() -> None:
    receiver = Receiver(2**31 - 1, scratch(SCRATCH), believed=3 * STEP_BYTES)
    for size, at_once in ((2 * STEP_BYTES, 2 * STEP_BYTES), (4 * STEP_BYTES, 3 * STEP_BYTES)):
        feed(receiver, struct.pack(">i", size), [4])
        with receiver.room() as room:
            assert len(room) == at_once
        body = bytes(range(256)) * (size // 256)
        assert feed(receiver, body, [STEP_BYTES // 3]) == [body]


def test_after_a_large_frame_little_of_the_next_is_copied() -> None:
    receiver = Receiver(10 * TRUSTED_BYTES, scratch())
    whole = len(receiver.room())
    for size in (LARGE_BYTES, 2 * LARGE_BYTES, 10):
        frame = bytes(range(256)) * (size // 256) + bytes(size % 256)
        found = feed(receiver, struct.pack(">i", size) + frame, [10_000_000])
        assert found == [frame]
        assert len(receiver.room()) == (PEEK_BYTES if size >= LARGE_BYTES else whole)


def test_a_peer_that_has_sent_much_may_announce_as_much_and_no_more_than_half_a_megabyte() -> None:
    receiver = Receiver(10 * TRUSTED_BYTES, scratch())
    for size, most in (
        (LARGE_BYTES, FIRST_BYTES),
        (3 * TRUSTED_BYTES, LARGE_BYTES),
        (4 * TRUSTED_BYTES, TRUSTED_BYTES),
    ):
        receiver.room()[:4] = struct.pack(">i", size)
        assert receiver.received(4) == []
        assert len(receiver.room()) == most
        found: list[bytes | bytearray] = []
        while not found:
            found = receiver.received(len(receiver.room()))
        assert len(found[0]) == size


def test_connections_share_a_scratch() -> None:
    shared = scratch(SCRATCH)
    one, other = Receiver(100, shared), Receiver(100, shared)
    whole = struct.pack(">i", 3) + b"abc"
    for cut in range(1, len(whole)):
        assert feed(one, whole[:cut], [cut]) == []
        assert feed(other, struct.pack(">i", 2) + b"xy", [6]) == [b"xy"]
        assert (one.mid_frame, one.missing) == (True, 0 if cut < 4 else 7 - cut)
        assert feed(one, whole[cut:], [7]) == [b"abc"]
        assert (one.mid_frame, one.missing) == (False, 0)


def test_good_frames_before_a_bad_size_come_out_first() -> None:
    receiver = Receiver(100, scratch(SCRATCH))
    assert feed(receiver, struct.pack(">i", 2) + b"xy" + struct.pack(">i", 101), [10]) == [b"xy"]
    assert receiver.failure is not None
    with pytest.raises(ProtocolError, match="a frame of 101 bytes"):
        receiver.received(0)


@pytest.mark.parametrize("size", [-1, 101, 2**31 - 1])
def test_a_size_out_of_bounds_is_refused_before_anything_is_kept(size: int) -> None:
    with pytest.raises(ProtocolError, match=f"a frame of {size} bytes"):
        feed(Receiver(100, scratch(SCRATCH)), struct.pack(">i", size), [4])
