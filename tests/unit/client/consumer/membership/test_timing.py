"""When heartbeats are due, sessions end and users are missed, without a clock."""

from ottla.client.consumer.membership.heartbeat import Pulse
from ottla.client.consumer.membership.presence import Presence


def test_a_heartbeat_is_due_an_interval_after_the_last_answer() -> None:
    pulse = Pulse(interval_s=3, session_s=10, now=0)
    assert pulse.wait_s(0) == 3
    pulse.answered(4)
    assert pulse.wait_s(5) == 2
    assert pulse.wait_s(8) == 0


def test_a_failed_heartbeat_is_tried_again_soon_and_does_not_prolong_the_session() -> None:
    pulse = Pulse(interval_s=3, session_s=10, now=0)
    pulse.failed(3, again_s=0.1)
    assert pulse.wait_s(3) == 0.1
    assert pulse.left_s(3) == 7
    assert pulse.has_ended(10)


def test_news_is_told_at_once_unless_the_coordinator_does_not_answer() -> None:
    pulse = Pulse(interval_s=3, session_s=10, now=0)
    pulse.hurry(1)
    assert pulse.wait_s(1) == 0
    pulse.failed(1, again_s=0.5)
    pulse.hurry(1)
    assert pulse.wait_s(1) == 0.5


def test_a_user_is_missed_after_the_longest_time_without_progress() -> None:
    presence = Presence(longest_s=10, now=0)
    assert not presence.is_away(9, waits=False, progress=None)
    assert presence.is_away(10, waits=False, progress=None)
    assert not presence.is_away(11, waits=False, progress=1)
    assert presence.is_away(21, waits=False, progress=1)


def test_a_user_who_waits_for_records_is_not_missed() -> None:
    presence = Presence(longest_s=10, now=0)
    assert not presence.is_away(50, waits=True, progress=None)
    assert not presence.is_away(59, waits=False, progress=None)
    assert presence.is_away(60, waits=False, progress=None)
