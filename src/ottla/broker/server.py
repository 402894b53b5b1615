"""A broker from start to stop: its data folder, its metadata, its logs, its listeners."""

import asyncio
import logging
from types import TracebackType
from typing import TYPE_CHECKING

from ottla import native
from ottla.broker import dispatch
from ottla.broker.authentication import Gates
from ottla.broker.broker import Broker
from ottla.broker.dispatch import Dispatcher
from ottla.broker.logs import Logs
from ottla.broker.tls import ListenersTls
from ottla.broker.upkeep import Upkeep
from ottla.cluster.image import BrokerImage, Endpoint
from ottla.config.address import parse_limits
from ottla.config.broker import BrokerConfig
from ottla.config.listener import parse_listener
from ottla.meta.catalog import Catalog
from ottla.meta.local import LocalHome
from ottla.meta.sqlite import open_sqlite
from ottla.net.admission import Admission
from ottla.net.listener import Listener
from ottla.net.memory import Memory
from ottla.net.porter import Porter
from ottla.ports import Chance, Clock, SystemChance, SystemClock, SystemDisk
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.sight import Sight

METADATA_FILE = "metadata.sqlite"

log = logging.getLogger("ottla.broker")

native.expect_compiled(dispatch)


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
        self.endpoints: dict[str, Endpoint] = {}
        """The addresses that clients are told, by the names of the listeners; the first one first."""
        self.broker: Broker | None = None
        self._disk = SystemDisk(config.data_folder)
        self._metadata: LocalHome | None = None
        self._listeners: list[Listener] = []
        self._tls = ListenersTls(self.clock)
        self._upkeep: Upkeep | None = None
        self._gates: Gates | None = None
        self._porter: Porter | None = None
        self.sight: Sight | None = None
        """The port for metrics and health checks, if there is to be one."""

    @property
    def ports(self) -> dict[str, int]:
        """Where it listens, by the names of the listeners."""
        return {listener.name: listener.address[1] for listener in self._listeners}

    @property
    def host(self) -> str:
        """The host that clients of the first listener are told."""
        return next(iter(self.endpoints.values())).host

    @property
    def port(self) -> int:
        """The port that clients of the first listener are told."""
        return next(iter(self.endpoints.values())).port

    @property
    def address(self) -> str:
        """Host and port that clients of the first listener are told."""
        return str(next(iter(self.endpoints.values())))

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
            await self._open_sight()
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _open_sight(self) -> None:
        if self.config.ottla_metrics_listen is None:
            return
        where = parse_listener("ottla.metrics.listen", self.config.ottla_metrics_listen)
        # Here, for those who want it: HTTP takes a while to load.
        from ottla.broker.sight import Sight

        self.sight = Sight(where.host, where.port, self.clock)
        await self.sight.open()
        log.info("metrics at http://%s/metrics", self.sight.address)
        self.sight.status = "recovering"

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
        await broker.users.load()
        await broker.quotas.load()
        dispatcher = Dispatcher(broker)
        self._gates = gates = Gates(broker, dispatcher.handle)
        admission = Admission()
        admission.too_often = broker.quotas.refusal
        memory = Memory(self.config.queued_max_request_bytes)
        self._porter = porter = Porter.of(asyncio.get_running_loop(), self.clock.monotonic)

        def limit(config: BrokerConfig) -> None:
            admission.limit, admission.limit_per_host = config.max_connections, config.max_connections_per_ip
            admission.limits_of_hosts = parse_limits(config.max_connections_per_ip_overrides)
            broker.quotas.limit_connections(config.max_connection_creation_rate)

        limit(self.config)
        broker.when_reconfigured.append(limit)
        broker.preparations.append(self._tls.prepare)
        for address in self.config.listener_addresses():
            protocol = self.config.listener_protocol(address.name)
            needs_login = protocol.startswith("SASL")
            listener = Listener(
                gates.handler(address.name) if needs_login else dispatcher.handle,
                name=address.name,
                security_protocol=protocol,
                max_request_bytes=self.config.socket_request_max_bytes,
                stranger_request_bytes=gates.most_bytes(address.name) if needs_login else None,
                idle_ms=self.config.connections_max_idle_ms,
                admission=admission,
                memory=memory,
                monotonic=self.clock.monotonic,
                porter=porter,
                tls=await self._tls.add(address.name, self.config) if protocol.endswith("SSL") else None,
            )
            self._listeners.append(listener)
            await listener.start(address.host, address.port)
            self.endpoints = {**self.endpoints, address.name: self._advertised(listener)}
            node = BrokerImage(broker.node_id, self.endpoints, self.config.broker_rack)
            broker.image = broker.image.with_broker(node).with_controller(broker.node_id)
        self._tls.watch(self.config.ssl_refresh_interval_ms)
        self._upkeep = Upkeep(broker)
        self._upkeep.start()
        if self.sight is not None:
            from ottla.broker.gauges import Gauges

            self.sight.gauges = Gauges(broker, self._listeners, memory)
            self.sight.status = self.sight.READY

    def _advertised(self, listener: Listener) -> Endpoint:
        """Where clients of a listener are told to connect to."""
        host, port = listener.address
        for advertised in self.config.advertised_addresses():
            if advertised.name == listener.name:
                return Endpoint(advertised.host, advertised.port or port)
        # Somebody who listens everywhere is reached at least from here.
        return Endpoint(host if host not in ("", "0.0.0.0", "::") else "localhost", port)

    async def stop(self) -> None:
        """Finish what is under way, write everything down, and give the data folder back."""
        if self.sight is not None:
            self.sight.status = "stopping"
        if self._upkeep is not None:
            await self._upkeep.stop()
        if self.broker is not None:
            await self.broker.groups.stop()
            self.broker.logs.wake_all()
        for listener in self._listeners:
            await listener.stop()
        if self._porter is not None:
            self._porter.stop()
            self._porter = None
        await self._tls.close()
        if self._gates is not None:
            self._gates.close()
        if self.broker is not None:
            await self.broker.logs.close()
            self.broker = None
        if self._metadata is not None:
            await self._metadata.close()
            self._metadata = None
        if self.sight is not None:
            await self.sight.close()
            self.sight = None
        self._disk.unlock()

    async def __aenter__(self) -> "Server":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
