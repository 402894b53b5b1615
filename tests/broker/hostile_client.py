"""Connections that send what nobody should: noise, and requests with some damage done to them."""

import socket
import threading
import time
from random import Random

from ottla.broker.apis import SERVED, served_versions
from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.wire import api
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.frame import encode_request
from tests.conformance.codecs import Codec
from tests.conformance.samples import Limits, make_sample
from tests.fuzz.hostile import hostile

TOPIC = "attacked"
PATIENCE_SECONDS = 0.02
"""How long a reply is waited for. Damage may well leave a request of which there is more to come."""
MOST_SECONDS = 60.0


class HostileClient(threading.Thread):
    """Sends hostile bytes for so many seconds, on a new connection whenever the broker has closed the last.

    It goes on until so much was answered and refused, which takes longer on a machine that has other things to do.
    """

    def __init__(
        self, address: tuple[str, int], seed: int, seconds: float, *, least_answered: int = 0, least_closed: int = 0
    ) -> None:
        super().__init__(name=f"hostile-{seed}", daemon=True)
        self._address = address
        self._random = Random(seed)
        self._seconds = seconds
        self._least_answered = least_answered
        self._least_closed = least_closed
        self.sent = 0
        self.answered = 0
        self.closed = 0

    def run(self) -> None:
        """Send until the time is over, and enough has been answered and refused."""
        begun = time.monotonic()
        while self._goes_on(time.monotonic() - begun):
            with socket.create_connection(self._address, timeout=30) as connection:
                connection.settimeout(PATIENCE_SECONDS)
                while self._goes_on(time.monotonic() - begun) and self._bother(connection):
                    pass

    def _goes_on(self, seconds: float) -> bool:
        was_enough = self.answered >= self._least_answered and self.closed >= self._least_closed
        return seconds < (self._seconds if was_enough else MOST_SECONDS)

    def _bother(self, connection: socket.socket) -> bool:
        """Send something; whether the connection is of any use after it."""
        try:
            connection.sendall(hostile_frame(self._random))
            self.sent += 1
            if connection.recv(1 << 16):
                self.answered += 1
                return True
            self.closed += 1
        except TimeoutError:
            # One in two goes on in the middle of a request that the broker still waits for.
            return self._random.random() < 0.5
        except ConnectionError:
            self.closed += 1
        return False


def hostile_frame(random: Random) -> bytes:
    """Hostile bytes, of which three in four have at least the right size in front of them."""
    sound = sound_frame(random)
    if random.randrange(4) == 0:
        return hostile(random, sound)
    body = hostile(random, sound[4:])
    return len(body).to_bytes(4, "big") + body


def sound_frame(random: Random) -> bytes:
    """A request that a broker serves, with records for a topic that exists, or with anything at all in it."""
    if random.randrange(3) == 0:
        message, version = _with_records(random)
    else:
        key = random.choice(SERVED)
        version = random.choice(list(served_versions(key)))
        codec = Codec("request", key, api.request(key), version)
        message = make_sample(codec, random.randrange(2, 1 << 30), Limits(unknown_tags=True))
    return b"".join(encode_request(message, version, correlation_id=random.randrange(1 << 30), client_id="hostile"))


def _with_records(random: Random) -> tuple[object, int]:
    if random.randrange(2) == 0:
        batch = build_batch([Record(number, 1_700_000_000_000, b"key", bytes(10)) for number in range(5)])
        data = [PartitionProduceData(index=0, records=batch)]
        topics = [TopicProduceData(name=TOPIC, partition_data=data)]
        return ProduceRequest(acks=random.choice((-1, 0, 1)), timeout_ms=100, topic_data=topics), random.randint(3, 12)
    partition = FetchPartition(fetch_offset=random.randrange(3), partition_max_bytes=1000)
    topics_wanted = [FetchTopic(topic=TOPIC, partitions=[partition])]
    return FetchRequest(max_wait_ms=10, min_bytes=1, max_bytes=1000, topics=topics_wanted), random.randint(0, 12)
