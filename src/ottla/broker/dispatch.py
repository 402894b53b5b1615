"""From a frame to a handler, and from its answer to a reply."""

import logging
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.apis import find_api, find_route, served_versions
from ottla.broker.audit import AUDITED, record_request
from ottla.broker.request import Client, Request
from ottla.broker.stopwatch import Stopwatch
from ottla.metrics.clients import ClientCounters
from ottla.net.serving import ANONYMOUS
from ottla.wire.api.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.frame import encode_response, read_request_prefix
from ottla.wire.schema import Bytes

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_API_VERSIONS: Final = 18
_OF_STRANGERS: Final = frozenset({17, _API_VERSIONS, 36})
"""What is answered before a login."""
LONGEST_PAUSE_MS: Final = 2**31 - 1

Reply = list[Any] | None

log = logging.getLogger("ottla.broker")


class Dispatcher:
    """Answers frames. What cannot be answered in a format that the client surely reads closes the connection."""

    def __init__(self, broker: "Broker", *, counting: bool = True) -> None:
        """Without `counting` nothing is noted of requests, so that bench/metrics.py can tell what that costs."""
        self._broker = broker
        self._counting = counting
        self._metrics = broker.metrics
        self._quotas = broker.quotas
        self._monotonic = broker.metrics.monotonic
        self._answered = broker.metrics.answered
        self._done_at = 0.0

    def handle(self, caller: Client, frame: Bytes) -> Reply | Awaitable[Reply]:
        """Answer a frame: buffers to send now, None if there is no reply, or an awaitable of either."""
        api_key, version, correlation_id = read_request_prefix(frame)
        route = find_route(api_key, version)
        if route is None:
            return _not_served(api_key, version, correlation_id)
        read, handler = route
        header, body = read(frame)
        client_id = header.client_id
        request = Request(api_key, version, client_id, caller, body)
        client = caller.client
        if client is None or caller.client_id != client_id:
            caller.client_id = client_id
            is_stranger = caller.stranger_since is not None
            client = self._metrics.clients.enter(caller, client_id, as_stranger=is_stranger)
        answer: Any = handler(self._broker, request)
        # Not `asyncio.iscoroutine`, which takes ten times as long to say no; compiled coroutines have their own types.
        if hasattr(answer, "__await__"):
            return self._reply_later(answer, caller, request, correlation_id, client, len(frame), caller.active_at)
        if self._quotas.active:
            # Requests that came together arrived at one time, but the later ones' turn came when the earlier were done.
            begun, self._done_at = max(caller.active_at, self._done_at), self._monotonic()
            self._hold_back(caller, request, answer, len(frame), self._done_at - begun)
        reply = None if answer is None else encode_response(answer, version, correlation_id=correlation_id)
        if self._counting:
            self._answered(api_key, client, len(frame), answer, reply, caller.active_at)
        if api_key in AUDITED:
            record_request(request, answer)
        return reply

    async def _reply_later(
        self,
        answer: Coroutine[Any, Any, Any],
        caller: Client,
        request: Request,
        correlation_id: int,
        client: ClientCounters,
        size: int,
        begun: float,
    ) -> Reply:
        api = self._metrics.apis[request.api_key]
        api.waiting += 1
        stopwatch = Stopwatch(self._monotonic)
        try:
            response = await (stopwatch.run(answer) if self._quotas.active else answer)
        finally:
            api.waiting -= 1
        if self._quotas.active:
            self._hold_back(caller, request, response, size, stopwatch.seconds)
        reply = None if response is None else encode_response(response, request.version, correlation_id=correlation_id)
        if self._counting:
            self._answered(request.api_key, client, size, response, reply, begun)
        if request.api_key in AUDITED:
            record_request(request, response)
        return reply

    def _hold_back(self, caller: Client, request: Request, response: Any, size: int, busy_s: float) -> None:
        """Have a client pause that has used more than it may, and tell it."""
        if request.api_key in _OF_STRANGERS and caller.principal == ANONYMOUS:
            # Before they have names, all would share one allowance: whoever wastes it would keep the others out.
            return
        pause_s = self._quotas.used(request, size, response, busy_s)
        if pause_s <= 0:
            return
        self._metrics.events["throttled"] += 1
        if hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = min(int(pause_s * 1000) + 1, LONGEST_PAUSE_MS)
        caller.mute(min(pause_s, LONGEST_PAUSE_MS / 1000))


def _not_served(api_key: int, version: int, correlation_id: int) -> list[Any]:
    """The one answer to a version that is not known: in v0, which every client reads, with the versions that are."""
    if find_api(api_key) is None:
        raise ProtocolError(f"API key {api_key} is not served")
    versions = served_versions(api_key)
    if api_key != _API_VERSIONS:
        raise ProtocolError(
            f"version {version} of API key {api_key} is not served, {versions.first} to {versions.last} are"
        )
    offered = ApiVersion(api_key=_API_VERSIONS, min_version=versions.first, max_version=versions.last)
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[offered])
    return encode_response(response, 0, correlation_id=correlation_id)
