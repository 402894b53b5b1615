"""Random histories of a group: members come, change their minds, go quiet, lose answers; topics and brokers too."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from ottla.coordinator.group.consumer import ConsumerGroup, core
from ottla.wire.errors import ErrorCode

from .consumer_world import INTERVAL_MS, REBALANCE_MS, Consumer, ConsumerWorld
from .harness import Answer

TOPICS = ["apples", "berries", "cherries"]
EXPRESSIONS = [".*", "[ab].*", "cherries|dates"]
STEPS = 80


class History:
    """One history. Whatever happens, the invariants hold after each step."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self.world = ConsumerWorld({"apples": 4, "berries": 3})
        self.alive: list[Consumer] = []
        self._numbers = iter(range(10_000))
        self._epochs: dict[str, int] = {}
        self._group_epoch = 0

    def run(self) -> None:
        steps = [self.come, self.go, self.beat, self.beat, self.beat, self.beat, self.lose_an_answer, self.ask_twice]
        steps += [self.die, self.resubscribe, self.change_topics, self.wait, self.restart, self.leave_for_now]
        for _ in range(STEPS):
            self.random.choice(steps)()
            self.check()
        self.calm_down()

    # What can happen.

    def come(self) -> None:
        if len(self.alive) < 6:
            name = f"member-{next(self._numbers)}"
            instance_id = f"static-{self.random.randrange(3)}" if self.random.random() < 0.3 else None
            consumer = Consumer(self.world, name, instance_id=instance_id, **self._subscription())
            self._join(consumer)

    def _subscription(self) -> dict[str, Any]:
        names = self.random.sample(TOPICS, self.random.randint(0, 3))
        expression = self.random.choice(EXPRESSIONS) if self.random.random() < 0.3 else ""
        return {"subscribed_topic_names": names, "subscribed_topic_regex": expression}

    def _join(self, consumer: Consumer) -> None:
        consumer.epoch, consumer.held, consumer._owned, consumer._told = 0, set(), [], None
        fields = {"rebalance_timeout_ms": REBALANCE_MS, "topic_partitions": [], **consumer.fields}
        answer = consumer.send(**fields)
        if answer.error is not ErrorCode.NONE:
            assert answer.error is ErrorCode.UNRELEASED_INSTANCE_ID
            if consumer in self.alive:
                self.alive.remove(consumer)
            return
        if consumer not in self.alive:
            self.alive.append(consumer)
        self._receive(consumer, answer)

    def go(self) -> None:
        if self.alive:
            consumer = self.alive.pop(self.random.randrange(len(self.alive)))
            consumer.leave()

    def die(self) -> None:
        if self.alive and self.random.random() < 0.3:
            self.alive.pop(self.random.randrange(len(self.alive)))

    def beat(self) -> None:
        if self.alive:
            consumer = self.random.choice(self.alive)
            self._receive(consumer, self._send(consumer))

    def _send(self, consumer: Consumer, **fields: Any) -> Answer:
        if consumer._told is None:
            # A client that did not get an answer says everything the next time.
            fields = {"rebalance_timeout_ms": REBALANCE_MS, **consumer.fields, **fields}
        if consumer._told != consumer._owned or fields:
            fields["topic_partitions"] = consumer._owned
        return consumer.send(**fields)

    def _receive(self, consumer: Consumer, answer: Answer) -> None:
        if answer.error is ErrorCode.NONE:
            consumer.take(answer)
        elif answer.error is ErrorCode.FENCED_INSTANCE_ID:
            self.alive.remove(consumer)
        else:
            assert answer.error in {
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.GROUP_ID_NOT_FOUND,
            }
            self._join(consumer)

    def lose_an_answer(self) -> None:
        if self.alive:
            consumer = self.random.choice(self.alive)
            self._send(consumer)
            consumer._told = None

    def ask_twice(self) -> None:
        if self.alive:
            consumer = self.random.choice(self.alive)
            self._send(consumer)
            consumer._told = None
            self._receive(consumer, self._send(consumer))

    def resubscribe(self) -> None:
        if self.alive:
            consumer = self.random.choice(self.alive)
            subscription = self._subscription()
            consumer.fields |= subscription
            self._receive(consumer, self._send(consumer, rebalance_timeout_ms=REBALANCE_MS, **subscription))

    def leave_for_now(self) -> None:
        static = [consumer for consumer in self.alive if consumer.instance_id is not None]
        if static:
            consumer = self.random.choice(static)
            consumer.send(member_epoch=-2)
            self.alive.remove(consumer)

    def change_topics(self) -> None:
        name = self.random.choice(TOPICS)
        found = self.world.image.topics.get(name)
        if found is None:
            self.world.create(name, self.random.randint(1, 4))
        elif self.random.random() < 0.5:
            self.world.delete(name)
        else:
            self.world.grow(name, len(found.partitions) + 1)

    def wait(self) -> None:
        self.world.pass_time(self.random.choice([100, INTERVAL_MS, 3 * INTERVAL_MS, 20_000]))

    def restart(self) -> None:
        if self.random.random() < 0.3:
            self.world.restart()

    # What must hold.

    def check(self) -> None:
        group = self.world.subject._groups.get("group")
        if group is None:
            return
        assert isinstance(group, ConsumerGroup)
        self._check_one_owner(group)
        self._check_epochs(group)
        self._check_replay(group)

    def _check_one_owner(self, group: ConsumerGroup) -> None:
        owners: Counter[tuple[bytes, int]] = Counter()
        held: dict[str, set[tuple[bytes, int]]] = {}
        for member_id, member in group.members.items():
            assigned = {(t, i) for t, indexes in member.current.assigned.items() for i in indexes}
            revoking = {(t, i) for t, indexes in member.current.revoking.items() for i in indexes}
            assert not assigned & revoking
            held[member_id] = assigned | revoking
            owners.update(held[member_id])
        assert all(count == 1 for count in owners.values()), "a partition has two owners"
        for consumer in self.alive:
            if consumer.member_id in held:
                believed = {(one.topic_id, index) for one in consumer._owned for index in one.partitions}
                assert believed <= held[consumer.member_id], "a member reads what it was not given"

    def _check_epochs(self, group: ConsumerGroup) -> None:
        assert group.epoch >= self._group_epoch
        self._group_epoch = group.epoch
        for member_id, member in group.members.items():
            if member.current.epoch > 0:
                assert member.current.epoch >= self._epochs.get(member_id, 0), "a member went back"
                assert member.current.epoch <= group.epoch
                self._epochs[member_id] = member.current.epoch

    def _check_replay(self, group: ConsumerGroup) -> None:
        fresh = self.world.replayed()._groups["group"]
        assert isinstance(fresh, ConsumerGroup)
        ours, theirs = group._core.state, fresh._core.state
        for field in vars(ours):
            assert getattr(ours, field) == getattr(theirs, field), field

    def calm_down(self) -> None:
        """Those who are alive go on, and in the end each partition that somebody reads is held by one of them."""
        for _ in range(40):
            for consumer in list(self.alive):
                if consumer in self.alive:
                    self._receive(consumer, self._send(consumer))
            self.world.pass_time(INTERVAL_MS)
            self.check()
        if self.alive:
            assert self.world.state == "Stable"
            group = self.world.group
            assert group.members.keys() == {consumer.member_id for consumer in self.alive}
            read = {name for name in self.world.image.topics if group.is_subscribed(name)}
            wanted = {(name, index) for name in read for index in range(len(self.world.image.topics[name].partitions))}
            held = Counter(partition for consumer in self.alive for partition in consumer.held)
            assert held == dict.fromkeys(wanted, 1)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_each_partition_has_one_owner_and_all_have_one_in_the_end(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        # What groups of hundreds go through, with a few.
        monkeypatch.setattr(core, "LARGE_GROUP", 2)
    History(f"history {seed}").run()
