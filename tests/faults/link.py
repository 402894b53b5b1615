"""One client's connection, and the one to the broker that stands behind it."""

import asyncio
import socket
import struct
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

from ottla.wire.errors import ProtocolError
from ottla.wire.frame import read_request_prefix
from tests.interop.frames import FrameReader

from .actions import Ending, Exchange, Passage, Treatment
from .journal import Journal
from .lane import Lane, Traffic
from .rules import Fault

CONNECT_SECONDS = 5.0
PARTING_SECONDS = 0.2
LARGEST_FRAME = 128 << 20
READ_BYTES = 1 << 16
# Requests with acks=0 have no reply, and would pile up.
MOST_PENDING = 10_000

_SIZE = struct.Struct(">i")
_LINGER_NOT = struct.pack("ii", 1, 0)

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ActionFailedError(Exception):
    """An action could not be carried out, perhaps because a function of the test is wrong."""


class Surroundings(Protocol):
    """What a link asks its proxy."""

    journal: Journal
    traffic: Traffic

    def see(self, exchange: Exchange, frame: bytes) -> None:
        """A request has come."""
        ...

    def choose(self, exchange: Exchange) -> Fault | None:
        """What a request is in for."""
        ...

    def delays_ms(self, exchange: Exchange) -> tuple[float, float]:
        """How late a request and its reply are, whatever else happens to them."""
        ...

    def lead_back(self, exchange: Exchange, frame: bytes) -> bytes:
        """A reply in which all brokers have the proxy's addresses."""
        ...


