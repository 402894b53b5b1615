"""Random histories of a group with members of both protocols, which changes its kind as they come and go."""

from collections import Counter
from random import Random

import pytest

from ottla.coordinator.group.consumer import ConsumerGroup
from ottla.wire.errors import ErrorCode

from .consumer_world import INTERVAL_MS, REBALANCE_MS, Consumer, ConsumerWorld, Held
from .harness import Answer
from .mixed_world import ClassicConsumer

STEPS = 60
COUNT = 5
ORDERS: Held = {("orders", index) for index in range(COUNT)}


class OldClient(ClassicConsumer):
    """A classic client that takes one step at a time, and finds its way whatever it is told."""

    def __init__(self, world: ConsumerWorld, is_eager: bool) -> None:
        super().__init__(world)
        self.is_eager = is_eager
        self._join: Answer | None = None
        self._sync: Answer | None = None
        self.is_done = False

    def step(self) -> None:
        if self._sync is not None:
            self._after_sync(self._sync)
        elif self._join is not None:
            self._after_join(self._join)
        else:
            self._after(self.heartbeat() if self.generation >= 0 else ErrorCode.REBALANCE_IN_PROGRESS)

    def _after(self, error: ErrorCode) -> None:
        """Go on after an answer to something else than a join."""
        self.is_done = error is ErrorCode.NONE
        if self.is_done:
            return
        if error is not ErrorCode.REBALANCE_IN_PROGRESS:
            assert error in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION}
            self.held = set()
            if error is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
        elif self.is_eager:
            self.held = set()
        self._join = self.join()

    def _after_join(self, answer: Answer) -> None:
        if answer.is_waiting:
            return
        self._join = None
        if answer.is_lost or answer.error is not ErrorCode.NONE:
            self._after(ErrorCode.REBALANCE_IN_PROGRESS if answer.is_lost else answer.error)
            return
        self.joined(answer)
        self._sync = self.sync(self._shares() if self.is_leader else None)

    def _shares(self) -> dict[str, Held]:
        """Each keeps what it says it has; whatever nobody has goes to those with least."""
        shares: dict[str, Held] = {}
        for member_id, owned in self.owned_by_others:
            shares[member_id] = owned - {one for share in shares.values() for one in share}
        for partition in sorted(ORDERS - {one for share in shares.values() for one in share}):
            min(shares.values(), key=len).add(partition)
        return shares

    def _after_sync(self, answer: Answer) -> None:
        if answer.is_waiting:
            return
        self._sync = None
        if answer.is_lost or answer.error is not ErrorCode.NONE:
            self._after(ErrorCode.REBALANCE_IN_PROGRESS if answer.is_lost else answer.error)
        elif self.synced(answer):
            self._after(ErrorCode.REBALANCE_IN_PROGRESS)


class History:
    """One history."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self.world = ConsumerWorld({"orders": COUNT})
        self.is_eager = self.random.random() < 0.5
        self.old: list[OldClient] = []
        self.new: list[Consumer] = []
        self.kinds: set[type] = set()

    def run(self) -> None:
        steps = [self.old_comes, self.new_comes, self.one_goes, self.one_dies, self.wait, self.restart]
        for _ in range(STEPS):
            self.random.choice(steps)() if self.random.random() < 0.3 else self.go_on()
            self.check()
        self.calm_down()

    def old_comes(self) -> None:
        if len(self.old) < 3:
            self.old.append(OldClient(self.world, self.is_eager))

    def new_comes(self) -> None:
        if len(self.new) < 2:
            self.new.append(Consumer(self.world, f"new-{self.random.getrandbits(64)}").join())

    def one_goes(self) -> None:
        if self.new and self.random.random() < 0.6:
            self.new.pop().leave()
        elif self.old:
            self.old.pop().leave()

    def one_dies(self) -> None:
        if self.new and self.random.random() < 0.5:
            self.new.pop()
        elif self.old:
            self.old.pop()

    def wait(self) -> None:
        self.world.pass_time(self.random.choice([10, 1000, INTERVAL_MS, 4 * INTERVAL_MS]))

    def restart(self) -> None:
        self.world.restart()

    @property
    def clients(self) -> list[OldClient | Consumer]:
        return [*self.old, *self.new]

    def go_on(self) -> None:
        if self.clients:
            self._step(self.random.choice(self.clients))

    def _step(self, client: OldClient | Consumer) -> None:
        if isinstance(client, OldClient):
            client.step()
            return
        owned = client._owned
        answer = client.send(topic_partitions=owned, rebalance_timeout_ms=REBALANCE_MS, **client.fields)
        if answer.error is ErrorCode.NONE:
            client.take(answer)
        else:
            assert answer.error in {
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.GROUP_ID_NOT_FOUND,
                ErrorCode.FENCED_MEMBER_EPOCH,
            }
            client.join()

    def check(self) -> None:
        group = self.world.subject._groups.get("group")
        self.kinds.add(type(group))
        if not isinstance(group, ConsumerGroup):
            return
        held: dict[str, Held] = {}
        for member_id, member in group.members.items():
            both = [(t, i) for part in (member.current.assigned, member.current.revoking) for t, i in part.items()]
            assert all(self.world.image.topic_by_id(topic_id) for topic_id, _ in both)
            held[member_id] = {("orders", index) for _, indexes in both for index in indexes}
        owners = Counter(partition for partitions in held.values() for partition in partitions)
        assert all(count == 1 for count in owners.values()), "a partition has two owners"
        for client in self.clients:
            if client.member_id in held:
                assert client.held <= held[client.member_id], "a member reads what it was not given"
        fresh = self.world.replayed()._groups["group"]
        assert isinstance(fresh, ConsumerGroup)
        assert vars(fresh._core.state) == vars(group._core.state)

    def calm_down(self) -> None:
        for _ in range(60):
            for client in self.clients:
                self._step(client)
            self.world.pass_time(2000)
            self.check()
        if self.clients:
            assert all(client.is_done for client in self.old)
            held = Counter(partition for client in self.clients for partition in client.held)
            assert held == dict.fromkeys(ORDERS, 1)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_protocols_each_partition_has_one_owner_and_all_have_one_in_the_end(seed: int) -> None:
    History(f"mixed {seed}").run()
