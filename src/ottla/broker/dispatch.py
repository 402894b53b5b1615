"""From a frame to a handler, and from its answer to a reply."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from ottla.broker.apis import find_api, served_versions
from ottla.broker.request import Caller, Request
from ottla.wire.api.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.frame import decode_request, encode_response, read_request_prefix
from ottla.wire.schema import Bytes

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_API_VERSIONS = 18

Reply = list[Any] | None

log = logging.getLogger("ottla.broker")


class Dispatcher:
    """Answers frames. What cannot be answered in a format that the client surely reads closes the connection."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def handle(self, caller: Caller, frame: Bytes) -> Reply | Awaitable[Reply]:
        """Answer a frame: buffers to send now, None if there is no reply, or an awaitable of either."""
        prefix = read_request_prefix(frame)
        api = find_api(prefix.api_key)
        if api is None:
            raise ProtocolError(f"API key {prefix.api_key} is not served")
        if prefix.api_version not in api.versions:
            if prefix.api_key == _API_VERSIONS:
                return _unsupported_api_versions(prefix.correlation_id)
            raise ProtocolError(
                f"version {prefix.api_version} of API key {prefix.api_key} is not served, "
                f"{api.versions.first} to {api.versions.last} are"
            )
        header, body = decode_request(api.request, prefix.api_version, frame)
        request = Request(prefix.api_key, prefix.api_version, header.client_id, caller, body)
        answer = api.handler(self._broker, request)
        if answer is None:
            return None
        if asyncio.iscoroutine(answer):
            return _reply_later(answer, prefix.api_version, prefix.correlation_id)
        return encode_response(answer, prefix.api_version, correlation_id=prefix.correlation_id)


async def _reply_later(answer: Awaitable[Any], version: int, correlation_id: int) -> Reply:
    response = await answer
    return None if response is None else encode_response(response, version, correlation_id=correlation_id)


def _unsupported_api_versions(correlation_id: int) -> list[Any]:
    """The one answer to a version that is not known: in v0, which every client reads, with the versions that are."""
    versions = served_versions(_API_VERSIONS)
    offered = ApiVersion(api_key=_API_VERSIONS, min_version=versions.first, max_version=versions.last)
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[offered])
    return encode_response(response, 0, correlation_id=correlation_id)
