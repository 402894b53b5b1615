from struct import calcsize, unpack_from

import pytest
from crc32c import crc32c

from ottla.log.producers import Producers
from ottla.log.snapshots import decode, encode
from ottla.record.batch import Batch
from ottla.wire.errors import ErrorCode, KafkaError

from .samples import NOW, batch_of

LARGEST = 2**31 - 1


def sent(sequence: int, *, epoch: int = 0, count: int = 1, offset: int = 0, producer_id: int = 9) -> Batch:
    batch = batch_of(*["x"] * count, producer=(producer_id, epoch, sequence))
    batch.assign(offset, 0)
    return batch


def after(*written: Batch) -> Producers:
    producers = Producers()
    for batch in written:
        producers.note(batch, NOW)
    return producers


def refusal(producers: Producers, batch: Batch) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        producers.check(batch)
    return caught.value.code


def test_a_producer_without_state_may_begin_anywhere() -> None:
    assert Producers().check(sent(17)) is None


def test_the_next_sequence_is_taken_and_a_gap_is_refused() -> None:
    producers = after(sent(0, count=3))
    assert producers.check(sent(3)) is None
    assert refusal(producers, sent(4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(producers, sent(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_each_of_the_last_five_batches_is_known_when_it_comes_again() -> None:
    producers = after(*(sent(number * 2, count=2, offset=100 + number * 2) for number in range(6)))
    for number in range(1, 6):
        duplicate = producers.check(sent(number * 2, count=2))
        assert duplicate is not None
        assert (duplicate.first_offset, duplicate.last_offset) == (100 + number * 2, 101 + number * 2)
    assert refusal(producers, sent(0, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_same_start_with_another_length_is_no_duplicate() -> None:
    assert refusal(after(sent(0, count=3)), sent(0, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap() -> None:
    producers = after(sent(LARGEST - 1, count=2))
    assert producers.check(sent(0)) is None
    wrapped = sent(LARGEST, count=3, offset=50)
    producers = after(sent(LARGEST - 1, count=1), wrapped)
    assert producers.states[9].last_sequence == 1
    assert producers.check(sent(2)) is None
    duplicate = producers.check(sent(LARGEST, count=3))
    assert duplicate is not None
    assert duplicate.first_offset == 50


def test_an_old_epoch_is_fenced_and_a_new_one_starts_at_zero() -> None:
    producers = after(sent(0, epoch=3))
    assert refusal(producers, sent(1, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(producers, sent(1, epoch=4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.check(sent(0, epoch=4)) is None
    producers.note(sent(0, epoch=4), NOW)
    assert len(producers.states[9].batches) == 1


def test_producers_that_were_not_heard_of_are_forgotten() -> None:
    producers = Producers()
    producers.note(sent(0, producer_id=1), NOW)
    producers.note(sent(0, producer_id=2), NOW + 10)
    assert producers.expire(NOW + 10) == 1
    assert list(producers.states) == [2]


def test_a_snapshot_is_laid_out_as_kafka_has_it() -> None:
    data = encode(list(after(sent(5, epoch=2, count=3, offset=40)).states.values()))
    assert unpack_from(">hI", data) == (1, crc32c(data[6:]))
    assert unpack_from(">i", data, 6) == (1,)
    assert unpack_from(">qhiqiqiq", data, 10) == (9, 2, 7, 42, 2, NOW, -1, -1)
    assert len(data) == 10 + calcsize(">qhiqiqiq")


def test_a_snapshot_keeps_all_remembered_batches() -> None:
    written = [sent(number, offset=number, producer_id=1) for number in range(7)]
    written += [sent(0, offset=7, producer_id=2)]
    producers = after(*written)
    restored = Producers(decode(encode(list(producers.states.values()))))
    assert restored.states.keys() == producers.states.keys()
    for producer_id, state in producers.states.items():
        assert restored.states[producer_id].batches == state.batches
    assert restored.check(sent(3, producer_id=1)) is not None
    assert restored.check(sent(7, producer_id=1)) is None


def test_a_damaged_snapshot_is_refused_at_every_byte() -> None:
    data = encode(list(after(sent(0), sent(1)).states.values()))
    for at in range(len(data)):
        with pytest.raises(ValueError):
            decode(data[:at])
        spoilt = bytearray(data)
        spoilt[at] ^= 1
        with pytest.raises(ValueError):
            decode(bytes(spoilt))
