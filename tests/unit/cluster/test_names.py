"""What topics may be called."""

import pytest

from ottla.cluster.names import LONGEST_NAME, check_topic_name, is_internal
from ottla.wire.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("name", ["a", "A-1_b.c", "...", "_", "-", "x" * LONGEST_NAME, "__consumer_offsets"])
def test_legal_names_pass(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "must not be empty"),
        (".", "mean folders"),
        ("..", "mean folders"),
        ("x" * (LONGEST_NAME + 1), "has 250 characters"),
        ("a b", "use letters"),
        ("a/b", "use letters"),
        ("a\n", "use letters"),
        ("straße", "use letters"),
        ("a\0", "use letters"),
    ],
)
def test_an_illegal_name_is_refused_with_the_reason(name: str, complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint) as caught:
        check_topic_name(name)
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_message_about_a_very_long_name_is_short() -> None:
    with pytest.raises(KafkaError) as caught:
        check_topic_name("x" * 1_000_000)
    assert len(str(caught.value)) < 500


def test_the_brokers_own_topics_are_internal() -> None:
    assert [is_internal(name) for name in ("__consumer_offsets", "__transaction_state", "__mine")] == [
        True,
        True,
        False,
    ]
