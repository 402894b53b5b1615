"""In which order partitions come and go."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.client.consumer.membership.handover import Handover
from ottla.client.consumer.membership.listener import ConsumerRebalanceListener
from ottla.client.consumer.runs import Run
from ottla.client.consumer.subscription import Subscription
from ottla.client.types import CREATE_TIME, ConsumerRecord, OffsetAndMetadata, TopicPartition

PLACE = TopicPartition("orders", 0)


class Scene:
    """A handover between a subscription, commits and a listener that note what happens to them."""

    def __init__(self, patience_s: float = 5.0) -> None:
        self.events: list[str] = []
        self.errors: list[BaseException] = []
        self.subscription = Subscription()
        self.subscription.subscribe(["orders"])
        self.handover = Handover(
            self.subscription, commit=self._commit, report=self.errors.append, patience_s=patience_s, listener=self
        )

    async def _commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self.events.append(f"committed {[position.offset for position in offsets.values()]}")

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.events.append(f"assigned, readable: {self.subscription.state(PLACE).is_readable}")
        self.subscription.state(PLACE).seek(7)

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        await asyncio.sleep(0)
        self.events.append(f"revoked, still there: {PLACE in self.subscription.assigned}")

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        self.events.append("lost")

    def take_record(self) -> None:
        """The user gets a record, and works on it."""
        state = self.subscription.state(PLACE)
        record = ConsumerRecord("orders", 0, 7, 0, CREATE_TIME, None, b"", ())
        state.begin_run(Run([record], 7, 8))
        self.subscription.hand_out(state, iterated=True)
        assert state.run is not None
        next(state.run.iterator)


def play(story: Callable[[Scene], Coroutine[Any, Any, None]], patience_s: float = 5.0) -> Scene:
    async def run() -> Scene:
        scene = Scene(patience_s)
        await scene.handover.assign([PLACE])
        await story(scene)
        return scene

    return asyncio.run(run())


def test_a_listener_can_seek_before_anything_is_read() -> None:
    async def story(scene: Scene) -> None:
        assert scene.events == ["assigned, readable: False"]
        assert scene.subscription.state(PLACE).is_readable
        assert scene.subscription.state(PLACE).position == 7

    play(story)


def test_positions_are_committed_and_the_listener_told_before_partitions_are_gone() -> None:
    async def story(scene: Scene) -> None:
        await scene.handover.revoke([PLACE])
        assert scene.events[1:] == ["committed [7]", "revoked, still there: True"]
        assert scene.subscription.assigned == {}

    play(story)


def test_lost_partitions_are_not_committed() -> None:
    async def story(scene: Scene) -> None:
        scene.take_record()
        await scene.handover.revoke([PLACE], is_lost=True)
        assert scene.events[1:] == ["lost"]
        assert scene.subscription.assigned == {}

    play(story)


def test_a_record_in_hand_is_waited_for_and_committed() -> None:
    async def story(scene: Scene) -> None:
        scene.take_record()
        revoking = asyncio.create_task(scene.handover.revoke([PLACE]))
        await asyncio.sleep(0.01)
        assert scene.events[1:] == []
        assert not scene.subscription.state(PLACE).is_readable, "nothing more is handed out meanwhile"
        scene.subscription.user_returned()
        await revoking
        assert scene.events[1] == "committed [8]"

    play(story)


def test_a_user_who_does_not_come_back_does_not_hold_the_group_up(caplog: pytest.LogCaptureFixture) -> None:
    async def story(scene: Scene) -> None:
        scene.take_record()
        await scene.handover.revoke([PLACE])
        assert scene.events[1:] == ["committed [7]", "revoked, still there: True"]

    play(story, patience_s=0.02)
    assert "another member will read them too" in caplog.text


def test_at_the_end_nobody_is_waited_for() -> None:
    async def story(scene: Scene) -> None:
        scene.take_record()
        async with asyncio.timeout(4):
            await scene.handover.revoke_all(is_last=True)
        assert scene.events[1] == "committed [7]"

    play(story)


def test_what_a_listener_raises_is_reported_and_the_step_is_finished() -> None:
    class Broken(ConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            raise RuntimeError("the disk is full")

    async def story(scene: Scene) -> None:
        scene.handover.listener = Broken()
        await scene.handover.revoke([PLACE])
        assert [str(error) for error in scene.errors] == ["the disk is full"]
        assert scene.subscription.assigned == {}

    play(story)


def test_a_listener_of_another_library_is_told_of_lost_partitions_as_revoked_ones() -> None:
    class Old:
        told: frozenset[TopicPartition] | set[TopicPartition] = frozenset()

        async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            self.told = revoked

    async def story(scene: Scene) -> None:
        scene.handover.listener = Old()
        await scene.handover.revoke([PLACE], is_lost=True)
        assert scene.handover.listener.told == {PLACE}

    play(story)


def test_a_step_that_has_begun_is_finished_before_the_next() -> None:
    async def story(scene: Scene) -> None:
        scene.take_record()
        revoking = asyncio.create_task(scene.handover.revoke([PLACE]))
        await asyncio.sleep(0.01)
        revoking.cancel()
        last = asyncio.create_task(scene.handover.revoke_all(is_last=True))
        await asyncio.sleep(0.01)
        scene.subscription.user_returned()
        await last
        assert scene.events[1:] == ["committed [8]", "revoked, still there: True"], "once, not twice"

    play(story)
