from dataclasses import replace

import pytest
from bench.brokers.results import Report, Spread

from .figures import KAFKA, LATENCY, RATE, report, result


def test_ratios_are_taken_within_rounds_and_not_between_medians() -> None:
    # The machine was half as fast in the second round, for both.
    found = result(RATE, ours=[200.0, 100.0, 220.0], theirs=[100.0, 50.0, 100.0]).ratio(KAFKA)
    assert found == Spread(median=2.0, low=2.0, high=2.2)


def test_a_round_in_which_one_failed_counts_for_nobody() -> None:
    found = result(RATE, ours=[200.0, 900.0, None], theirs=[100.0, None, 100.0]).ratio(KAFKA)
    assert found == Spread(2.0, 2.0, 2.0)


def test_nobody_to_be_held_against_gives_no_ratio_and_no_verdict() -> None:
    found = result(RATE, ours=[200.0], theirs=[None])
    assert found.ratio(KAFKA) is None
    assert found.ratio("somebody else") is None
    assert found.meets_aim(KAFKA) is None


@pytest.mark.parametrize(("ours", "met"), [(120.0, True), (119.0, False)])
def test_a_rate_meets_its_aim_from_so_many_times_the_peer_on(ours: float, met: bool) -> None:
    assert result(RATE, ours=[ours], theirs=[100.0]).meets_aim(KAFKA) is met


@pytest.mark.parametrize(("ours", "met"), [(20.0, True), (21.0, False)])
def test_a_latency_meets_its_aim_up_to_a_share_of_the_peer(ours: float, met: bool) -> None:
    assert result(LATENCY, ours=[ours], theirs=[100.0]).meets_aim(KAFKA) is met


def test_the_limit_that_counts_is_the_one_that_does_most_of_what_a_broker_does() -> None:
    found = result(RATE, ours=[60.0], theirs=[50.0], limit=[100.0])
    assert found.ratio_to_limit() == Spread(0.6, 0.6, 0.6)
    assert found.meets_limit_aim() is True
    assert result(RATE, ours=[59.0], theirs=[50.0], limit=[100.0]).meets_limit_aim() is False


def test_a_run_of_some_lines_keeps_the_others_of_an_earlier_one_in_their_order() -> None:
    earlier = report(result(RATE, [1.0], [1.0], line="a"), result(RATE, [2.0], [1.0], line="b"))
    now = report(result(RATE, [3.0], [1.0], line="b"), result(RATE, [4.0], [1.0], line="c"))
    together = now.with_rest_of(earlier, ["c", "a", "b"])
    assert [(each.line, each.values["Ottla"]) for each in together.results] == [
        ("c", [4.0]),
        ("a", [1.0]),
        ("b", [3.0]),
    ]


def test_lines_that_went_through_different_networks_do_not_belong_into_one_table() -> None:
    earlier, now = [
        replace(report(result(RATE, [1.0], [1.0], line=line)), machine={"network": network})
        for line, network in (("a", "loopback, paced (bbr)"), ("b", "loopback, cubic"))
    ]
    with pytest.raises(ValueError, match=r"measured through loopback, paced \(bbr\), not loopback, cubic"):
        now.with_rest_of(earlier, ["a", "b"])


def test_a_report_survives_its_file() -> None:
    written = report(result(RATE, [1.0, None], [2.0, 3.0], limit=[4.0, 5.0]), result(LATENCY, [1.0], [2.0]))
    read = Report.from_json(written.to_json())
    assert read.to_json() == written.to_json()
    assert list(read.results) == list(written.results)
