from bench.brokers.regress import verdicts
from bench.brokers.results import Rounds

from .figures import LATENCY, RATE, report, result

BEFORE = [200.0, 190.0, 210.0]
KAFKAS: Rounds = [100.0, 100.0, 100.0]
LIMITS: Rounds = [400.0, 400.0, 400.0]


def is_worse(ours: Rounds, theirs: Rounds = KAFKAS, limit: Rounds = LIMITS) -> bool:
    (found,) = verdicts(report(result(RATE, BEFORE, KAFKAS, LIMITS)), report(result(RATE, ours, theirs, limit)))
    return found.is_worse


def test_a_rate_that_fell_against_kafka_and_against_the_limit_got_worse() -> None:
    assert is_worse([150.0, 150.0, 150.0])
    assert not is_worse(BEFORE)
    assert not is_worse([300.0, 300.0, 300.0])


def test_a_slow_machine_makes_nothing_worse() -> None:
    assert not is_worse([100.0, 95.0, 105.0], [50.0, 50.0, 50.0], [200.0, 200.0, 200.0])


def test_a_peer_that_got_faster_does_not_make_ottla_worse() -> None:
    assert not is_worse(BEFORE, theirs=[200.0, 200.0, 200.0])


def test_a_little_less_is_chance() -> None:
    assert not is_worse([180.0, 175.0, 178.0])


def test_without_a_limit_kafka_decides() -> None:
    before, now = report(result(LATENCY, [20.0], [100.0])), report(result(LATENCY, [30.0], [100.0]))
    assert [verdict.is_worse for verdict in verdicts(before, now)] == [True]
    assert [verdict.is_worse for verdict in verdicts(now, before)] == [False]


def test_figures_that_were_not_recorded_are_passed_over() -> None:
    assert verdicts(report(result(RATE, [1.0], [1.0], line="a")), report(result(RATE, [1.0], [1.0], line="b"))) == []
