import pytest

from ottla.broker.sessions import Sessions
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, PartitionData
from ottla.wire.errors import ErrorCode, KafkaError


class Time:
    now_ms = 1_000

    def __call__(self) -> int:
        return self.now_ms


def fetch(session_id: int, epoch: int, *partitions: int, forgotten: tuple[int, ...] = ()) -> FetchRequest:
    asked = [FetchPartition(partition=index, fetch_offset=5) for index in partitions]
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=asked)] if asked else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forgotten))] if forgotten else [],
    )


def told(index: int, high_watermark: int = 5, error: ErrorCode = ErrorCode.NONE) -> PartitionData:
    return PartitionData(partition_index=index, high_watermark=high_watermark, error_code=error)


def test_a_fetch_without_a_session_gets_none() -> None:
    sessions = Sessions(2, 100, Time())
    assert sessions.open(fetch(0, -1, 0), False, "User:alice").session_id == 0
    assert len(sessions) == 0


def test_a_session_goes_on_with_what_it_was_told() -> None:
    sessions = Sessions(2, 100, Time())
    first = sessions.open(fetch(0, 0, 0, 1), False, "User:alice")
    assert first.session_id > 0
    again = sessions.open(fetch(first.session_id, 1), False, "User:alice")
    assert [wanted.partition.partition for wanted in again.wanted()] == [0, 1]
    changed = sessions.open(fetch(first.session_id, 2, 7, forgotten=(0,)), False, "User:alice")
    assert [wanted.partition.partition for wanted in changed.wanted()] == [1, 7]


def test_an_incremental_reply_leaves_out_what_did_not_change() -> None:
    sessions = Sessions(2, 100, Time())
    session = sessions.open(fetch(0, 0, 0), False, "User:alice")
    assert session.keep("t", told(0), has_records=False), "the first reply is full"
    session = sessions.open(fetch(session.session_id, 1), False, "User:alice")
    assert not session.keep("t", told(0), has_records=False)
    assert session.keep("t", told(0), has_records=True)
    assert session.keep("t", told(0, high_watermark=6), has_records=False)
    assert not session.keep("t", told(0, high_watermark=6), has_records=False)


def test_an_error_is_repeated_and_its_end_is_news() -> None:
    sessions = Sessions(2, 100, Time())
    session = sessions.open(fetch(0, 0, 0), False, "User:alice")
    session.keep("t", told(0), has_records=False)
    session = sessions.open(fetch(session.session_id, 1), False, "User:alice")
    failed = told(0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert session.keep("t", failed, has_records=False)
    assert session.keep("t", failed, has_records=False)
    assert session.keep("t", told(0), has_records=False)


def test_partitions_that_had_records_are_served_last_next_time() -> None:
    sessions = Sessions(2, 100, Time())
    session = sessions.open(fetch(0, 0, 0, 1, 2), False, "User:alice")
    session.keep("t", told(0), has_records=True)
    session = sessions.open(fetch(session.session_id, 1), False, "User:alice")
    assert [wanted.partition.partition for wanted in session.wanted()] == [1, 2, 0]


@pytest.mark.parametrize(
    ("session_offset", "epoch", "by_id", "code"),
    [
        (1, 1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, 2, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (0, 1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_session_that_cannot_go_on_says_why(session_offset: int, epoch: int, by_id: bool, code: ErrorCode) -> None:
    sessions = Sessions(2, 100, Time())
    session = sessions.open(fetch(0, 0, 0), False, "User:alice")
    with pytest.raises(KafkaError) as caught:
        sessions.open(fetch(session.session_id + session_offset, epoch), by_id, "User:alice")
    assert caught.value.code is code


def test_the_final_epoch_closes_a_session() -> None:
    sessions = Sessions(2, 100, Time())
    session = sessions.open(fetch(0, 0, 0), False, "User:alice")
    assert sessions.open(fetch(session.session_id, -1, 0), False, "User:alice").session_id == 0
    assert len(sessions) == 0


def test_without_a_free_place_there_is_no_session_until_an_old_one_has_been_idle() -> None:
    time = Time()
    sessions = Sessions(1, 100, time)
    first = sessions.open(fetch(0, 0, 0), False, "User:alice")
    assert sessions.open(fetch(0, 0, 0), False, "User:alice").session_id == 0
    time.now_ms += 100
    second = sessions.open(fetch(0, 0, 0), False, "User:alice")
    assert second.session_id not in (0, first.session_id)
    assert len(sessions) == 1


def test_epochs_wrap_to_one() -> None:
    sessions = Sessions(1, 100, Time())
    session = sessions.open(fetch(0, 0, 0), False, "User:alice")
    session.epoch = 2**31 - 1
    assert sessions.open(fetch(session.session_id, 2**31 - 1), False, "User:alice").epoch == 1


def test_another_principal_neither_goes_on_with_a_session_nor_ends_it() -> None:
    sessions = Sessions(10, 0, lambda: 0)
    session = sessions.open(fetch(0, 0, 0), False, "User:alice")
    with pytest.raises(KafkaError, match="FETCH_SESSION_ID_NOT_FOUND"):
        sessions.open(fetch(session.session_id, 1), False, "User:bob")
    sessions.open(fetch(session.session_id, -1, 0), False, "User:bob")
    assert sessions.open(fetch(session.session_id, 1), False, "User:alice") is session
