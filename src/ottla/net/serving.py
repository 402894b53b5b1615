"""One client's connection, as the broker has it: frames in, replies out, one at a time and in order."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from ottla.metrics.clients import LONGEST_ID, ClientCounters
from ottla.net.memory import READ_BYTES, SMALL_BYTES
from ottla.net.pacing import stop_pacing_if_near
from ottla.net.receiving import Receiver
from ottla.net.sending import Sendable, Sender
from ottla.wire.errors import ProtocolError

if TYPE_CHECKING:
    from ottla.net.listener import Listener

Answer = list[Sendable] | None
"""The buffers of a reply, or None where none is sent."""

Reply = Answer | Awaitable[Answer]
"""An answer, now or later."""

Frame = bytes | bytearray
"""A request. One in a bytearray is the handler's, to write to as it likes."""

Handler = Callable[["ServerConnection", Frame], Reply]
"""What a frame is given to. ProtocolError closes the connection, and so does any other exception, with a traceback."""

MOST_FRAMES_WAITING = 8
MOST_BYTES_WAITING = 4 * 1024 * 1024
"""Beyond either, nothing more is read from a connection until its replies catch up."""

ANONYMOUS = "User:ANONYMOUS"
"""Somebody of whom nothing is known."""

FRAMES_PER_TURN = 32
"""How many frames of one connection are handled before the event loop looks after the others."""

log = logging.getLogger(__name__)


