"""What can be done to a request and its reply.

An action is at most two functions, one for the request and one for the reply. Each takes the whole frame, size
included, and says which bytes pass, how late, and whether the connection ends with them. A test can make its own.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from ottla.wire import api
from ottla.wire.frame import decode_response, encode_response

_SIZE_AND_CORRELATION_ID = struct.Struct(">ii")
# A client counts its requests from 0 or 1, so it gets here after a billion of them.
_FAR_AWAY = 1 << 30


class Ending(Enum):
    """What becomes of a connection."""

    FIN = "closed"
    RST = "reset"
    SILENCE = "silent"
    """It stays open, and nothing comes through any more, either way."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, by which its reply is known too."""

    connection: int
    """Which connection, counted from 1 in the order in which clients made them."""
    sequence: int
    """Which request of the connection, counted from 1."""
    key: int
    version: int
    correlation_id: int

    @property
    def api(self) -> str:
        """The API's name, as Kafka writes it."""
        return api.api_name(self.key) if self.key in api.MODULES else f"API {self.key}"

    def __str__(self) -> str:
        return f"{self.api} v{self.version}, request {self.sequence} of connection {self.connection}"


class Passage(NamedTuple):
    """What passes of a frame."""

    data: bytes
    delay_ms: float = 0
    ending: Ending | None = None


Treatment = Callable[[Exchange, bytes], Passage]


@dataclass(frozen=True)
class Action:
    """Something that goes wrong with one request or its reply."""

    name: str
    """What the proxy counts it by."""
    on_request: Treatment | None = None
    on_reply: Treatment | None = None
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.detail}".rstrip()


def cut_request(after: int | float = 0, *, reset: bool = False) -> Action:
    """Let that much of a request through to the broker, then cut.

    Not a byte unless told otherwise. An int is a number of bytes, counted from the end if negative; a float is a part
    of the frame: with 1.0 the broker gets all of it, and the client never learns what came of it.
    """
    return Action("cut_request", on_request=_cut(after, reset), detail=_describe_cut(after, reset))


def cut_reply(after: int | float = 0, *, reset: bool = False) -> Action:
    """Wait until the broker has answered, let that much of its reply through to the client, then cut.

    With 1.0 the client gets all of it, and loses what it has asked since.
    """
    return Action("cut_reply", on_reply=_cut(after, reset), detail=_describe_cut(after, reset))


def every_cut() -> list[Action]:
    """Cuts at all points of an exchange that differ for one of the two sides."""
    points = (0, 3, 4, 0.5, -1, 1.0)
    return [cut(point, reset=reset) for cut in (cut_request, cut_reply) for point in points for reset in (False, True)]


def drop_reply() -> Action:
    """The reply never comes, and the connection stays."""
    return Action("drop_reply", on_reply=lambda exchange, frame: Passage(b""))


def duplicate_reply() -> Action:
    """The reply comes twice."""
    return Action("duplicate_reply", on_reply=lambda exchange, frame: Passage(frame + frame))


def stray_reply() -> Action:
    """Before the reply comes one to a request that nobody made."""

    def treat(exchange: Exchange, frame: bytes) -> Passage:
        body = b"who asked?"
        size = _SIZE_AND_CORRELATION_ID.size - 4 + len(body)
        return Passage(_SIZE_AND_CORRELATION_ID.pack(size, exchange.correlation_id ^ _FAR_AWAY) + body + frame)

    return Action("stray_reply", on_reply=treat)


def delay(*, request_ms: float = 0, reply_ms: float = 0) -> Action:
    """Hold up one request or its reply, and with it what comes after."""
    late_request: Treatment | None = (lambda exchange, frame: Passage(frame, request_ms)) if request_ms else None
    late_reply: Treatment | None = (lambda exchange, frame: Passage(frame, reply_ms)) if reply_ms else None
    return Action("delay", late_request, late_reply, f"by {request_ms:.0f} and {reply_ms:.0f} ms")


def black_hole() -> Action:
    """The request does not reach the broker, and nothing comes through on this connection any more; it stays open."""
    return Action("black_hole", on_request=lambda exchange, frame: Passage(b"", ending=Ending.SILENCE))


def edit_reply(edit: Callable[[Any], None]) -> Action:
    """Have the test change the decoded response: another error code, a leader that is none, fewer versions."""

    def treat(exchange: Exchange, frame: bytes) -> Passage:
        header, response = decode_response(api.response(exchange.key), exchange.version, frame[4:])
        edit(response)
        return Passage(
            b"".join(encode_response(response, exchange.version, correlation_id=header.correlation_id)),
        )

    return Action("edit_reply", on_reply=treat)


def _cut(after: int | float, reset: bool) -> Treatment:
    ending = Ending.RST if reset else Ending.FIN

    def treat(exchange: Exchange, frame: bytes) -> Passage:
        end = after if isinstance(after, int) else round(after * len(frame))
        return Passage(frame[:end], ending=ending)

    return treat


def _describe_cut(after: int | float, reset: bool) -> str:
    amount = f"{after} bytes" if isinstance(after, int) else f"{after:.0%}"
    return f"after {amount}, {'RST' if reset else 'FIN'}"
