"""One history from a seed, and many of them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .classic_member import ClassicMember
from .consumer_member import ConsumerMember
from .members import Member
from .witness import BrokenError, require
from .world import TOPICS, World

KINDS = ("classic", "consumer", "mixed")
GROUP = "readers"
STORM_STEPS = 60
CALM_MS = 180_000


@dataclass
class Failure:
    """A history that broke an invariant."""

    kind: str
    seed: int
    complaint: str


@dataclass
class Report:
    """What was seen over many histories."""

    histories: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    broken: list[Failure] = field(default_factory=list)


class History:
    """A storm of joins, deaths, pauses and kills; then calm, in which the group must find its peace."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind = kind
        self.world = World(seed)
        self.members: list[Member] = []
        self._named = 0

    def run(self) -> World:
        """Play it; BrokenError if an invariant does not hold."""
        chance = self.world.chance
        for _ in range(chance.randint(1, 3)):
            self._arrive()
        for _ in range(STORM_STEPS):
            self.world.run_for(chance.randint(0, 8000))
            self._something_happens()
        self.world.calm = True
        if not self._living():
            self._arrive()
        self.world.run_for(CALM_MS)
        self._check_peace()
        return self.world

    def _living(self) -> list[Member]:
        return [member for member in self.members if member.alive]

    def _arrive(self) -> None:
        chance = self.world.chance
        self._named += 1
        topics = chance.choice((["orders"], ["orders", "payments"]))
        instance_id = f"instance-{chance.randint(0, 2)}" if chance.random() < 0.3 else None
        classic = self.kind == "classic" or (self.kind == "mixed" and chance.random() < 0.5)
        member: Member = (ClassicMember if classic else ConsumerMember)(
            self.world, GROUP, f"member-{self._named}", topics, instance_id
        )
        self.members.append(member)
        member.start()

    def _something_happens(self) -> None:
        chance = self.world.chance
        living = self._living()
        event = chance.choices(
            ("arrive", "leave", "die", "sleep", "kill", "grow", "nothing"), (25, 12, 12, 15, 6, 2, 28)
        )[0]
        if event == "kill":
            self.world.kill_coordinator()
        elif event == "grow" and len(self.world.image.topics["orders"].partitions) < 12:
            self.world.add_partitions("orders", 1)
        elif event == "arrive" or not living:
            if len(living) < 6:
                self._arrive()
        elif event == "leave":
            chance.choice(living).leave()
        elif event == "die":
            chance.choice(living).die()
        elif event == "sleep":
            chance.choice(living).sleep(chance.randint(1000, 40_000))

    def _check_peace(self) -> None:
        world = self.world
        living = [member for member in self._living() if not member.in_line]
        require(world.waiting == 0, "nobody waits for ever", f"{world.waiting} requests have no answer")
        owners: dict[tuple[str, int], str] = {}
        for member in living:
            for place in member.owned:
                other = owners.setdefault(place, member.name)
                require(other == member.name, "one owner", f"{place}: {other} and {member.name}")
        read = {topic for member in living for topic in member.topics}
        # A classic leader learns of new partitions by itself, which these do at their next rebalance only.
        expected = {
            (topic, index)
            for topic in read
            for index in range(TOPICS[topic] if self.kind != "consumer" else len(world.image.topics[topic].partitions))
        }
        missing = expected - owners.keys()
        require(not missing, "every partition has an owner", f"{sorted(missing)} of {[m.name for m in living]}")


def run(kind: str, seeds: Iterable[int]) -> Report:
    """Play histories; those that break are reported with their seed."""
    report = Report()
    for seed in seeds:
        history = History(kind, seed)
        try:
            history.run()
        except BrokenError as broken:
            report.broken.append(Failure(kind, seed, str(broken)))
        report.histories += 1
        report.seen += history.world.witness.seen
    return report
