"""Random faults by the hundred, each run repeatable from its seed: which client, how many faults, how much delay."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ottla.testing import TestBroker
from tests.peers.fixtures import QUICK_GROUPS, Broker
from tests.peers.kafka import KAFKA_3, KAFKA_4, KafkaBroker

from .actions import black_hole, cut_reply, drop_reply
from .history import Reads, Sends, Witness
from .proxy import FaultProxy
from .rules import QUICK_FAULTS, RandomAction
from .stories import (
    PARTITIONS,
    check_group,
    check_log,
    check_reads,
    consume,
    produce,
    read_in_group,
    run,
    start,
    tabulate,
)

PATIENCE_S = 90.0
COUNT = 300
STARTS = 6
"""How often a user tries who does not reach his broker at first."""

SLOW_FAULTS: list[RandomAction] = [
    *QUICK_FAULTS,
    lambda random: drop_reply(),
    lambda random: black_hole(),
    lambda random: cut_reply(random.random()),
]
"""With some that a client learns of from a timeout alone."""

GROUP_KINDS: dict[str, dict[str, Any]] = {
    "eager": {"partition_assignment_strategy": ["range"]},
    "cooperative": {"partition_assignment_strategy": ["cooperative-sticky"]},
    "modern": {"group_protocol": "consumer"},
}
STORIES = ("producer", "producer", "at least once", "consumer", "table", *GROUP_KINDS)


@dataclass
class Summary:
    """What came of all runs."""

    runs: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    broken: dict[int, BaseException] = field(default_factory=dict)
    """By seed."""

    def __str__(self) -> str:
        stories = ", ".join(f"{count} {name}" for name, count in sorted(self.runs.items()))
        seeds = ", ".join(map(str, sorted(self.broken)))
        end = f"BROKEN: {len(self.broken)}, seeds {seeds}" if self.broken else "all sound"
        return f"{self.runs.total()} runs ({stories}), {self.faults.total():,} faults: {end}"


def new_broker(name: str) -> AbstractContextManager[Broker]:
    """A broker by name: ottla, kafka-4 or kafka-3.9."""
    if name == "ottla":
        return TestBroker(QUICK_GROUPS)
    return KafkaBroker({"kafka-4": KAFKA_4, "kafka-3.9": KAFKA_3}[name], QUICK_GROUPS)


def run_seeds(
    broker_name: str, seeds: range, on_seed: Callable[[int, str, BaseException | None], None], only: str | None = None
) -> Summary:
    """Live through all seeds with one broker."""
    summary = Summary()
    stories = [story for story in STORIES if only in (None, story)]
    if broker_name == "kafka-3.9":
        # It has the newer protocol as a preview that is off.
        stories = [story for story in stories if story != "modern"]
    with new_broker(broker_name) as broker:
        for seed in seeds:
            story = Random(seed).choice(stories)
            failure = run_seed(broker, seed, story, summary.faults)
            summary.runs[story] += 1
            if failure is not None:
                summary.broken[seed] = failure
            on_seed(seed, story, failure)
    return summary


def run_seed(broker: Broker, seed: int, story: str, faults: Counter[str]) -> BaseException | None:
    """One run; what was wrong with it, with what the proxy did as a note."""
    random = Random(f"{seed} {story}")
    witness = Witness(broker.bootstrap_servers)
    topic = f"run-{seed}"
    witness.create(topic, PARTITIONS)
    try:
        with FaultProxy(broker.bootstrap_servers) as proxy:
            slow = random.random() < 0.3
            options = {"request_timeout_ms": 400} if slow else {}
            longest_ms = random.choice([0, 0, 3, 10])
            if longest_ms:
                proxy.delay(request_ms=(0, longest_ms), reply_ms=(0, longest_ms), seed=seed)
            proxy.random_faults(seed, random.choice([0.03, 0.1, 0.2]), SLOW_FAULTS if slow else QUICK_FAULTS)
            try:
                tell(story, proxy, witness, topic, options)
            finally:
                faults.update(proxy.faults)
    except Exception as error:  # noqa: BLE001 - the summary tells it
        return error
    finally:
        witness.delete(topic)
    return None


def tell(story: str, proxy: FaultProxy, witness: Witness, topic: str, options: dict[str, Any]) -> None:
    """Live through one story, and check how it ends."""
    address = proxy.bootstrap_servers
    match story:
        case "producer" | "at least once":
            once = story == "producer"
            sends = Sends(topic)
            # What cannot be had is an error: without numbers a record that is sent again may be stored twice.
            run(produce(address, topic, sends, COUNT, starts=STARTS, enable_idempotence=once, **options), PATIENCE_S)
            proxy.cut()
            check_log(witness, topic, sends, [0] * PARTITIONS, exactly_once=once)
            assert not sends.failed, f"records were given up: {next(iter(sends.failed.values()))}"
        case "consumer" | "table":
            values = [b"%s %d" % (topic.encode(), number) for number in range(COUNT)]
            witness.write(topic, values, PARTITIONS)
            reads = Reads()

            async def read() -> None:
                if story == "table":
                    reads.values = (await tabulate(address, topic, **options)).values
                else:
                    reads.values = (await consume(address, topic, COUNT, starts=STARTS, **options)).values

            run(start(read, STARTS), PATIENCE_S)
            check_reads(reads, values)
        case _:
            reads = Reads()
            # A join may take as long as a rebalance, and its reply may be lost.
            settings = {**GROUP_KINDS[story], "session_timeout_ms": 3000, "rebalance_timeout_ms": 2000, **options}
            written = run(read_in_group(proxy, witness, topic, topic, reads, starts=STARTS, **settings), PATIENCE_S)
            proxy.cut()
            check_group(witness, topic, reads, written)
