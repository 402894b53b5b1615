"""The judge of a storm sees what it is there to see."""

import random
from dataclasses import replace

from .group_storm_check import Event, History, judge, longest_silence_ns
from .group_storm_run import PAUSE_S, random_moves

FIRST = [
    Event("a", 10, "assigned", partitions=(0,)),
    Event("a", 20, "got", spans=((0, 0, 4),)),
    Event("a", 30, "committing", offsets={0: 5}),
    Event("a", 40, "committed", offsets={0: 5}),
    Event("a", 50, "got", spans=((0, 5, 6),)),
]
SECOND = [Event("b", 60, "assigned", partitions=(0,)), Event("b", 70, "got", spans=((0, 5, 9),))]
WELL = History({0: 10}, [*FIRST, *SECOND])


def test_what_was_not_committed_may_come_again() -> None:
    assert judge(WELL) == []


def test_a_record_that_nobody_got_is_seen() -> None:
    assert judge(replace(WELL, produced={0: 12})) == [
        "partition 0: record 10 was never delivered",
        "partition 0: record 11 was never delivered",
    ]


def test_a_client_known_to_drop_a_record_when_it_leaves_may_drop_the_next_one_only() -> None:
    left = replace(WELL, events=[*WELL.events, Event("b", 80, "leaving")], produced={0: 11})
    assert judge(left) == ["partition 0: record 10 was never delivered"]
    assert judge(replace(left, swallows_when_leaving=True)) == []
    assert judge(replace(left, swallows_when_leaving=True, produced={0: 12})) == [
        "partition 0: record 11 was never delivered"
    ]
    assert judge(replace(left, swallows_when_leaving=True, events=WELL.events)) == judge(left)


def test_a_record_that_was_committed_before_the_member_started_is_seen() -> None:
    (found,) = judge(replace(WELL, events=[*FIRST, SECOND[0], Event("b", 70, "got", spans=((0, 4, 9),))]))
    assert found.endswith("delivered again, although 5 was committed before it started")


def test_a_commit_that_somebody_outside_was_told_of_counts_too() -> None:
    (found,) = judge(replace(WELL, observed=[(55, {0: 7})]))
    assert found.endswith("delivered again, although 7 was committed before it started")


def test_a_commit_after_the_member_started_does_not_count() -> None:
    assert judge(replace(WELL, observed=[(65, {0: 7})])) == []
    assert judge(replace(WELL, observed=[(55, {0: 7})], slack_ns=10)) == []


def test_an_assignment_told_of_first_thing_after_a_pause_may_be_from_before_it() -> None:
    pause = [Event("b", 45, "paused"), Event("b", 58, "resumed")]
    assert judge(replace(WELL, events=[*FIRST, *pause, *SECOND], observed=[(55, {0: 7})])) == []
    spoke = [*pause, Event("b", 59, "revoked", partitions=(0,))]
    (found,) = judge(replace(WELL, events=[*FIRST, *spoke, *SECOND], observed=[(55, {0: 7})]))
    assert found.endswith("delivered again, although 7 was committed before it started")


def test_a_member_that_starts_farther_on_than_anybody_committed_is_seen() -> None:
    events = [*FIRST, SECOND[0], Event("b", 70, "got", spans=((0, 6, 9),))]
    (found,) = judge(replace(WELL, events=events))
    assert found.endswith("started behind 5, the farthest that anybody meant to commit")
    assert judge(replace(WELL, events=events, commits_are_told=False)) == []


def test_a_jump_and_a_step_back_within_one_assignment_are_seen() -> None:
    more = [Event("b", 80, "got", spans=((0, 12, 13),)), Event("b", 90, "got", spans=((0, 10, 11),))]
    found = judge(History({0: 14}, [*FIRST, *SECOND, *more]))
    assert [line.rpartition(": ")[2] for line in found] == ["expected 10 next", "expected 14 next"]


def test_a_record_for_one_that_has_lost_the_partition_is_seen() -> None:
    events = [*FIRST, *SECOND[:1], Event("b", 65, "revoked", partitions=(0,)), *SECOND[1:]]
    (found,) = judge(replace(WELL, events=events))
    assert found.endswith("delivered while it did not have the partition")


def test_a_wrong_value_is_seen() -> None:
    (found,) = judge(replace(WELL, events=[*WELL.events, Event("b", 80, "wrong", detail="7")]))
    assert found == "b: wrong: 7"


def test_silence_is_measured_for_each_partition() -> None:
    events = [Event("a", at_ns, "got", spans=((at_ns % 2, 0, 0),)) for at_ns in (1, 2, 3, 8, 9)]
    assert longest_silence_ns(History({}, events)) == 6


def test_random_moves_are_possible_and_leave_nobody_paused() -> None:
    moves = random_moves(random.Random(7), 60.0, restarts=True)
    state: dict[str, str] = {}
    paused_at_s: dict[str, float] = {}
    expected = {"join": None, "leave": "join", "kill": "join", "pause": "join", "resume": "pause"}
    for move in moves:
        if move.what == "restart":
            continue
        assert state.get(move.member) == expected[move.what]
        state[move.member] = "join" if move.what == "resume" else move.what
        if move.what == "pause":
            paused_at_s[move.member] = move.at_s
        elif move.what == "resume":
            assert move.at_s - paused_at_s[move.member] >= PAUSE_S
    assert {move.what for move in moves} == {*expected, "restart"}
    assert "pause" not in state.values()
    assert [move.at_s for move in moves] == sorted(move.at_s for move in moves)
