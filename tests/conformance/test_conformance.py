"""The comparison with other people's codecs, with few samples of everything."""

from typing import Any

import pytest

from ottla.wire.api.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.compile import encode
from tests.java import skip_without_maven

from .check import Result, check_all, check_codec, check_golden, compare
from .codecs import Codec, api_codecs, other_codecs
from .oracle import Oracle
from .oracles import JAVA_ORACLES, PYTHON_ORACLES, Opener, opened
from .samples import Limits, make_sample
from .verdict import Verdict

SAMPLES = 2

HEARTBEAT = Codec("request", 12, HeartbeatRequest, 4)


def run(openers: tuple[Opener, ...]) -> list[Result]:
    with opened(openers, pytest.fail) as oracles:
        return check_all(oracles, [*api_codecs(), *other_codecs()], SAMPLES)


def complaints(results: list[Result]) -> list[str]:
    return [f"{result.codec} differs from {result.oracle}: {result.failure}" for result in results if result.failure]


def test_there_are_600_requests_and_responses_to_check() -> None:
    assert len(set(api_codecs())) == 600


def test_every_codec_agrees_with_the_bytes_written_by_hand() -> None:
    assert complaints(check_golden([*api_codecs(), *other_codecs()])) == []


@pytest.mark.slow
def test_every_codec_agrees_with_the_codecs_written_in_python_and_none_is_left_over() -> None:
    results = run(PYTHON_ORACLES)
    assert complaints(results) == []
    assert Verdict(api_codecs(), results + check_golden(api_codecs())).closing_line() == "600 of 600"


@pytest.mark.slow
@pytest.mark.maven
@skip_without_maven("Apache Kafka's own classes checked nothing")
def test_every_codec_agrees_with_apache_kafka_itself() -> None:
    results = run(JAVA_ORACLES)
    assert complaints(results) == []
    assert Verdict(api_codecs(), results).closing_line() == "600 of 600"
    assert Verdict(other_codecs(), results).unchecked == []


class WrongOracle:
    """Somebody whose heartbeats carry one more byte, or who will not talk."""

    name = "wrong"
    limits = Limits()

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def covers(self, codec: Codec) -> bool:
        return codec.message is HeartbeatRequest

    def encode(self, codec: Codec, message: Any) -> bytes:
        if self.error is not None:
            raise self.error
        return encode(message, codec.version) + b"\0"

    def close(self) -> None:
        pass


def test_bytes_that_differ_are_reported_with_the_place() -> None:
    message = HeartbeatRequest(group_id="a", generation_id=1)
    right = encode(message, 4)
    wrong = right[:5] + b"\7" + right[6:]
    assert compare(HEARTBEAT, message, right) is None
    assert "bytes differ at 5" in str(compare(HEARTBEAT, message, wrong))


def test_a_value_that_does_not_survive_the_way_back_is_reported() -> None:
    # Version 0 has no throttle time, so this message cannot come back as it went.
    message = HeartbeatResponse(throttle_time_ms=5, error_code=1)
    failure = compare(Codec("response", 12, HeartbeatResponse, 0), message, b"\0\1")
    assert f"their bytes decode to {HeartbeatResponse(error_code=1)!r}, not to {message!r}" in str(failure)


@pytest.mark.parametrize("oracle", [WrongOracle(), WrongOracle(ValueError("no"))])
def test_a_codec_with_which_anybody_disagrees_does_not_count(oracle: Oracle) -> None:
    agreed = Result(HEARTBEAT, "right", 3, None)
    results = [agreed, check_codec(oracle, HEARTBEAT, SAMPLES)]
    verdict = Verdict([HEARTBEAT], results)
    assert verdict.closing_line() == "0 of 1"
    assert not verdict.complete
    assert [result.oracle for result in verdict.failures] == ["wrong"]


def test_a_codec_that_nothing_checked_does_not_count_and_is_named() -> None:
    verdict = Verdict([HEARTBEAT], check_all([WrongOracle()], [Codec("response", 12, HeartbeatResponse, 0)], SAMPLES))
    assert verdict.closing_line() == "0 of 1"
    assert verdict.as_json()["unchecked"] == ["HeartbeatRequest v4"]


def test_the_same_seed_gives_the_same_samples_and_another_seed_others() -> None:
    codec = next(codec for codec in api_codecs() if codec.name == "FetchResponse" and codec.version == 16)
    first = make_sample(codec, 2, Limits())
    assert make_sample(codec, 2, Limits()) == first
    assert make_sample(codec, 2, Limits(), seed=1) != first
