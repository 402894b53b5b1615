"""The admin client: one face for all that can be asked of and changed in a cluster."""

from types import TracebackType
from typing import Self, Unpack

from ottla.client.admin.acls import AclAdmin
from ottla.client.admin.cluster import ClusterAdmin
from ottla.client.admin.configs import ConfigAdmin
from ottla.client.admin.group_progress import GroupProgressAdmin
from ottla.client.admin.groups import GroupAdmin
from ottla.client.admin.quotas import QuotaAdmin
from ottla.client.admin.records import RecordAdmin
from ottla.client.admin.replicas import ReplicaAdmin
from ottla.client.admin.topics import TopicAdmin
from ottla.client.admin.users import UserAdmin
from ottla.client.cluster import Cluster
from ottla.client.options import BootstrapServers, ClientOptions
from ottla.client.unstopped import warn_unstopped
from ottla.net.security import SecurityOptions, security_of, takes_security
from ottla.ports import Chance


class Admin(
    TopicAdmin,
    ConfigAdmin,
    GroupAdmin,
    GroupProgressAdmin,
    RecordAdmin,
    ReplicaAdmin,
    UserAdmin,
    AclAdmin,
    QuotaAdmin,
    ClusterAdmin,
):
    """Looks at a cluster and changes it: topics, configs, groups, offsets, records, replicas, brokers.

    >>> async def make_topic(bootstrap_servers: str) -> list[str]:
    ...     async with Admin(bootstrap_servers) as admin:
    ...         await admin.create_topics([NewTopic("orders", num_partitions=3)])
    ...         return await admin.list_topics()
    >>> import asyncio
    >>> from ottla.testing import TestBroker
    >>> with TestBroker() as broker:
    ...     asyncio.run(make_topic(broker.bootstrap_servers))
    ['orders']

    The examples of the methods are shorter: `run(lambda admin: ...)` there stands for the same with a fresh broker.

    **Where to ask.** Requests go to the controller, to the leaders of partitions, to the coordinators of groups, or to
    brokers that are named. What may succeed later or elsewhere is tried again until twice `request_timeout_ms` has
    passed, or `timeout_ms` where a method takes it. docs/client.md has a table of all options.

    **What comes back.** What is asked for by name comes back as a dict by that name; methods that only change something
    return nothing.

    **What fails.** A method that concerns several things does all that it can, and then raises if anything failed: for
    one thing the `KafkaError` that says which and why, for several a `SeveralFailedError`, whose `failures` has the
    error of each. What the broker does not offer is an `UNSUPPORTED_VERSION` that names the API.
    """

    _is_started = False

    @takes_security
    def __init__(
        self,
        bootstrap_servers: BootstrapServers = "localhost:9092",
        *,
        client_id: str = "ottla",
        request_timeout_ms: int = 30_000,
        retry_backoff_ms: int = 100,
        retry_backoff_max_ms: int = 1_000,
        reconnect_backoff_ms: int = 50,
        reconnect_backoff_max_ms: int = 1_000,
        connections_max_idle_ms: int = 540_000,
        metadata_max_age_ms: int = 300_000,
        chance: Chance | None = None,
        **security: Unpack[SecurityOptions],
    ) -> None:
        options = ClientOptions(
            bootstrap_servers=bootstrap_servers,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            retry_backoff_max_ms=retry_backoff_max_ms,
            reconnect_backoff_ms=reconnect_backoff_ms,
            reconnect_backoff_max_ms=reconnect_backoff_max_ms,
            connections_max_idle_ms=connections_max_idle_ms,
            metadata_max_age_ms=metadata_max_age_ms,
            security=security_of(security, "Admin"),
        )
        super().__init__(Cluster(options, chance=chance))

    async def start(self) -> Self:
        """Connect to the cluster, so that a wrong address is told at once. `async with` does it.

        >>> import asyncio
        >>> asyncio.run(Admin("127.0.0.1:1").start())  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ottla.errors.BrokerUnreachableError: NETWORK_EXCEPTION: cannot connect to 127.0.0.1:1: ...
        """
        try:
            await self._cluster.retrying(lambda: self._cluster.metadata([]))
        except BaseException:
            await self.stop()
            raise
        self._is_started = True
        return self

    async def stop(self) -> None:
        """Close all connections. `async with` does it.

        >>> run(lambda admin: admin.stop())
        """
        self._is_started = False
        await self._cluster.close()

    def __del__(self) -> None:
        if self._is_started:
            warn_unstopped(self)

    async def close(self) -> None:
        """The same as `stop`.

        >>> run(lambda admin: admin.close())
        """
        await self.stop()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
