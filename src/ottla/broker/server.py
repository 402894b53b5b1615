"""A broker from start to stop: its data folder, its metadata, its logs, its listeners."""

import logging
from types import TracebackType

from ottla.broker.broker import Broker
from ottla.broker.dispatch import Dispatcher
from ottla.broker.logs import Logs
from ottla.broker.upkeep import Upkeep
from ottla.cluster.image import BrokerImage
from ottla.config.broker import BrokerConfig
from ottla.config.listener import ListenerAddress
from ottla.meta.catalog import Catalog
from ottla.meta.local import LocalHome
from ottla.meta.sqlite import open_sqlite
from ottla.net import Admission, Listener, Memory
from ottla.ports import Chance, Clock, SystemChance, SystemClock, SystemDisk
from ottla.wire.errors import ErrorCode, KafkaError

METADATA_FILE = "metadata.sqlite"

log = logging.getLogger("ottla.broker")


class Server:
    """A broker that listens.

    >>> import asyncio, tempfile
    >>> async def start_and_stop() -> bool:
    ...     settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": tempfile.mkdtemp()}
    ...     async with Server(BrokerConfig(settings)) as server:
    ...         return server.port > 0
    >>> asyncio.run(start_and_stop())
    True
    """

    def __init__(self, config: BrokerConfig, *, clock: Clock | None = None, chance: Chance | None = None) -> None:
        self.config = config
        self.clock = clock or SystemClock()
        self.chance = chance or SystemChance()
        self.host = ""
        self.port = 0
        self.broker: Broker | None = None
        self._disk = SystemDisk(config.data_folder)
        self._metadata: LocalHome | None = None
        self._listeners: list[Listener] = []
        self._upkeep: Upkeep | None = None

    @property
    def address(self) -> str:
        """Host and port that clients are told, of the first listener."""
        return f"{self.host}:{self.port}"

    async def start(self) -> None:
        """Take the data folder, recover what has to be, and listen."""
        try:
            self._disk.lock()
        except BlockingIOError as error:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"the data folder {self._disk.root} is in use by another broker; give this one a folder of its own",
            ) from error
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        self._metadata = await open_sqlite(f"{self._disk.root}/{METADATA_FILE}")
        catalog = await Catalog.open(self._metadata.connect(), self.chance)
        image = await catalog.load()
        self.config = self.config.with_dynamic(
            default=await catalog.load_broker_configs(None),
            own=await catalog.load_broker_configs(self.config.node_id),
        )
        logs = Logs(self._disk, self.clock, self.config, self.chance)
        await logs.recover(image)
        broker = Broker(self.config, image, catalog, logs, disk=self._disk, clock=self.clock, chance=self.chance)
        self.broker = broker
        broker.groups.start()
        dispatcher = Dispatcher(broker)
        admission = Admission()
        memory = Memory(self.config.queued_max_request_bytes)

        def limit(config: BrokerConfig) -> None:
            admission.limit, admission.limit_per_host = config.max_connections, config.max_connections_per_ip

        limit(self.config)
        broker.when_reconfigured.append(limit)
        for address in self.config.listener_addresses():
            listener = Listener(
                dispatcher.handle,
                max_request_bytes=self.config.socket_request_max_bytes,
                idle_ms=self.config.connections_max_idle_ms,
                admission=admission,
                memory=memory,
            )
            self._listeners.append(listener)
            await listener.start(address.host, address.port)
        self.host, self.port = self._advertised()
        node = BrokerImage(broker.node_id, self.host, self.port, self.config.broker_rack)
        broker.image = broker.image.with_broker(node).with_controller(broker.node_id)
        self._upkeep = Upkeep(broker)
        self._upkeep.start()

    def _advertised(self) -> tuple[str, int]:
        host, port = self._listeners[0].address
        advertised: ListenerAddress | None = next(iter(self.config.advertised_addresses()), None)
        if advertised is not None:
            return advertised.host, advertised.port or port
        # Somebody who listens everywhere is reached at least from here.
        return (host if host not in ("", "0.0.0.0", "::") else "localhost"), port

    async def stop(self) -> None:
        """Finish what is under way, write everything down, and give the data folder back."""
        if self._upkeep is not None:
            await self._upkeep.stop()
        if self.broker is not None:
            await self.broker.groups.stop()
            self.broker.logs.wake_all()
        for listener in self._listeners:
            await listener.stop()
        if self.broker is not None:
            await self.broker.logs.close()
            self.broker = None
        if self._metadata is not None:
            await self._metadata.close()
            self._metadata = None
        self._disk.unlock()

    async def __aenter__(self) -> "Server":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