class ServerConnection(asyncio.BufferedProtocol):
    """A client at the other end of a socket.

    A reply that is ready goes out before `buffer_updated` returns, without a task. While one is not, later frames wait;
    too many of them, and reading stops.
    """

    __slots__ = (
        "_busy",
        "_finishing",
        "_handle",
        "_listener",
        "_loop",
        "_memory",
        "_mute_timer",
        "_now",
        "_paused",
        "_pending",
        "_receiver",
        "_sender",
        "_transport",
        "_unfinished_since",
        "_waiting",
        "active_at",
        "bytes_handled",
        "bytes_waiting",
        "client",
        "client_id",
        "context",
        "host",
        "interrupt",
        "peer",
        "principal",
        "stranger_since",
    )

    _transport: asyncio.Transport
    _sender: Sender

    def __init__(self, listener: "Listener", loop: asyncio.AbstractEventLoop) -> None:
        self._listener = listener
        self._loop = loop
        self._now = listener.monotonic or loop.time
        self._handle = listener.handler
        self._memory = listener.memory
        self._receiver = Receiver(listener.stranger_request_bytes, listener.scratch)
        self._waiting: deque[Frame] = deque()
        self._pending: asyncio.Future[Answer] | None = None
        self._busy = False
        self._paused = False
        self._mute_timer: asyncio.TimerHandle | None = None
        self._finishing = False
        self._unfinished_since: float | None = None
        self.bytes_waiting = 0
        """Bytes of requests that have arrived and are not handled yet, parts of requests included."""
        self.bytes_handled = 0
        """Bytes of the request whose reply is waited for."""
        self.active_at = self._now()
        """When something last arrived or left, or the turn of a request came that had arrived before."""
        self.host = ""
        self.peer = ""
        """The client's address, as `host:port`."""
        self.stranger_since = self._now() if listener.has_strangers else None
        """Since when nothing is known of a client that is to say who it is."""
        self.principal = ANONYMOUS
        """Who the client is, as access rules name it."""
        self.client: ClientCounters | None = None
        """What is counted for this client; whoever handles its requests says which."""
        self.client_id: str | None = None
        """What it calls itself, which need not be what it is counted as; said by the same."""
        self.context: Any = None
        """The handler's own: what it has to remember of this client."""
        self.interrupt: Callable[[], object] | None = None
        """What to call if the client goes away before its request is answered. A handler that only waits, as a fetch
        does, sets it to end its waiting; any other handler runs to its end, and its answer is dropped. It holds for one
        request."""

    @property
    def listener(self) -> str:
        """The name of the listener that it came in through."""
        return self._listener.name

    @property
    def security_protocol(self) -> str:
        """What that listener asks of its clients: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        return self._listener.security_protocol

    @property
    def identity(self) -> dict[str, str | None]:
        """Who the client is, as structured logs have it."""
        client_id = None if self.client_id is None else self.client_id[:LONGEST_ID]
        return {"address": self.peer, "principal": self.principal, "client_id": client_id}

    def trust(self) -> None:
        """Take requests as large as those of anybody who is known, for as long as the client likes."""
        self.stranger_since = None
        if self.client is not None:
            # It is counted under its own name from now on.
            self.client.leave()
            self.client = None
        self._receiver.max_size = self._listener.max_request_bytes

    def mute(self, seconds: float) -> None:
        """Take nothing more of this client for so long: it has used what it may. Replies leave all the same."""
        if self._mute_timer is not None:
            self._mute_timer.cancel()
        self._mute_timer = self._loop.call_later(seconds, self._unmute)
        self._pause_reading()

    def _unmute(self) -> None:
        if self._mute_timer is not None:
            self._mute_timer.cancel()
            self._mute_timer = None
        if not self._busy and not self._transport.is_closing():
            self.active_at = self._now()
            self._run()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open."""
        self._transport = cast(asyncio.Transport, transport)
        porter = self._listener.porter
        self._sender = Sender(self._transport, self._loop, self._sent, self._moving, self._fail, porter)
        address = transport.get_extra_info("peername")
        self.host = str(address[0] if isinstance(address, tuple) else address)
        self.peer = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else self.host
        if not self._listener.admit(self):
            self._transport.abort()
            return
        stop_pacing_if_near(transport)
        if self._listener.tls is not None:
            try:
                self.principal = self._listener.tls.principal(transport)
            except ProtocolError as error:
                self._complain(error)
                self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go, no more of them at once than the memory counts with."""
        return self._receiver.room()[:READ_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come in."""
        now = self.active_at = self._now()
        if self._finishing:
            return
        try:
            frames = self._receiver.received(nbytes)
        except ProtocolError as error:
            self._fail(error)
            return
        memory = self._memory
        self.bytes_waiting += nbytes
        memory.used += nbytes
        if not self._receiver.mid_frame:
            if self._unfinished_since is not None:
                self._unfinished_since = None
                memory.unfinished.discard(self)
        elif frames or self._unfinished_since is None:
            self._unfinished_since = now
            memory.unfinished.add(self)
        if frames:
            if self._receiver.failure is not None:
                # What came before the bad size is answered still.
                self._complain(self._receiver.failure)
                self._finishing = True
            self._waiting.extend(frames)
            if not self._busy:
                self._run()
            else:
                self._hold_or_go_on()
        elif memory.short:
            self._hold_or_go_on()

    def eof_received(self) -> bool:
        """The client sends no more. What it did send is handled still: with acks=0 a client does not wait to see."""
        if self._busy or self._waiting:
            self._interrupt()
            self._finishing = True
            # TLS cannot be closed by halves: event loops close the other one too, and complain of being asked not to.
            return self._listener.tls is None
        if not self._sender.is_sending:
            self._sender.settle()
        if self._sender.is_sending:
            self._sender.close()
            return self._listener.tls is None
        return False

    def pause_writing(self) -> None:
        """The client does not read as fast as it is sent to."""
        self._sender.pause()
        self._memory.not_read(self, self._transport.get_write_buffer_size(), self._now())

    def resume_writing(self) -> None:
        """The client has read some of it."""
        self.active_at = self._now()
        self._memory.read_again(self)
        self._sender.resume()

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed."""
        self._finishing = True
        self._drop_requests()
        self._sender.drop()
        self._memory.forget(self)
        self._listener.forget(self)
        if self.client is not None:
            self.client.leave()
        if self._mute_timer is not None:
            self._mute_timer.cancel()
        self._interrupt()

    # What the listener calls.

    @property
    def bytes_buffered(self) -> int:
        """Bytes held for this connection: requests that wait or are handled, and replies that have not left."""
        return self.bytes_waiting + self.bytes_handled + self._transport.get_write_buffer_size()

    @property
    def requests_waiting(self) -> int:
        """Requests that wait for the ones before them."""
        return len(self._waiting)

    def overdue(self, since: float) -> str | None:
        """Why the connection should close if whatever it does now it has done since before then; None if not."""
        # One that is muted may be gone: nobody looks at its socket meanwhile.
        held = self._paused and not self._busy and self._mute_timer is None
        if not self._finishing and (self._pending is not None or held):
            return None
        if self.active_at < since:
            return "it does not read its replies" if self._sender.stuck else "it is idle"
        if self._unfinished_since is not None and self._unfinished_since < since and not self._paused:
            return "it takes too long over one request"
        return None

    def finish(self) -> None:
        """Take no more requests, answer those that have arrived whole, then close."""
        self._finishing = True
        self._pause_reading()
        self._unmute()
        if not self._busy:
            self._sender.close()

    def abort(self) -> None:
        """Close at once and give up what is pending."""
        if self._pending is not None:
            self._pending.cancel()
        self._transport.abort()

    # What the memory calls.

    @property
    def unfinished_since(self) -> float | None:
        """When the request began that is being read; None if there is none, or reading is paused."""
        return None if self._paused else self._unfinished_since

    @property
    def bytes_missing(self) -> int:
        """What the request lacks that is being read."""
        return self._receiver.missing

    def read_on(self) -> None:
        """There is room for a large request again."""
        if self._paused and not self._finishing and self._mute_timer is None and not self._transport.is_closing():
            # The time that it was kept waiting is not its own.
            self.active_at = self._unfinished_since = self._now()
            self._resume_reading()

    # How requests go through.

    def _run(self) -> None:
        """Handle what waits, until there is a reply to be waited for."""
        self._busy = False
        waiting, handle = self._waiting, self._handle
        for _ in range(FRAMES_PER_TURN):
            if not waiting or self._mute_timer is not None:
                break
            frame = waiting.popleft()
            size = len(frame) + 4
            self.bytes_waiting -= size
            self.bytes_handled = size
            try:
                reply = handle(self, frame)
            except Exception as error:  # noqa: BLE001 - whatever it is, this connection alone suffers
                self._handled()
                self._fail(error)
                return
            if reply is None:
                self._handled()
                continue
            if not isinstance(reply, list):
                self._busy = True
                self._pending = asyncio.ensure_future(reply)
                self._pending.add_done_callback(self._answered)
                break
            self._handled()
            if not self._sender.send(reply):
                self._busy = True
                break
        else:
            if waiting:
                self._busy = True
                self._loop.call_soon(self._run)
        self._hold_or_go_on()

    def _answered(self, future: "asyncio.Future[Answer]") -> None:
        """A reply that was waited for is here."""
        self._pending = None
        self.interrupt = None
        self._handled()
        if future.cancelled():
            self._sender.close()
            return
        error = future.exception()
        if error is not None:
            self._fail(error)
            return
        reply = future.result()
        if self._transport.is_closing():
            return
        self.active_at = self._now()
        if reply is None or self._sender.send(reply):
            self._run()

    def _handled(self) -> None:
        """A request is in memory no more."""
        memory = self._memory
        memory.used -= self.bytes_handled
        self.bytes_handled = 0
        if memory.wanting or memory.turn is self:
            memory.released(self)

    def _moving(self) -> None:
        self.active_at = self._now()

    def _sent(self) -> None:
        self.active_at = self._now()
        self._run()

    def _hold_or_go_on(self) -> None:
        """Stop reading if too much waits, read again if not; close if this was the last reply."""
        if self._finishing:
            if not self._busy:
                self._sender.close()
            return
        if self._holds_too_much():
            self._pause_reading()
        elif self._paused and self._mute_timer is None and not self._transport.is_closing():
            self._resume_reading()

    def _holds_too_much(self) -> bool:
        if len(self._waiting) > MOST_FRAMES_WAITING or (self.bytes_waiting > MOST_BYTES_WAITING and self._waiting):
            return True
        if not self._memory.short:
            return False
        self._memory.watch()
        if self.bytes_waiting <= SMALL_BYTES:
            return False
        # Whoever has requests to be answered comes back here after that; others must wait for their turn.
        return bool(self._busy or self._waiting) or self._memory.must_wait(self)

    def _resume_reading(self) -> None:
        self._paused = False
        self._transport.resume_reading()

    def _pause_reading(self) -> None:
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def _interrupt(self) -> None:
        interrupt, self.interrupt = self.interrupt, None
        if interrupt is not None:
            interrupt()

    def _fail(self, error: BaseException) -> None:
        """Close because of an error, and say why."""
        self._listener.failed_count += 1
        if isinstance(error, ProtocolError):
            self._complain(error)
        else:
            log.error("closing the connection from %s after a failure", self.peer, exc_info=error, extra=self.identity)
        self._finishing = True
        self._drop_requests()
        # Not abort: replies to earlier requests may be on their way.
        self._sender.close()

    def _complain(self, of: object) -> None:
        self._listener.complaints.tell("closing the connection from %s: %s", self.peer, of, extra=self.identity)

    def _drop_requests(self) -> None:
        """Let go of all that has arrived and is not being handled."""
        self._waiting.clear()
        self._receiver = Receiver(self._listener.max_request_bytes, self._listener.scratch)
        self._unfinished_since = None
        self._memory.used -= self.bytes_waiting
        self.bytes_waiting = 0
