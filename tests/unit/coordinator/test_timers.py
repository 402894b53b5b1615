"""Timers as data."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.timers import Timers


def test_what_is_due_comes_in_order_of_time() -> None:
    timers = Timers()
    for key, at_ms in (("c", 30), ("a", 10), ("b", 20)):
        timers.set(key, at_ms)
    assert list(timers.due(25)) == ["a", "b"]
    assert timers.next_ms == 30


def test_a_cancelled_timer_is_never_due() -> None:
    timers = Timers()
    timers.set("a", 10)
    timers.cancel("a")
    assert (timers.next_ms, list(timers.due(100)), len(timers)) == (None, [], 0)


def test_a_timer_that_is_moved_is_due_once_and_at_its_new_time() -> None:
    timers = Timers()
    timers.set("a", 50)
    timers.set("a", 10)
    assert list(timers.due(20)) == ["a"]
    assert list(timers.due(100)) == []


def test_a_timer_that_is_set_while_others_are_taken_comes_in_its_turn() -> None:
    timers = Timers()
    timers.set("a", 10)
    taken = []
    for key in timers.due(20):
        taken.append(key)
        if key == "a":
            timers.set("b", 15)
    assert taken == ["a", "b"]


def test_a_session_that_is_renewed_a_million_times_leaves_nothing_behind() -> None:
    timers = Timers()
    for at_ms in range(100_000):
        timers.set("session", at_ms)
    assert len(timers._heap) < 200


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | st.integers(0, 100)), max_size=200))
def test_timers_agree_with_a_dictionary(changes: list[tuple[str, int | None]]) -> None:
    timers, model = Timers(), dict[str, int]()
    for key, at_ms in changes:
        if at_ms is None:
            timers.cancel(key)
            model.pop(key, None)
        else:
            timers.set(key, at_ms)
            model[key] = at_ms
        assert timers.next_ms == min(model.values(), default=None)
    assert sorted(timers.due(100)) == sorted(model)  # type: ignore[type-var]
