"""Numbers of batches: what an answer means, and when numbering begins anew."""

from dataclasses import dataclass

import pytest

from ottla.client.producer.idempotence import LARGEST_EPOCH, NOBODY, Identity, Sequences, Verdict, judge
from ottla.wire.errors import ErrorCode

MYSELF = Identity(7, 0)


@dataclass
class Numbers:
    identity: Identity = MYSELF
    sequence: int = 0
    place: int = 0
    doubtful: bool = False
    refused: bool = False
    count: int = 2


def begun() -> Sequences:
    sequences = Sequences()
    sequences.begin(MYSELF)
    return sequences


@pytest.mark.parametrize(
    ("code", "batch", "verdict"),
    [
        (ErrorCode.NONE, Numbers(), Verdict.WRITTEN),
        (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, Numbers(), Verdict.WRITTEN),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, Numbers(), Verdict.REFUSED),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, Numbers(doubtful=True), Verdict.REFUSED),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, Numbers(NOBODY), Verdict.FAILED),
        (ErrorCode.UNKNOWN_PRODUCER_ID, Numbers(), Verdict.REFUSED),
        (ErrorCode.UNKNOWN_PRODUCER_ID, Numbers(doubtful=True), Verdict.FAILED),
        (ErrorCode.INVALID_PRODUCER_EPOCH, Numbers(), Verdict.REFUSED),
        (ErrorCode.MESSAGE_TOO_LARGE, Numbers(), Verdict.SPLIT),
        (ErrorCode.MESSAGE_TOO_LARGE, Numbers(count=1), Verdict.FAILED),
        (ErrorCode.MESSAGE_TOO_LARGE, Numbers(doubtful=True), Verdict.FAILED),
        (ErrorCode.MESSAGE_TOO_LARGE, Numbers(NOBODY, doubtful=True), Verdict.SPLIT),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Numbers(), Verdict.AGAIN),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, Numbers(), Verdict.FAILED),
    ],
    ids=lambda value: value.name if isinstance(value, (ErrorCode, Verdict)) else "",
)
def test_every_answer_has_its_meaning(code: ErrorCode, batch: Numbers, verdict: Verdict) -> None:
    assert judge(code, batch) is verdict


def test_an_error_after_which_the_batch_may_have_been_written_leaves_a_doubt() -> None:
    refused, replicas_missing = Numbers(), Numbers()
    judge(ErrorCode.NOT_ENOUGH_REPLICAS, refused)
    judge(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, replicas_missing)
    assert (refused.doubtful, replicas_missing.doubtful) == (False, True)


def test_numbers_follow_each_other_and_wrap() -> None:
    sequences = begun()
    assert [sequences.take(3), sequences.take(1), sequences.take(5)] == [0, 3, 4]
    sequences.following = 2**31 - 2
    assert sequences.take(4) == 2**31 - 2
    assert sequences.following == 2


def test_a_batch_whose_outcome_is_unknown_is_followed_by_four_at_most() -> None:
    sequences = begun()
    oldest, new = Numbers(), Numbers(NOBODY)
    sequences.take(2)
    assert not sequences.may_leave(new, oldest), "no broker knows the producer yet"
    sequences.confirm(oldest)
    for _ in range(4):
        assert sequences.may_leave(new, oldest)
        sequences.take(2)
    # However many of them were written meanwhile: the broker would not recognise the oldest any more.
    assert not sequences.may_leave(new, oldest)
    assert sequences.may_leave(new, Numbers(place=1))
    assert sequences.may_leave(new, None)


def test_halves_count_as_two_of_the_batches_that_a_broker_remembers() -> None:
    sequences = begun()
    sequences.confirm(Numbers())
    for _ in range(5):
        sequences.take(2)
    whole, behind, halves = Numbers(place=0), Numbers(place=4), [Numbers(count=1), Numbers(count=1)]
    sequences.split(whole, halves, [behind])
    assert [half.place for half in halves] == [0, 1]
    assert not sequences.may_leave(behind, halves[0])
    assert sequences.may_leave(behind, halves[1])


def test_a_batch_that_is_given_up_breaks_the_numbers_unless_it_never_had_any() -> None:
    sequences = begun()
    sequences.give_up(Numbers(NOBODY))
    assert not sequences.broken
    sequences.give_up(Numbers(Identity(7, 3)))
    assert not sequences.broken, "that was another epoch's"
    sequences.give_up(Numbers())
    assert sequences.broken


def test_only_if_the_first_that_came_back_was_refused_all_get_new_numbers() -> None:
    sequences = begun()
    batches = [Numbers(doubtful=True), Numbers(sequence=2, refused=True)]
    sequences.regroup(batches)
    assert [batch.identity for batch in batches] == [MYSELF, MYSELF]
    assert not batches[1].refused, "the next answer counts, not the last"
    batches[0].refused = True
    sequences.regroup(batches)
    assert [(batch.identity, batch.sequence, batch.doubtful) for batch in batches] == [(NOBODY, -1, False)] * 2
    assert sequences.broken


def test_numbers_begin_anew_in_the_next_epoch_or_under_another_id() -> None:
    sequences = Sequences()
    assert sequences.broken
    assert sequences.successor(MYSELF) == MYSELF
    sequences.begin(MYSELF)
    assert sequences.successor(MYSELF) == Identity(7, 1)
    sequences.begin(Identity(7, 1))
    assert sequences.successor(Identity(8, 0)) == Identity(8, 0)
    sequences.begin(Identity(7, LARGEST_EPOCH - 1))
    assert sequences.successor(MYSELF) is None, "the epochs are used up"
    sequences.begin(MYSELF)
    sequences.refuse(Numbers(), ErrorCode.INVALID_PRODUCER_EPOCH)
    assert sequences.successor(MYSELF) is None, "no epoch of it is taken"
    assert Sequences().successor(NOBODY) is None
