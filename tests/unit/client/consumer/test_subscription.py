"""What is handed out, in hand and finished, and what that means for commits."""

import asyncio
import re

import pytest

from ottla.client.consumer.runs import Run
from ottla.client.consumer.subscription import Mode, PartitionState, Start, Subscription
from ottla.client.errors import IllegalStateError
from ottla.client.types import ConsumerRecord, OffsetAndMetadata, TopicPartition

PLACE = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


def run_of(*offsets: int, start: int | None = None, end: int | None = None, epoch: int = 4) -> Run:
    records = [ConsumerRecord("t", 0, offset, 0, 0, None, b"", ()) for offset in offsets]
    start = offsets[0] if start is None else start
    return Run(records, start, offsets[-1] + 1 if end is None else end, epoch)


def reading(position: int = 10) -> tuple[Subscription, PartitionState]:
    subscription = Subscription()
    subscription.assign_by_user([PLACE])
    state = subscription.state(PLACE)
    state.seek(position)
    return subscription, state


def committed(subscription: Subscription) -> tuple[int, int]:
    """What an automatic commit takes, and what the user's own takes."""
    return subscription.finished_positions()[PLACE].offset, subscription.positions_to_commit()[PLACE].offset


def test_an_iterated_record_is_finished_when_the_next_is_taken() -> None:
    subscription, state = reading()
    run = run_of(10, 11, 14, end=20)
    state.begin_run(run)
    subscription.hand_out(state, iterated=True)
    assert committed(subscription) == (10, 10)
    seen = [(record.offset, *committed(subscription)) for record in run.iterator]
    # After the last one the position is past what is left of the batch; the record itself is still in hand.
    assert seen == [(10, 10, 11), (11, 11, 12), (14, 14, 20)]
    assert subscription.in_hand([PLACE])
    subscription.user_returned()
    assert committed(subscription) == (20, 20)
    assert not subscription.in_hand([PLACE])


def test_a_list_is_finished_when_the_user_comes_back() -> None:
    subscription, state = reading()
    state.begin_run(run_of(10, 11, 12))
    subscription.hand_out(state)
    assert [record.offset for record in state.take(2)] == [10, 11]
    assert committed(subscription) == (10, 12)
    subscription.user_returned()
    assert committed(subscription) == (12, 12)
    subscription.hand_out(state)
    assert [record.offset for record in state.take()] == [12]
    assert committed(subscription) == (12, 13)


def test_committed_positions_carry_the_epoch_of_the_record_before() -> None:
    subscription, state = reading()
    state.begin_run(run_of(10, 11, epoch=7))
    assert subscription.positions_to_commit()[PLACE] == OffsetAndMetadata(10, "", -1)
    subscription.hand_out(state)
    state.take()
    assert subscription.positions_to_commit()[PLACE] == OffsetAndMetadata(12, "", 7)


def test_withholding_ends_an_iteration_before_its_next_record_and_loses_none() -> None:
    subscription, state = reading()
    run = run_of(10, 11, 12)
    state.begin_run(run)
    subscription.hand_out(state, iterated=True)
    seen = []
    for record in run.iterator:
        seen.append(record.offset)
        if record.offset == 11:
            subscription.withhold([PLACE])
            assert not state.is_readable
            assert subscription.in_hand([PLACE])
            assert committed(subscription) == (11, 12)
    assert seen == [10, 11]
    subscription.user_returned()
    assert committed(subscription) == (12, 12)
    # Handed back, it goes on where it was.
    subscription.release([PLACE])
    assert state.run is not None
    assert [record.offset for record in state.run.iterator] == [12]


def test_seeking_during_an_iteration_ends_it_and_drops_what_was_fetched() -> None:
    subscription, state = reading()
    run = run_of(10, 11, 12)
    state.begin_run(run)
    subscription.hand_out(state, iterated=True)
    next(run.iterator)
    state.seek(3)
    assert list(run.iterator) == []
    assert (state.position, state.fetch_offset, committed(subscription)) == (3, 3, (3, 3))


