"""The heartbeats of a member of the classic protocol, from one rebalance to the next."""

import asyncio
import logging
from collections.abc import Callable

from ottla.client.cluster import Cluster
from ottla.client.consumer.membership.heartbeat import Pulse
from ottla.client.consumer.membership.identity import Identity
from ottla.client.consumer.membership.options import GroupOptions
from ottla.client.consumer.membership.tasks import spawn, stop
from ottla.client.consumer.signal import Signal
from ottla.client.coordinators import Coordinators
from ottla.client.errors import check
from ottla.net import Connection
from ottla.wire.api.heartbeat import HeartbeatRequest
from ottla.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

Tell = Callable[[Identity, KafkaError | None], None]
"""Gets what the coordinator has against a member; None if it was silent until the session had ended."""


class Heart:
    """Beats for a member in one generation, until it is stopped or the member has no place in the group any more."""

    def __init__(
        self, cluster: Cluster, coordinators: Coordinators, options: GroupOptions, identity: Identity, tell: Tell
    ) -> None:
        self._cluster = cluster
        self._coordinators = coordinators
        self._options = options
        self._identity = identity
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        interval_s, session_s = options.heartbeat_interval_ms / 1000, options.session_timeout_ms / 1000
        self._pulse = Pulse(interval_s, session_s, self._loop.time())
        self._urgent = Signal()
        self._task: asyncio.Task[None] | None = None

    def start(self, report: Callable[[BaseException], None]) -> None:
        """Begin to beat."""
        self._task = spawn(self._run(), report)

    async def stop(self) -> None:
        """Beat no more."""
        await stop([self._task])

    def hurry(self) -> None:
        """Beat at once, to hear what the coordinator has to say."""
        self._pulse.hurry(self._loop.time())
        self._urgent.notify()

    @property
    def has_ended(self) -> bool:
        """Whether the session has ended, also while nothing is sent."""
        return self._pulse.has_ended(self._loop.time())

    async def _run(self) -> None:
        pulse, now = self._pulse, self._loop.time
        while not pulse.has_ended(now()):
            while (wait_s := min(pulse.wait_s(now()), pulse.left_s(now()))) > 0:
                await self._urgent.wait(wait_s)
            try:
                async with asyncio.timeout(pulse.left_s(now())):
                    await self._coordinators.ask(self._options.group_id, self._send)
                pulse.answered(now())
            except TimeoutError:
                continue
            except KafkaError as error:
                if error.code is ErrorCode.REBALANCE_IN_PROGRESS:
                    pulse.answered(now())
                    self._tell(self._identity, error)
                elif error.retriable:
                    log.info("group %r: no heartbeat: %s", self._options.group_id, error)
                    pulse.failed(now(), self._cluster.backoff_s(pulse.failures + 1))
                else:
                    self._tell(self._identity, error)
                    return
        self._tell(self._identity, None)

    async def _send(self, connection: Connection) -> None:
        identity, options = self._identity, self._options
        request = HeartbeatRequest(
            group_id=options.group_id,
            generation_id=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id,
        )
        timeout_ms = min(self._cluster.request_timeout_ms, options.session_timeout_ms)
        response = await connection.request(request, timeout_ms=timeout_ms)
        check(response.error_code, f"heartbeat of {identity.member_id!r} in group {options.group_id!r}")
