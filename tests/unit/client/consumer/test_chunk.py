"""Walking over fetched bytes: where they end, and which batches are for the user."""

import struct

import pytest

from ottla.client.consumer.chunk import Chunk, Extent, extent_of
from ottla.record import Batch, Codec, LegacyEntry, Record, build_end_marker
from ottla.record.legacy import build_message_set
from ottla.wire.api.fetch import AbortedTransaction

from .fetched import batch, chunk


def shown(walked: Chunk) -> list[tuple[int, bool]]:
    found = []
    while not walked.is_read:
        entry, is_shown = walked.peek()
        found.append((entry.base_offset if isinstance(entry, Batch) else entry.offset, is_shown))
        walked.skip(entry)
    return found


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    return build_end_marker(
        commit=commit,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=0,
        base_offset=offset,
    )


def transactional(*offsets: int, producer_id: int) -> bytes:
    return batch(*offsets, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)


def aborted(producer_id: int, first_offset: int) -> AbortedTransaction:
    return AbortedTransaction(producer_id=producer_id, first_offset=first_offset)


def test_the_extent_ends_with_the_last_whole_batch() -> None:
    whole = batch(3, 4, epoch=1) + batch(5, 9, epoch=2)
    assert extent_of(memoryview(whole)) == Extent(len(whole), 10, 2, 4)
    for cut in range(1, len(batch(5, 9))):
        first = len(batch(3, 4))
        assert extent_of(memoryview(whole[:-cut])) == Extent(first, 5, 1, 2)
    assert extent_of(memoryview(whole[:40])) is None
    assert extent_of(memoryview(b"")) is None


def test_the_extent_of_old_messages_is_told_by_their_own_offsets() -> None:
    old = build_message_set([Record(7, 1, None, b"a"), Record(8, 2, None, b"b")], 1)
    assert extent_of(memoryview(old + batch(9))) == Extent(len(old + batch(9)), 10, 0, 3)
    assert extent_of(memoryview(old)) == Extent(len(old), 9, -1, 2)
    wrapped = build_message_set([Record(7, 1, None, b"a"), Record(8, 2, None, b"b")], 1, Codec.GZIP)
    assert extent_of(memoryview(wrapped)) == Extent(len(wrapped), 9, -1, 1)


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 5])
def test_a_length_that_makes_no_sense_does_not_lead_astray(length: int) -> None:
    broken = bytearray(batch(5))
    struct.pack_into(">i", broken, 8, length)
    found = extent_of(memoryview(bytes(batch(3)) + broken))
    assert found is not None
    assert found.size >= len(batch(3))


def test_control_batches_are_not_for_the_user() -> None:
    walked = chunk(batch(0, 1), marker(2, 9, commit=True), batch(3))
    assert shown(walked) == [(0, True), (2, False), (3, True)]


def test_batches_of_aborted_transactions_are_left_out_until_their_marker() -> None:
    walked = chunk(
        transactional(0, 1, producer_id=9),
        transactional(2, producer_id=8),
        batch(3),
        marker(4, 9, commit=False),
        marker(5, 8, commit=True),
        transactional(6, producer_id=9),
        marker(7, 9, commit=True),
        transactional(8, producer_id=8),
        marker(9, 8, commit=False),
        aborted=[aborted(8, first_offset=8), aborted(9, first_offset=0)],
    )
    assert [offset for offset, is_shown in shown(walked) if is_shown] == [2, 3, 6]


def test_looking_twice_at_a_batch_changes_nothing() -> None:
    walked = chunk(transactional(0, producer_id=9), aborted=[aborted(9, first_offset=0)])
    assert [walked.peek()[1] for _ in range(3)] == [False] * 3


def test_old_messages_come_together_up_to_the_next_batch() -> None:
    old = build_message_set([Record(7, 1, None, b"a"), Record(8, 2, None, b"b")], 1)
    walked = chunk(old, batch(9))
    entry, _ = walked.peek()
    assert isinstance(entry, LegacyEntry)
    assert (entry.size, entry.offset) == (len(old), 8)
    assert shown(walked) == [(8, True), (9, True)]


def test_a_detached_chunk_keeps_its_place_and_lets_the_reply_go() -> None:
    reply = bytearray(batch(0) + batch(1))
    extent = extent_of(memoryview(reply))
    assert extent is not None
    walked = Chunk(memoryview(reply), extent)
    walked.skip(walked.peek()[0])
    walked.detach()
    # A buffer that somebody looks into cannot be resized.
    reply.extend(b"x")
    assert shown(walked) == [(1, True)]