def test_a_partition_that_was_taken_away_counts_for_nothing() -> None:
    subscription, state = reading()
    run = run_of(10, 11)
    state.begin_run(run)
    subscription.hand_out(state, iterated=True)
    next(run.iterator)
    subscription.remove([PLACE])
    assert list(run.iterator) == []
    assert subscription.finished_positions() == {}
    with pytest.raises(IllegalStateError, match="t-0 is not assigned to this consumer; assigned: none"):
        subscription.state(PLACE)


def test_progress_changes_whenever_the_user_comes_for_more() -> None:
    subscription, state = reading()
    run = run_of(10, 11)
    seen = {subscription.progress}
    subscription.user_returned()
    seen.add(subscription.progress)
    state.begin_run(run)
    subscription.hand_out(state, iterated=True)
    for _ in run.iterator:
        seen.add(subscription.progress)
        seen.add(subscription.progress)
    assert len(seen) == 4


def test_waiting_for_the_user_ends_when_he_comes_back_or_the_time_is_over() -> None:
    async def story() -> None:
        subscription, state = reading()
        assert await subscription.wait_until_returned([PLACE], 5)
        state.begin_run(run_of(10))
        subscription.hand_out(state)
        state.take()
        assert not await subscription.wait_until_returned([PLACE], 0.01)
        assert await subscription.wait_until_returned([OTHER], 5)
        waiting = asyncio.create_task(subscription.wait_until_returned([PLACE], 30))
        await asyncio.sleep(0)
        subscription.user_returned()
        assert await waiting

    asyncio.run(asyncio.wait_for(story(), 10))


def test_partitions_of_a_group_are_read_only_once_they_are_released() -> None:
    subscription = Subscription()
    subscription.subscribe(["t"])
    told: list[frozenset[TopicPartition]] = []
    subscription.watch(lambda: told.append(frozenset(subscription.assigned)))
    subscription.add([PLACE, OTHER])
    subscription.state(PLACE).seek(0)
    assert not subscription.state(PLACE).is_readable
    subscription.release([PLACE])
    assert subscription.state(PLACE).is_readable
    # Given again, as in each rebalance, they keep their state.
    subscription.add([PLACE])
    assert subscription.state(PLACE).is_readable
    assert told == [frozenset({PLACE, OTHER})] * 3


def test_watchers_see_the_positions_once_more_when_the_user_unsubscribes() -> None:
    subscription = Subscription()
    subscription.subscribe(["t"])
    subscription.add([PLACE])
    subscription.state(PLACE).seek(5)
    seen = []
    subscription.watch(lambda: seen.append((subscription.mode, len(subscription.finished_positions()))))
    subscription.unsubscribe()
    assert seen == [(Mode.NONE, 1), (Mode.NONE, 0)]


def test_assigning_anew_keeps_the_positions_of_partitions_that_stay() -> None:
    subscription, state = reading(10)
    subscription.assign_by_user([PLACE, OTHER])
    assert subscription.state(PLACE) is state
    assert state.position == 10
    assert subscription.state(OTHER).start is Start.COMMITTED


def test_topics_and_partitions_do_not_mix() -> None:
    subscription = Subscription()
    subscription.subscribe(["t"])
    with pytest.raises(IllegalStateError, match=r"call unsubscribe\(\) before assign"):
        subscription.assign_by_user([PLACE])
    subscription.unsubscribe()
    subscription.assign_by_user([PLACE])
    with pytest.raises(IllegalStateError, match=r"call unsubscribe\(\) before subscribe"):
        subscription.subscribe(["t"])
    with pytest.raises(TypeError, match="give a list of names"):
        Subscription().subscribe("t")
    with pytest.raises(ValueError, match="to topics or to a pattern"):
        Subscription().subscribe(["t"], pattern="t.*")
    with pytest.raises(ValueError, match="to topics or to a pattern"):
        Subscription().subscribe()


def test_a_pattern_matches_from_the_beginning_of_a_name() -> None:
    subscription = Subscription()
    subscription.subscribe(pattern="orders")
    assert subscription.wants("orders-eu")
    assert not subscription.wants("old-orders")
    subscription.subscribe(pattern=re.compile("orders$"))
    assert not subscription.wants("orders-eu")
