"""Records that flow while a group changes, and a ledger of who had and read what."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable

from confluent_kafka import Producer

from ottla.testing import TestBroker

from .group_story import PARTITIONS, PATIENCE_S
from .java_members import Deed

PAUSE_S = 0.005


class Flow:
    """Writes to all partitions of a topic, one after another, until the block ends; `ends` says how far it came."""

    def __init__(self, broker: TestBroker, topic: str) -> None:
        self.ends: Counter[int] = Counter()
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        self._topic = topic
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        number = 0
        while not self._over.wait(PAUSE_S):
            partition = number % PARTITIONS
            self._producer.produce(self._topic, value=b"%d" % number, partition=partition)
            self.ends[partition] += 1
            number += 1

    def __enter__(self) -> "Flow":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0


class Ledger:
    """Looks at all that members do: one has a partition at a time, reads what is next, and nothing that is committed.

    What was read and not committed may be read again by the next owner.
    """

    def __init__(self) -> None:
        self.ends: Counter[int] = Counter()
        """Up to where everything was read."""
        self._owners: dict[int, int] = {}
        self._committed: defaultdict[int, int] = defaultdict(int)

    def enter(self, deeds: Iterable[Deed]) -> None:
        """Take up what was done next."""
        for deed in deeds:
            partition = deed.partition
            match deed.what:
                case "assigned":
                    assert partition not in self._owners, deed
                    self._owners[partition] = deed.member
                case "read":
                    assert self._owners[partition] == deed.member, deed
                    assert self._committed[partition] <= deed.offset <= self.ends[partition], deed
                    self.ends[partition] = max(self.ends[partition], deed.offset + 1)
                case "committed":
                    assert self._owners[partition] == deed.member, deed
                    self._committed[partition] = deed.offset
                case _ if self._owners.get(partition) == deed.member:
                    del self._owners[partition]
                case _:
                    # A member that closes while it gives something up tells its listener of it twice.
                    pass
