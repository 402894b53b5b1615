"""A whole broker with its door open to strangers, who come in this process without a socket, and some with one."""

import asyncio
import json
import logging
import resource
import ssl
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from jwt.algorithms import ECAlgorithm

from ottla.broker.authentication import Authenticator
from ottla.broker.login import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from ottla.broker.server import Server
from ottla.cluster.credential import ScramMechanism
from ottla.config.broker import BrokerConfig
from ottla.net.sasl.scram import make_credential
from ottla.net.serving import ANONYMOUS, Frame, Reply, ServerConnection
from tests.certificates import Authority, written

from .door_words import (
    ATTACKS,
    AUDIENCE,
    KEY_ID,
    PASSWORD,
    RIGHT_KEY,
    USER,
    Person,
    Talk,
    framed,
    login,
    people,
    quick_client,
    secrets,
    wanted_mechanism,
)
from .run import Finding, Outcome

FREE = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)
GOOD_ONE_IN = 500
"""How often somebody comes who may come in, and must be able to."""
SOCKET_ONE_IN = 250
FRIEND_ONE_IN = 10
"""How often what is spoilt is the login of somebody who would have been let in."""
MOST_GROWTH_BYTES = 24 << 20
"""By how much a run may make the process grow, once everything has happened that happens once."""


