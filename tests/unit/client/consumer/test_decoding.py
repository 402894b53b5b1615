"""From fetched bytes to records: which, in what portions, and what happens where bytes make no sense."""

import pytest

from ottla.client.consumer.decoding import ENOUGH, Decoder
from ottla.client.consumer.subscription import PartitionState
from ottla.client.errors import CorruptRecordError, RecordDeserializationError
from ottla.client.types import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE
from ottla.record import Batch, Codec, Record, build_batch, build_end_marker
from ottla.record.legacy import build_message_set

from .fetched import batch, chunk, state_with


def offsets(decoder: Decoder, state: PartitionState) -> list[int]:
    """The offsets of all that can be read."""
    found: list[int] = []
    while state.chunks:
        if (run := decoder.begin_run(state)) is not None:
            found += [record.offset for record in run.iterator]
    return found


def test_records_have_all_their_fields() -> None:
    record = Record(7, 1500, b"k", None, [("a", b"1"), ("b", None)])
    run = Decoder().begin_run(state_with(chunk(build_batch([record], Codec.ZSTD)), position=7))
    assert run is not None
    ((topic, partition, *rest),) = run.records
    assert (topic, partition) == ("t", 0)
    assert rest == [7, 1500, CREATE_TIME, b"k", None, (("a", b"1"), ("b", None))]


def test_the_brokers_own_timestamps_are_told_from_those_of_producers() -> None:
    stamped = bytearray(batch(0))
    Batch(stamped).set_max_timestamp(9000, append_time=True)
    run = Decoder().begin_run(state_with(chunk(bytes(stamped))))
    assert run is not None
    assert [(record.timestamp, record.timestamp_type) for record in run.records] == [(9000, LOG_APPEND_TIME)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_records_too(magic: int, codec: Codec) -> None:
    old = build_message_set([Record(7, 1500, b"k", b"a"), Record(8, 1600, None, b"b")], magic, codec)
    run = Decoder().begin_run(state_with(chunk(old, batch(9)), position=8))
    assert run is not None
    kinds = [CREATE_TIME if magic else NO_TIMESTAMP_TYPE, CREATE_TIME]
    assert [(record.offset, record.timestamp_type) for record in run.records] == [(8, kinds[0])]
    assert run.next_offset == 9


def test_records_before_the_position_are_left_out() -> None:
    state = state_with(chunk(batch(0, 1, 2), batch(3, 4)), position=2)
    assert offsets(Decoder(), state) == [2, 3, 4]


def test_the_position_moves_past_what_has_no_records_for_the_user() -> None:
    marker = build_end_marker(
        commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0, base_offset=5
    )
    state = state_with(chunk(marker), position=5)
    assert Decoder().begin_run(state) is None
    assert (state.position, state.chunks) == (6, state.chunks)
    assert not state.chunks


def test_batches_are_decoded_as_they_are_needed() -> None:
    many = [
        chunk(*[batch(*range(start, start + 100)) for start in range(first, first + 5000, 100)]) for first in (0, 5000)
    ]
    state = state_with(*many)
    run = Decoder().begin_run(state)
    assert run is not None
    assert len(run.records) == ENOUGH
    assert len(state.chunks) == 2
    list(run.iterator)
    assert offsets(Decoder(), state) == list(range(ENOUGH, 10_000))


def test_a_run_has_one_epoch_so_that_commits_can_say_it() -> None:
    state = state_with(chunk(batch(0, 1, epoch=3), batch(2, epoch=4), batch(3, epoch=4)))
    run = Decoder().begin_run(state)
    assert run is not None
    assert (len(run.records), run.leader_epoch) == (2, 3)
    list(run.iterator)
    run = Decoder().begin_run(state)
    assert run is not None
    assert (len(run.records), run.leader_epoch) == (2, 4)


def flipped(data: bytes, position: int) -> bytes:
    broken = bytearray(data)
    broken[position] ^= 1
    return bytes(broken)


def test_a_corrupt_batch_is_named_after_what_is_before_it_and_can_be_passed() -> None:
    data = [batch(0, 1), flipped(batch(2, 3), 70), batch(4)]
    state = state_with(chunk(*data))
    decoder = Decoder()
    run = decoder.begin_run(state)
    assert run is not None
    assert [record.offset for record in run.iterator] == [0, 1]
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="t-0 at offset 2 is corrupt: the CRC is") as caught:
            decoder.begin_run(state)
        assert (caught.value.topic_partition, caught.value.offset) == (state.partition, 2)
        # It is fetched again, for the fault may lie on the way.
        assert (state.position, state.fetch_offset, len(state.chunks)) == (2, 2, 0)
        state.chunks.append(chunk(*data[1:]))
    state.seek(4)
    state.chunks.append(chunk(data[2]))
    assert offsets(decoder, state) == [4]


def test_checksums_need_not_be_checked() -> None:
    data = flipped(batch(0), len(batch(0)) - 2)
    assert offsets(Decoder(check_crcs=False), state_with(chunk(data))) == [0]


def test_what_a_batch_decompresses_to_is_bounded() -> None:
    bomb = build_batch([Record(0, 1, None, bytes(1_000_000))], Codec.GZIP)
    assert len(bomb) < 10_000
    with pytest.raises(CorruptRecordError, match="t-0 at offset 0"):
        Decoder(limit=100_000).begin_run(state_with(chunk(bomb)))


def test_deserializers_get_all_but_nulls() -> None:
    data = build_batch([Record(0, 1, b"k", None), Record(1, 1, None, b"v")])
    decoder = Decoder(key_deserializer=bytes.decode, value_deserializer=lambda value: value.decode().upper())
    run = decoder.begin_run(state_with(chunk(data)))
    assert run is not None
    assert [(record.key, record.value) for record in run.records] == [("k", None), (None, "V")]


def test_a_deserializer_that_fails_is_told_with_the_place_after_what_is_before_it() -> None:
    def picky(value: bytes) -> int:
        return int(value)

    good, bad = Record(0, 1, None, b"17"), Record(1, 1, None, b"x")
    data = build_batch([good, bad, Record(2, 1, None, b"18")])
    decoder = Decoder(value_deserializer=picky)
    state = state_with(chunk(data))
    run = decoder.begin_run(state)
    assert run is not None
    assert [record.value for record in run.iterator] == [17]
    state.chunks.append(chunk(data))
    with pytest.raises(RecordDeserializationError, match="offset 1 of t-0: ValueError") as caught:
        decoder.begin_run(state)
    assert isinstance(caught.value.__cause__, ValueError)
    assert (caught.value.topic_partition, caught.value.offset) == (state.partition, 1)
    assert state.position == 1
    state.seek(2)
    state.chunks.append(chunk(data))
    run = decoder.begin_run(state)
    assert run is not None
    assert [record.value for record in run.iterator] == [18]
