"""Random histories of a shard: whatever happens, offsets are what was committed last, also after a start."""

import random

import pytest

from ottla.wire.errors import ErrorCode

from .shard_world import MINUTE_MS, ShardWorld
from .topics import image_of, topic

GROUPS = ("a", "b")
STEPS = 120


class History:
    """Does things at random, and keeps a model of what must have come of it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = ShardWorld(group_consumer_session_timeout_ms=45_000)
        self.offsets: dict[str, dict[tuple[str, int], int]] = {group: {} for group in GROUPS}
        self.members: dict[str, dict[str, int]] = {group: {} for group in GROUPS}
        """Classic members with their generation, and consumers with their epoch, as these know it."""
        self.topic_number = 1
        self.last_offset = 0

    def group(self) -> str:
        return self.random.choice(GROUPS)

    def step(self) -> None:
        choices = (
            (self.commit_alone, 6),
            (self.commit_as_member, 8),
            (self.join, 3),
            (self.leave, 3),
            (self.consumer_beat, 6),
            (self.delete_group, 1),
            (self.delete_offset, 2),
            (self.create_topic_again, 1),
            (self.wait, 3),
            (self.restart, 2),
        )
        (action,) = self.random.choices([action for action, _ in choices], [weight for _, weight in choices])
        action()

    def _commit(self, group: str, member_id: str, epoch: int) -> ErrorCode:
        self.last_offset += 1
        index = self.random.randrange(4)
        (code,) = self.world.commit({index: self.last_offset}, group, member_id=member_id, epoch=epoch)
        if code is ErrorCode.NONE:
            self.offsets[group]["orders", index] = self.last_offset
        return code

    def commit_alone(self) -> None:
        group = self.group()
        is_active = self.world.listed().get(group, ("Empty",))[0] != "Empty"
        code = self._commit(group, "", -1)
        assert code is (ErrorCode.UNKNOWN_MEMBER_ID if is_active else ErrorCode.NONE)

    def commit_as_member(self) -> None:
        group = self.group()
        if self.members[group]:
            member_id, epoch = self.random.choice(list(self.members[group].items()))
            self._commit(group, member_id, epoch + self.random.choice((0, 0, 0, 1)))

    def join(self) -> None:
        group = self.group()
        answer = self.world.join(group, self.random.choice(["", "", *self.members[group]]))
        if answer.is_waiting or answer.reply.error_code:
            return
        member_id, generation = answer.reply.member_id, answer.reply.generation_id
        self.members[group][member_id] = generation
        self.world.sync(member_id, generation, {member_id: b""}, group)

    def leave(self) -> None:
        group = self.group()
        if not self.members[group]:
            return
        member_id = self.random.choice(list(self.members[group]))
        if member_id.startswith("consumer"):
            self.world.consumer_heartbeat(member_id, -1, group)
        else:
            self.world.leave(member_id, group)
        self.members[group].pop(member_id)

    def consumer_beat(self) -> None:
        group = self.group()
        member_id = f"consumer-{self.random.randrange(3)}"
        epoch = self.members[group].get(member_id, 0)
        reply = self.world.consumer_heartbeat(member_id, epoch, group)
        if reply.error_code == 0:
            self.members[group][member_id] = reply.member_epoch
        else:
            self.members[group].pop(member_id, None)

    def delete_group(self) -> None:
        group = self.group()
        (code,) = self.world.delete(group)
        if code is ErrorCode.NONE:
            self.offsets[group].clear()

    def delete_offset(self) -> None:
        group, index = self.group(), self.random.randrange(4)
        _, codes = self.world.delete_offsets(index, group=group)
        if codes == [ErrorCode.NONE]:
            self.offsets[group].pop(("orders", index), None)

    def create_topic_again(self) -> None:
        self.topic_number += 1
        image = image_of(topic("orders", 4, number=self.topic_number))
        if self.random.random() < 0.5:
            self.world.see(image)
        else:
            self.world.image = image
            self.world.restart()
        for offsets in self.offsets.values():
            offsets.clear()

    def wait(self) -> None:
        self.world.pass_time(self.random.choice((10, 5_000, 20_000, 2 * MINUTE_MS)))

    def restart(self) -> None:
        self.world.restart()

    def check(self) -> None:
        listed = self.world.listed()
        for group in GROUPS:
            assert self.world.committed(group) == self.offsets[group]
            assert group in listed or not self.offsets[group], "offsets belong to a group"


@pytest.mark.parametrize("seed", range(60))
def test_a_committed_offset_stays_until_somebody_changes_it(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step()
        history.check()
    if seed % 2:
        history.restart()
        history.check()
    # Everyone falls silent: in the end nobody waits, and nobody is a member.
    history.world.pass_time(10 * MINUTE_MS)
    assert not history.world.waiting
    assert {state for state, _, _ in history.world.listed().values()} <= {"Empty"}
    history.check()
