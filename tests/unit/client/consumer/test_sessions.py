"""What a broker is told in a fetch session, and when everything is told anew."""

from ottla.client.consumer.sessions import FetchSession, Wanted
from ottla.client.types import TopicPartition
from ottla.wire.api.fetch import FetchRequest

A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def wanted(offset: int, topic_id: int = 1) -> Wanted:
    return Wanted(offset, 1000, 0, topic_id.to_bytes(16, "big"))


def told(request: FetchRequest) -> dict[tuple[str, int], int]:
    return {(topic.topic, one.partition): one.fetch_offset for topic in request.topics for one in topic.partitions}


def forgotten(request: FetchRequest) -> list[tuple[str, int]]:
    return [(topic.topic, one) for topic in request.forgotten_topics_data for one in topic.partitions]


def test_after_the_first_request_only_changes_are_told() -> None:
    session = FetchSession()
    first = session.request({A: wanted(0), B: wanted(5)}, 12)
    assert (first.session_id, first.session_epoch, told(first)) == (0, 0, {("a", 0): 0, ("a", 1): 5})
    session.accepted(77)
    second = session.request({A: wanted(3), B: wanted(5), C: wanted(1)}, 12)
    assert (second.session_id, second.session_epoch) == (77, 1)
    assert (told(second), forgotten(second)) == ({("a", 0): 3, ("b", 0): 1}, [])
    session.accepted(77)
    third = session.request({B: wanted(5)}, 12)
    assert (third.session_epoch, told(third), forgotten(third)) == (2, {}, [("a", 0), ("b", 0)])


def test_a_broker_that_keeps_no_session_is_told_everything_each_time() -> None:
    session = FetchSession()
    for _ in range(2):
        request = session.request({A: wanted(0)}, 12)
        assert (request.session_id, request.session_epoch, told(request)) == (0, 0, {("a", 0): 0})
        session.accepted(0)


def test_brokers_before_sessions_are_told_everything() -> None:
    session = FetchSession()
    for _ in range(2):
        request = session.request({A: wanted(0)}, 6)
        assert (request.session_epoch, told(request)) == (-1, {("a", 0): 0})
        session.accepted(0)


def test_a_lost_session_begins_anew_without_an_id_and_a_doubtful_one_with_it() -> None:
    session = FetchSession()
    session.request({A: wanted(0)}, 12)
    session.accepted(77)
    session.begin_anew()
    request = session.request({A: wanted(0)}, 12)
    assert (request.session_id, request.session_epoch, told(request)) == (77, 0, {("a", 0): 0})
    session.accepted(78)
    session.forget()
    request = session.request({A: wanted(0)}, 12)
    assert (request.session_id, request.session_epoch, told(request)) == (0, 0, {("a", 0): 0})


def test_a_topic_that_was_made_again_is_forgotten_under_its_old_id() -> None:
    session = FetchSession()
    session.request({A: wanted(5)}, 13)
    session.accepted(77)
    request = session.request({A: wanted(5, topic_id=2)}, 13)
    assert [topic.topic_id[-1] for topic in request.topics] == [2]
    assert [topic.topic_id[-1] for topic in request.forgotten_topics_data] == [1]


def test_going_from_names_to_ids_begins_anew() -> None:
    session = FetchSession()
    session.request({A: wanted(0)}, 12)
    session.accepted(77)
    request = session.request({A: wanted(0)}, 13)
    assert (request.session_id, request.session_epoch, len(request.topics)) == (77, 0, 1)


def test_epochs_wrap_to_one() -> None:
    session = FetchSession()
    session.request({A: wanted(0)}, 12)
    session._epoch = 2**31 - 1
    session.accepted(77)
    assert session.request({A: wanted(0)}, 12).session_epoch == 1
