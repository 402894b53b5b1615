"""What clients are asked to tell of themselves, and what they have told (KIP-714).

A client asks which metrics are wanted and how often (GetTelemetrySubscriptions) and pushes those (PushTelemetry), as
OTLP in Protobuf. What is pushed is counted, and forgotten. The rules are Kafka's: who asks or pushes too early is told
to wait, and after a push that says it is the last one nothing more is taken.
"""

from collections import OrderedDict
from zlib import crc32

from ottla.config.broker import BrokerConfig
from ottla.metrics.counting import Metrics
from ottla.ports import Chance, Clock
from ottla.record.compression import Codec
from ottla.wire.errors import ErrorCode, KafkaError

MOST_CLIENTS = 4096
NO_ID = bytes(16)
RESERVED_IDS = (NO_ID, NO_ID[:-1] + b"\1")

ACCEPTED_COMPRESSION = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""The best one first: clients take the first that they know."""

NEVER = -1 << 62


class TelemetryClient:
    """A client that has asked, and when."""

    __slots__ = ("asked_ms", "may_ask_again", "pushed_ms", "terminated")

    def __init__(self) -> None:
        self.asked_ms = NEVER
        self.pushed_ms = NEVER
        self.may_ask_again = False
        """It was refused for what it learns by asking."""
        self.terminated = False


class Telemetry:
    """The clients that know what they are asked for; those that were silent longest are forgotten first."""

    def __init__(self, config: BrokerConfig, metrics: Metrics, clock: Clock, chance: Chance) -> None:
        self._metrics = metrics
        self._clock = clock
        self._chance = chance
        self._clients: OrderedDict[bytes, TelemetryClient] = OrderedDict()
        self._unsalted_id = 0
        self.bytes_pushed = 0
        self.configure(config)

    def __len__(self) -> int:
        return len(self._clients)

    def configure(self, config: BrokerConfig) -> None:
        """Ask for something else from now on."""
        self.max_bytes = config.telemetry_max_bytes
        self.wanted = config.ottla_telemetry_metrics
        self.interval_ms = config.ottla_telemetry_interval_ms
        before, self._unsalted_id = self._unsalted_id, crc32(f"{self.wanted} {self.interval_ms}".encode())
        if before != self._unsalted_id:
            # Everybody may ask at once for what is new.
            self._clients.clear()

    def subscription_id(self, instance_id: bytes) -> int:
        """The number of what is wanted of a client; it changes with that."""
        number = self._unsalted_id ^ crc32(instance_id)
        return number - (1 << 32) if number >= 1 << 31 else number

    def subscribe(self, instance_id: bytes) -> bytes:
        """A client asks what is wanted: its id, a new one if it has none yet."""
        if instance_id == NO_ID:
            instance_id = self._chance.uuid()
        client, now_ms = self._client(instance_id), self._clock.now_ms()
        too_early = now_ms - max(client.asked_ms, client.pushed_ms) < self.interval_ms
        if too_early and not client.may_ask_again:
            raise self._throttled()
        client.asked_ms = now_ms
        client.may_ask_again = False
        self._metrics.events["telemetry_asked"] += 1
        return instance_id

    def push(self, instance_id: bytes, subscription_id: int, terminating: bool, compression: int, size: int) -> None:
        """A client pushes so many bytes; KafkaError if it should not have."""
        if instance_id in RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "no client has this instance id; ask for one first")
        client = self._client(instance_id)
        try:
            self._check_push(client, instance_id, subscription_id, terminating, compression, size)
        except KafkaError as error:
            client.may_ask_again = error.code in _LEARNT_BY_ASKING
            self._metrics.events["telemetry_refused"] += 1
            raise
        finally:
            client.terminated = terminating
        client.may_ask_again = False
        self._metrics.events["telemetry_pushed"] += 1
        self.bytes_pushed += size

    def _check_push(
        self,
        client: TelemetryClient,
        instance_id: bytes,
        subscription_id: int,
        terminating: bool,
        compression: int,
        size: int,
    ) -> None:
        if client.terminated:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the push before this one was to be the last")
        now_ms = self._clock.now_ms()
        # Clients push for the first time at a random moment, so that they do not all come together.
        in_time = client.asked_ms > client.pushed_ms or now_ms - client.pushed_ms >= self.interval_ms
        if in_time:
            client.pushed_ms = now_ms
        elif not terminating:
            raise self._throttled()
        if subscription_id != self.subscription_id(instance_id):
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "something else is wanted by now; ask again")
        if compression and compression not in ACCEPTED_COMPRESSION:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression {compression} is not known")
        if size > self.max_bytes:
            message = f"{size} bytes are more than telemetry.max.bytes = {self.max_bytes}"
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, message)

    def _client(self, instance_id: bytes) -> TelemetryClient:
        client = self._clients.get(instance_id)
        if client is None:
            if len(self._clients) >= MOST_CLIENTS:
                self._clients.popitem(last=False)
            client = self._clients[instance_id] = TelemetryClient()
        self._clients.move_to_end(instance_id)
        return client

    def _throttled(self) -> KafkaError:
        self._metrics.events["telemetry_throttled"] += 1
        return KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, f"telemetry is wanted every {self.interval_ms} ms")


_LEARNT_BY_ASKING = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})