class Link:
    """Takes frames from either side to the other, and treats them as it is told."""

    def __init__(self, surroundings: Surroundings, number: int, client: socket.socket, broker: tuple[str, int]) -> None:
        self._surroundings = surroundings
        self._journal = surroundings.journal
        self._number = number
        self._client = client
        self._address = broker
        self._pending: deque[tuple[Exchange, Fault | None, float]] = deque(maxlen=MOST_PENDING)
        self._sequence = 0
        self._last_sequence = sys.maxsize
        self._due: dict[Exchange, Fault] = {}
        self._silent = False
        self._ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    def end(self, ending: Ending) -> None:
        """End the connection, or make it dumb."""
        if ending is Ending.SILENCE:
            self._silent = True
        elif not self._ended.done():
            self._ended.set_result(ending)

    async def run(self) -> None:
        """Live until somebody closes or is cut."""
        client = await asyncio.open_connection(sock=self._client)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                broker = await asyncio.open_connection(*self._address)
        except OSError as error:
            self._journal.note(f"connection {self._number} reset: no broker at {self._address}: {error}")
            await _hang_up(client, Ending.RST)
            return
        requests = Lane(broker[1], self._surroundings.traffic, self.end)
        replies = Lane(client[1], self._surroundings.traffic, self.end)
        tasks = [
            asyncio.create_task(self._guard(work))
            for work in (
                partial(self._carry, client[0], requests, self._treat_request),
                partial(self._carry, broker[0], replies, self._treat_reply),
                requests.run,
                replies.run,
            )
        ]
        try:
            ending = await self._ended
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for exchange in list(self._due):
            self._excuse(exchange)
        self._journal.note(f"connection {self._number} {ending.value}")
        # What has reached the broker is the broker's: only the client sees a reset.
        await asyncio.gather(_hang_up(client, ending), _hang_up(broker, Ending.FIN))

    async def _guard(self, work: Callable[[], Awaitable[None]]) -> None:
        """A side that is gone takes the other with it."""
        try:
            await work()
        except OSError:
            self.end(Ending.RST)
        except ProtocolError as error:
            self._journal.note(f"connection {self._number} carries no frames: {error}")
            self.end(Ending.RST)
        except Exception as error:  # noqa: BLE001 - raised where the test closes the proxy
            self._journal.failures.append(error)
            self.end(Ending.RST)

    async def _carry(
        self, reader: asyncio.StreamReader, lane: Lane, treat: Callable[[Lane, bytes], Awaitable[None]]
    ) -> None:
        async for frame in _frames(reader):
            if not self._silent:
                await treat(lane, frame)
        if self._silent:
            self.end(Ending.FIN)
        else:
            await lane.put(Passage(b"", ending=Ending.FIN))

    async def _treat_request(self, lane: Lane, frame: bytes) -> None:
        if self._sequence > self._last_sequence:
            # The connection ends with the one before.
            return
        self._sequence += 1
        exchange = Exchange(self._number, self._sequence, *read_request_prefix(frame[_SIZE.size :]))
        self._journal.requests[exchange.api] += 1
        self._surroundings.see(exchange, frame)
        fault = self._surroundings.choose(exchange)
        request_delay_ms, reply_delay_ms = self._surroundings.delays_ms(exchange)
        if fault is not None:
            self._due[exchange] = fault
        self._pending.append((exchange, fault, reply_delay_ms))
        passage = _treated(exchange, frame, request_delay_ms, fault and fault.action.on_request)
        if passage.ending is not None:
            self._last_sequence = exchange.sequence - 1
        # An action that has something for both is done when the reply is through.
        await lane.put(passage, self._note(exchange, fault, fault and fault.action.on_reply is None))

    async def _treat_reply(self, lane: Lane, frame: bytes) -> None:
        found = self._answered(frame)
        if found is None:
            self._journal.note(f"connection {self._number}: the broker answers what it was not asked")
            await lane.put(Passage(frame))
            return
        exchange, fault, delay_ms = found
        if exchange.sequence > self._last_sequence:
            # The connection ends with its request, even if the broker is quick.
            return
        frame = self._surroundings.lead_back(exchange, frame)
        passage = _treated(exchange, frame, delay_ms, fault and fault.action.on_reply)
        await lane.put(passage, self._note(exchange, fault, fault and fault.action.on_reply is not None))

    def _answered(self, frame: bytes) -> tuple[Exchange, Fault | None, float] | None:
        """Which request this is the reply to. Brokers answer in order, so those before it get none."""
        (correlation_id,) = _SIZE.unpack_from(frame, _SIZE.size)
        if not any(exchange.correlation_id == correlation_id for exchange, _, _ in self._pending):
            return None
        while True:
            found = self._pending.popleft()
            if found[0].correlation_id == correlation_id:
                return found
            self._excuse(found[0])

    def _note(self, exchange: Exchange, fault: Fault | None, done: bool | None) -> Callable[[], None] | None:
        return partial(self._happened, exchange, fault) if fault is not None and done else None

    def _happened(self, exchange: Exchange, fault: Fault) -> None:
        self._due.pop(exchange, None)
        self._journal.happened(exchange, fault)

    def _excuse(self, exchange: Exchange) -> None:
        """A fault can no longer happen to this request, and is left to another."""
        fault = self._due.pop(exchange, None)
        if fault is not None and fault.rule is not None:
            fault.rule.taken -= 1


def _treated(exchange: Exchange, frame: bytes, delay_ms: float, treatment: Treatment | None) -> Passage:
    if treatment is None:
        return Passage(frame, delay_ms)
    try:
        passage = treatment(exchange, frame)
    except Exception as error:
        raise ActionFailedError(f"{exchange}: {error!r}") from error
    return passage._replace(delay_ms=passage.delay_ms + delay_ms)


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Whole frames, sizes included, until the peer closes."""
    frames = FrameReader(LARGEST_FRAME)
    while data := await reader.read(READ_BYTES):
        for frame in frames.feed(data):
            yield _SIZE.pack(len(frame)) + frame


async def _hang_up(stream: Stream, ending: Ending) -> None:
    reader, writer = stream
    if ending is Ending.RST:
        # It may be closed already, if the peer was sooner.
        with suppress(OSError):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        writer.transport.abort()
    else:
        with suppress(OSError):
            writer.write_eof()
            # A socket that is closed with bytes unread is reset.
            async with asyncio.timeout(PARTING_SECONDS):
                while await reader.read(READ_BYTES):
                    pass
        writer.close()
    with suppress(OSError):
        await writer.wait_closed()
