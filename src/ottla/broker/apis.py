"""The APIs that are served: everything else is neither advertised nor answered.

A handler's module is imported when its API is first called, so that a broker starts without loading what nobody asks
for.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.broker.request import Answer, Request
from ottla.wire.api import MODULES, request
from ottla.wire.frame import request_decoder
from ottla.wire.header import RequestHeader
from ottla.wire.schema import Bytes, Versions, schema_of

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

Handler = Callable[["Broker", Request], Answer]

SERVED: Final = (
    *(0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 29, 30, 31, 32, 33),
    *(35, 36, 37, 42, 44, 47, 48, 49, 50, 51, 60, 61, 68, 69, 71, 72, 74, 75),
)
"""API keys in order."""

_LAST_STABLE: Final = {22: 5}
"""Versions after these are unstable in Kafka: the codec has them, a broker does not offer them."""


class Api(NamedTuple):
    """An API that is served, and the versions that are."""

    key: int
    versions: Versions
    request: type
    handler: Handler


class Route(NamedTuple):
    """A version of an API that is served: what reads its requests, and what answers them."""

    read: Callable[[Bytes], tuple[RequestHeader, Any]]
    handler: Handler


_routes: dict[tuple[int, int], Route] = {}


@cache
def served_versions(key: int) -> Versions:
    """The versions of an API that are served: all that there are, from the first one on."""
    versions = schema_of(request(key)).versions
    return Versions(versions.first, _LAST_STABLE.get(key, versions.last))


@cache
def find_api(key: int) -> Api | None:
    """The API of that key, or None if it is not served."""
    if key not in SERVED:
        return None
    module = import_module(f"ottla.broker.handle.{MODULES[key]}")
    return Api(key, served_versions(key), request(key), module.handle)


def find_route(key: int, version: int) -> Route | None:
    """Where a request goes, or None if its API or version is not served."""
    found = _routes.get((key, version))
    if found is None:
        api = find_api(key)
        # Nothing is kept of what is not served, for there is no end to what strangers make up.
        if api is not None and version in api.versions:
            found = _routes[key, version] = Route(request_decoder(api.request, version), api.handler)
    return found