class Wire(asyncio.Transport):
    """A transport whose other end is the test."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 4711)})
        self.sent = bytearray()
        self._closed = False

    def write(self, data: Any) -> None:
        self.sent += data

    def close(self) -> None:
        self._closed = True

    abort = close

    def is_closing(self) -> bool:
        return self._closed

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading


class Eyes(logging.Handler):
    """Sees what is logged that should not be."""

    def __init__(self, forbidden: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._forbidden = forbidden
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info or record.levelno >= logging.ERROR:
            self.seen.append(f"logged: {text} {record.exc_info}")
        if "\n" in text:
            self.seen.append(f"what a stranger said makes a line of its own in the log: {text!r}")
        if any(secret in text for secret in self._forbidden):
            self.seen.append(f"logged a secret: {text}")


class Door:
    """A broker, and what is watched of it."""

    def __init__(self, server: Server, ca: str, eyes: Eyes) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners = {listener.name: listener for listener in server._listeners}
        self.listener = self._listeners["SASL_PLAINTEXT"]
        self.memory = self.listener.memory
        self.eyes = eyes
        self.tls = ssl.create_default_context(cafile=ca)
        self._gate = self.listener.handler
        self._pending: asyncio.Future[Any] | None = None
        authenticator = getattr(self._gate, "__self__", None)
        assert isinstance(authenticator, Authenticator), "the listener has no gate"
        self._behind = authenticator.handler
        authenticator.handler = self._let_through
        self.listener.handler = self._handle

    def address(self, listener: str) -> tuple[str, int]:
        return self._listeners[listener].address

    async def emptied(self) -> None:
        """Return when everybody has left."""
        async with asyncio.timeout(30):
            while any(listener.connection_count or listener.handshake_count for listener in self._listeners.values()):
                await asyncio.sleep(0.01)

    def _handle(self, caller: ServerConnection, frame: Frame) -> Reply:
        reply = self._gate(caller, frame)
        if isinstance(reply, Awaitable):
            reply = self._pending = asyncio.ensure_future(reply)
        return reply

    def _let_through(self, caller: ServerConnection, frame: Frame) -> Reply:
        key = int.from_bytes(frame[:2], "big", signed=True)
        if key not in FREE and caller.principal == ANONYMOUS:
            self.eyes.seen.append(f"API key {key} was reached without a login")
        return self._behind(caller, frame)

    async def visit(self, random: Random, talk: Talk) -> tuple[str, bool]:
        """Have a conversation; who the broker took the visitor for, and whether it closed the connection."""
        connection, wire = ServerConnection(self.listener, self._loop), Wire()
        connection.connection_made(wire)
        try:
            data = next(talk)
            while not wire.is_closing():
                wire.sent.clear()
                await self._feed(random, connection, wire, data)
                data = talk.send(bytes(wire.sent))
        except StopIteration:
            pass
        closed = wire.is_closing()
        wire.close()
        connection.connection_lost(None)
        if self._pending is not None:
            await asyncio.wait([self._pending])
            self._pending = None
        return connection.principal, closed

    async def _feed(self, random: Random, connection: ServerConnection, wire: Wire, data: bytes) -> None:
        step = random.choice((*[len(data)] * 12, 1, 7, 50, 50)) or 1
        for start in range(0, len(data), step):
            piece = data[start : start + step]
            while piece and not wire.is_closing():
                room = connection.get_buffer(-1)
                size = min(len(room), len(piece))
                room[:size] = piece[:size]
                connection.buffer_updated(size)
                piece = piece[size:]
        while (self._pending is not None or connection.requests_waiting) and not wire.is_closing():
            pending, self._pending = self._pending, None
            await (asyncio.wait([pending]) if pending is not None else asyncio.sleep(0))


@asynccontextmanager
async def opened() -> AsyncIterator[Door]:
    """A door, with all that belongs to it."""
    friend, others = people()
    eyes = Eyes(secrets(friend, others))
    asyncio.get_running_loop().set_exception_handler(lambda _, context: eyes.seen.append(f"event loop: {context}"))
    loggers = [logging.getLogger(name) for name in ("ottla", "asyncio")]
    before = [(logger, logger.level, logger.propagate) for logger in loggers]
    with tempfile.TemporaryDirectory(prefix="ottla-door-") as name:
        folder, authority = Path(name), Authority()
        keys = {"keys": [{**json.loads(ECAlgorithm.to_jwk(RIGHT_KEY.public_key())), "kid": KEY_ID}]}
        settings = {
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in ("SASL_PLAINTEXT", "SASL_SSL", "SSL")),
            "log.dirs": str(folder / "data"),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": Path(written(folder, "keys", json.dumps(keys).encode())).as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "connection.failed.authentication.delay.ms": "0",
            "ssl.keystore.location": written(folder, "broker.pem", authority.issue("localhost").store),
        }
        (folder / "data").mkdir()
        async with Server(BrokerConfig(settings)) as server:
            assert server.broker is not None
            credentials = {one: make_credential(one, PASSWORD, b"salt" * 4, 4096) for one in ScramMechanism}
            await server.broker.users.alter(USER, lambda _: credentials)
            for logger in loggers:
                logger.addHandler(eyes)
                logger.setLevel(logging.DEBUG)
                logger.propagate = False
            try:
                yield Door(server, written(folder, "ca.pem", authority.pem), eyes)
            finally:
                for logger, level, propagate in before:
                    logger.removeHandler(eyes)
                    logger.setLevel(level)
                    logger.propagate = propagate


async def besiege(cases: int, seed: int, socket_one_in: int = SOCKET_ONE_IN) -> Outcome:
    """So many strangers at one door, some of whom come through a real socket, which takes them far longer."""
    from .door_sockets import knock

    outcome = Outcome(Counter(), Counter(), [])
    friend, strangers = people()
    async with opened() as door:
        warm = 0
        for case in range(cases):
            random = Random(f"{seed}/{case}")
            if case == cases // 5:
                warm = resident_bytes()
            if case % GOOD_ONE_IN == 0:
                await _let_in(door, random, friend, outcome)
            if case % socket_one_in == 7 % socket_one_in:
                group, closed = await knock(door, random)
            else:
                group, closed = await _one(door, random, friend, strangers, outcome)
            (outcome.refused if closed else outcome.taken)[group] += 1
            found, door.eyes.seen = door.eyes.seen, []
            outcome.findings.extend(Finding(group, what[:500], f"seed {seed}, case {case}") for what in found)
        await _let_in(door, Random(seed), friend, outcome)
        await door.emptied()
        if door.memory.used:
            what = f"{door.memory.used} bytes are counted for visitors who have left"
            outcome.findings.append(Finding("door", what, f"seed {seed}"))
        grown = resident_bytes() - warm
        if cases >= 1000 and grown > MOST_GROWTH_BYTES:
            outcome.findings.append(Finding("door", f"the process grew by {grown} bytes", f"seed {seed}"))
    return outcome


async def _one(
    door: Door, random: Random, friend: Person, strangers: list[Person], outcome: Outcome
) -> tuple[str, bool]:
    mechanism, attack = wanted_mechanism(random), random.choice(ATTACKS)
    is_friend = not random.randrange(FRIEND_ONE_IN)
    person = friend if is_friend else random.choice(strangers)
    principal, closed = await door.visit(random, attack(random, mechanism, person))
    if principal != ANONYMOUS and not (is_friend and principal == f"User:{USER}"):
        door.eyes.seen.append(f"{person.user!r} got in as {principal}")
    return f"door: {attack.__name__.replace('_', ' ')}", closed


async def _let_in(door: Door, random: Random, friend: Person, outcome: Outcome) -> None:
    mechanism = wanted_mechanism(random)
    principal, closed = await door.visit(random, _in_frames(login(random, mechanism, friend)))
    if principal != f"User:{USER}" or closed:
        outcome.findings.append(Finding("door", f"a friend could not log in with {mechanism}", f"as {principal}"))


def _in_frames(talk: Talk) -> Talk:
    try:
        frame = next(talk)
        while True:
            frame = talk.send((yield framed(frame)))
    except StopIteration:
        return


def run_door(cases: int, seed: int, socket_one_in: int = SOCKET_ONE_IN) -> Outcome:
    """So many strangers at the door of a broker."""
    with quick_client:
        return asyncio.run(besiege(cases, seed, socket_one_in))


def resident_bytes() -> int:
    """The memory that the process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
