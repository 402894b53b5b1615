"""Exceptions survive the way to another process."""

import copy
import pickle

import pytest

from ottla.client.types import TopicPartition
from ottla.errors import RecordDeserializationError, RequestTimedOutError, SeveralFailedError, error_of
from ottla.wire.errors import ErrorCode, KafkaError

ERRORS = [
    KafkaError(ErrorCode.INVALID_CONFIG, "segment.bytes = 'x' is no number"),
    RequestTimedOutError("no answer"),
    error_of(ErrorCode.TOPIC_ALREADY_EXISTS, "topic 'orders'"),
    SeveralFailedError({"orders": error_of(ErrorCode.TOPIC_ALREADY_EXISTS, "topic 'orders'")}),
    RecordDeserializationError(TopicPartition("orders", 0), 7, "ValueError: no number"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_copy_says_the_same(error: KafkaError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert (str(again), again.code, again.message) == (str(error), error.code, error.message)
        assert vars(again).keys() == vars(error).keys()
