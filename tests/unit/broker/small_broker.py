"""A real broker without sockets: requests go through the codec of one version, a handler, and the codec again."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ottla.broker.apis import find_api
from ottla.broker.broker import Broker
from ottla.broker.logs import Logs
from ottla.broker.request import Request
from ottla.cluster.image import BrokerImage, Endpoint
from ottla.config.broker import BrokerConfig
from ottla.meta.catalog import Catalog
from ottla.meta.memory import open_memory
from ottla.metrics.clients import ClientCounters
from ottla.net.serving import ANONYMOUS
from ottla.ports import SystemChance, SystemClock, SystemDisk
from ottla.record.batch import Batch
from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.wire.api import response
from ottla.wire.api.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.compile import decode, encode
from ottla.wire.schema import schema_of

NODE_ID = 1


class Stranger:
    """Somebody who calls, of whom nothing is known."""

    peer = "127.0.0.1:50000"
    host = "127.0.0.1"
    principal = ANONYMOUS
    listener = "PLAINTEXT"
    security_protocol = "PLAINTEXT"
    client: ClientCounters | None = None
    context: Any = None
    interrupt: Callable[[], object] | None = None

    @property
    def identity(self) -> dict[str, str | None]:
        return {"address": self.peer, "principal": self.principal, "client_id": None}


class User(Stranger):
    """Somebody who has said who he is, and from where."""

    def __init__(self, name: str, host: str = "127.0.0.1") -> None:
        self.principal = f"User:{name}"
        self.host = host


def _node() -> BrokerImage:
    return BrokerImage(NODE_ID, {"PLAINTEXT": Endpoint("localhost", 9092)}, "rack-a")


class SmallBroker:
    """A broker with its logs in a folder and its catalog in memory."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._loop = asyncio.new_event_loop()
        self.broker = self._loop.run_until_complete(self._start(folder, settings))

    async def _start(self, folder: Path, settings: Mapping[str, str]) -> Broker:
        config = BrokerConfig({"log.dirs": str(folder), **settings})
        disk, clock, chance = SystemDisk(str(folder)), SystemClock(), SystemChance()
        catalog = await Catalog.open(open_memory().connect(), chance)
        image = (await catalog.load()).with_broker(_node())
        logs = Logs(disk, clock, config)
        return Broker(config, image.with_controller(NODE_ID), catalog, logs, disk=disk, clock=clock, chance=chance)

    def __enter__(self) -> "SmallBroker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run_until_complete(self.broker.groups.stop())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Have something done in the broker's event loop."""
        return self._loop.run_until_complete(work)

    def ask(self, body: object, version: int, caller: Stranger | None = None) -> Any:
        """The response to a request of one version, as a client of that version reads it."""
        key = schema_of(type(body)).key
        assert key is not None
        api = find_api(key)
        assert api is not None, f"API key {key} is not served"
        assert version in api.versions
        sent = decode(type(body), version, encode(body, version))
        return decode(
            response(key), version, encode(self._answer(api.handler, key, version, sent, caller or Stranger()), version)
        )

    def _answer(self, handler: Any, key: int, version: int, body: object, caller: Stranger) -> Any:
        async def run() -> Any:
            answer = handler(self.broker, Request(key, version, "client", caller, body))
            return await answer if inspect.isawaitable(answer) else answer

        return self._loop.run_until_complete(run())

    def create(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Create a topic, its configs with underscores for dots; its id."""
        asked = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
        )
        (created,) = self.ask(CreateTopicsRequest(topics=[asked]), 7).topics
        assert created.error_code == 0, created.error_message
        topic_id: bytes = created.topic_id
        return topic_id

    def append(self, topic: str, index: int = 0, count: int = 1, **batch: Any) -> None:
        """Append records to a partition, in a batch with these properties."""
        records = [Record(nth, 1_000 + nth, b"key", b"value") for nth in range(count)]
        partition = self.broker.leader(topic, index)
        partition.log.append_as_leader(Batch(bytearray(build_batch(records, **batch))), partition.leader_epoch)
