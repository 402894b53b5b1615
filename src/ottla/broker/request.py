"""What a handler is given, and what it gives back."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol


class Caller(Protocol):
    """The connection that a request came on."""

    peer: str
    host: str
    principal: str
    interrupt: Callable[[], object] | None


class Request(NamedTuple):
    """A decoded request, and who sent it."""

    api_key: int
    version: int
    client_id: str | None
    caller: Caller
    body: Any


Answer = Any | None | Awaitable[Any | None]
"""A response, None where the protocol has no reply, or an awaitable of either."""
