"""What a broker reads before it knows who sends it: messages of logins, and the frames that carry them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import cache, partial
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from ottla.broker.apis import SERVED, served_versions
from ottla.broker.authentication import Authenticator
from ottla.broker.exchanges import BearerExchange, MakeExchange, PlainExchange, ScramExchange
from ottla.broker.login import Login
from ottla.broker.tokens import Bearer
from ottla.broker.users import Users
from ottla.cluster.credential import ScramMechanism
from ottla.config.jaas import parse_jaas
from ottla.meta.memory import open_memory
from ottla.net.sasl.bearer import BearerClient, parse_bearer
from ottla.net.sasl.errors import SaslError
from ottla.net.sasl.plain import PlainClient, parse_plain
from ottla.net.sasl.scram import make_credential
from ottla.net.sasl.scram_client import ScramClient
from ottla.net.sasl.scram_server import ScramServer
from ottla.ports import SystemChance, SystemClock
from ottla.wire import api
from ottla.wire.api.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.errors import ProtocolError
from ottla.wire.frame import encode_request, encode_response

from .target import Target

MECHANISM = ScramMechanism.SCRAM_SHA_256
CREDENTIAL = make_credential(MECHANISM, "wonder", b"salt", 4096)


def targets() -> Iterator[Target]:
    """Messages of each mechanism to their readers, and whole frames to the gate of a listener."""
    yield Target("logins", "PLAIN", _plain, partial(_read, parse_plain))
    yield Target("logins", "OAUTHBEARER", _bearer, partial(_read, parse_bearer))
    yield Target("logins", "SCRAM, first", _scram_first, partial(_read, _server_first))
    yield Target("logins", "SCRAM, final", _scram_final, partial(_read, _server_final))
    yield Target("logins", "SCRAM, a broker's first", _broker_first, partial(_read, _client_first))
    yield Target("logins", "JAAS", _jaas, _read_jaas)
    for name in ("PLAIN", MECHANISM.text, "OAUTHBEARER"):
        yield Target("gates", f"{name}, requests", partial(_request, name), partial(_through_the_gate, name, False))
        yield Target("gates", f"{name}, bare", partial(_message, name), partial(_through_the_gate, name, True))


def _read(read: Callable[[bytes], object], data: bytes) -> object:
    try:
        return read(data)
    except SaslError as error:
        raise ProtocolError(str(error), where="login") from error


def _read_jaas(data: bytes) -> object:
    try:
        return parse_jaas(data.decode(errors="replace"))
    except ValueError as error:
        raise ProtocolError(str(error), where="login") from error


# --- sound bytes ---


def _text(random: Random) -> str:
    return "".join(chr(random.randrange(0x21, 0x7F)) for _ in range(random.randrange(1, 30))).replace(",", "x")


def _plain(random: Random) -> bytes:
    return PlainClient(_text(random), _text(random)).first()


def _bearer(random: Random) -> bytes:
    return BearerClient(_text(random), {"traceId": _text(random)}).first()


def _scram_first(random: Random) -> bytes:
    return ScramClient(MECHANISM, _text(random), "wonder", _text(random)).first()


def _server_first(data: bytes) -> object:
    return ScramServer(MECHANISM, lambda user: CREDENTIAL, "s").answer(data)


@cache
def _conversation() -> tuple[bytes, bytes, bytes]:
    """A login that succeeds, as the client begins, the broker answers, and the client ends it."""
    client = ScramClient(MECHANISM, "alice", "wonder", "c")
    first = _server_first(client.first())
    assert isinstance(first, bytes)
    final = client.answer(first)
    assert final is not None
    return client.first(), first, final


def _scram_final(random: Random) -> bytes:
    return _conversation()[2]


def _server_final(data: bytes) -> object:
    server = ScramServer(MECHANISM, lambda user: CREDENTIAL, "s")
    server.answer(_conversation()[0])
    return server.answer(data)


def _broker_first(random: Random) -> bytes:
    return _conversation()[1]


def _client_first(data: bytes) -> object:
    # Without the thousands of rounds, which a broker may ask for up to a bound.
    if b"i=4096" not in data and data.rpartition(b"i=")[2].isdigit():
        raise SaslError("another number of rounds")
    return ScramClient(MECHANISM, "alice", "wonder", "c").answer(data)


def _jaas(random: Random) -> bytes:
    return b'a.b.PlainLoginModule required username="alice" password="w\\"onder" user_bob=b;'


def _message(name: str, random: Random) -> bytes:
    return {"PLAIN": _plain, "OAUTHBEARER": _bearer}.get(name, _scram_first)(random)


def _request(name: str, random: Random) -> bytes:
    body = SaslAuthenticateRequest(auth_bytes=_message(name, random))
    return b"".join(encode_request(body, random.randrange(3), correlation_id=1, client_id="x"))[4:]


# --- the gate, without sockets ---


class _Passwords:
    async def check(self, user: str, password: str, given: object, host: str) -> bool:
        return True


class _Tokens:
    async def check(self, token: str, host: str) -> Bearer:
        return Bearer("alice", 1 << 50)


@cache
def _world() -> tuple[asyncio.AbstractEventLoop, dict[str, MakeExchange]]:
    loop = asyncio.new_event_loop()
    users = Users(open_memory().connect(), SystemChance())
    loop.run_until_complete(users.load())
    # What is compiled once for each API is not what a case takes.
    for key in SERVED:
        for version in range(served_versions(key).first, served_versions(key).last + 1):
            encode_response(api.response(key)(), version, correlation_id=1)
    makers: dict[str, MakeExchange] = {
        "PLAIN": lambda host: PlainExchange(cast(Any, _Passwords()), {}, host),
        MECHANISM.text: lambda _: ScramExchange(MECHANISM, users, {}, "s"),
        "OAUTHBEARER": lambda host: BearerExchange(_Tokens(), host),
    }
    return loop, makers


def _through_the_gate(name: str, bare: bool, data: bytes) -> object:
    """Give a frame to a login that has begun: it is answered, or refused as a failed login, or is no request."""
    from ottla.broker.handle import sasl_authenticate
    from ottla.broker.request import Request
    from ottla.wire.frame import decode_request, read_request_prefix

    loop, makers = _world()

    def dispatch(caller: Any, frame: bytes) -> Any:
        prefix = read_request_prefix(frame)
        if prefix.api_version not in range(3):
            raise ProtocolError("no such version", where="version")
        body = decode_request(SaslAuthenticateRequest, prefix.api_version, frame)[1]
        return sasl_authenticate.handle(
            cast(Any, None), Request(prefix.api_key, prefix.api_version, None, caller, body)
        )

    gate = SimpleNamespace(
        handler=dispatch, mechanisms=makers, delay_s=0.0, clock=SystemClock(), failures=SILENT, events=_Counted(),
        users=SimpleNamespace(credentials=lambda user: {}), given_users={}, lifetime_ms=0,
    )  # fmt: skip
    caller = SimpleNamespace(
        peer="x", host="x", principal="User:ANONYMOUS", identity={}, context=None, finish=lambda: None,
        trust=lambda: None,
    )  # fmt: skip

    async def story() -> object:
        login = Login(cast(Authenticator, gate), cast(Any, caller))
        caller.context = login
        login.handshake(name, bytes_follow=bare)
        answer: Any = login.take(data)
        return await answer if isinstance(answer, Awaitable) else answer

    answer = loop.run_until_complete(story())
    if caller.principal == "User:ANONYMOUS" and answer is None:
        raise ProtocolError("a failed login", where="login")
    return answer


SILENT = SimpleNamespace(tell=lambda *_, **__: None)


class _Counted(dict[str, int]):
    def __missing__(self, key: str) -> int:
        return 0
