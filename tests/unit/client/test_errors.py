"""Exceptions survive the way to another process."""

import copy
import pickle

import pytest

from ottla import errors
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


def test_tracebacks_name_exceptions_by_where_users_import_them_from() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__]
    found = {kind.__module__ for kind in kinds if isinstance(kind, type) and issubclass(kind, KafkaError)}
    assert found == {"ottla.errors", KafkaError.__module__}
    assert errors.ConnectionLostError.__module__ == "ottla.errors"


@pytest.mark.parametrize(
    "error",
    [errors.ClientClosedError("the producer does not run"), errors.IllegalStateError("not assigned"), ERRORS[-1]],
    ids=lambda error: type(error).__name__,
)
def test_what_no_broker_said_is_told_without_a_code_of_theirs(error: KafkaError) -> None:
    assert error.errno == -1
    assert str(error) == error.message


def test_an_error_can_have_advice_that_fits_better_than_that_of_its_class() -> None:
    error = errors.UnknownTopicOrPartitionError("there is no partition 7", "choose another")
    assert str(error) == "UNKNOWN_TOPIC_OR_PARTITION: there is no partition 7; choose another"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
