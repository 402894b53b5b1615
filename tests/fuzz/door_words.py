"""What strangers say at a broker's door: logins as they should be, and all that can be made of them."""

import time
from collections.abc import Callable, Generator
from functools import lru_cache
from random import Random
from typing import NamedTuple
from unittest.mock import patch

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from ottla.cluster.credential import ScramMechanism
from ottla.net.sasl import scram_client
from ottla.net.sasl.errors import SaslError
from ottla.net.sasl.scram import salted_password
from ottla.net.sasl.scram_client import ScramClient
from ottla.wire import api
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.metadata import MetadataRequest
from ottla.wire.api.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.api.sasl_handshake import SaslHandshakeRequest
from ottla.wire.errors import ProtocolError
from ottla.wire.frame import decode_response, encode_request

from .hostile import hostile

MECHANISMS = {"SCRAM-SHA-256": 46, "SCRAM-SHA-512": 46, "OAUTHBEARER": 7, "PLAIN": 1}
"""With how often each is tried: PLAIN takes a thousand times as long as the others, as hashing has to."""

USER, PASSWORD, WRONG = "alice", "in-a-wonderland-of-her-own", "through-the-looking-glass"
RIGHT_KEY, WRONG_KEY = (ec.derive_private_key(number, ec.SECP256R1()) for number in (4711, 815))
KEY_ID, AUDIENCE = "one", "ottla"

Talk = Generator[bytes, bytes, None]
"""Gives frames without their sizes, and is told what came back for each."""

# The client's side hashes the password for each login; the same ones come again and again here.
quick_client = patch.object(scram_client, "salted_password", lru_cache(salted_password))


class Person(NamedTuple):
    """Who comes to the door, with what."""

    user: str
    password: str
    token: str


def _token(key: ec.EllipticCurvePrivateKey, user: str, seconds: int = 36_000) -> str:
    now = int(time.time())
    claims = {"sub": user, "aud": AUDIENCE, "iat": now - 7200, "exp": now + seconds}
    return jwt.encode(claims, key, "ES256", {"kid": KEY_ID})


def people() -> tuple[Person, list[Person]]:
    """Somebody who belongs here, and some who do not."""
    friend = Person(USER, PASSWORD, _token(RIGHT_KEY, USER))
    unsigned = jwt.encode({"sub": USER, "aud": AUDIENCE, "iat": 1, "exp": 1 << 40}, "", "none", {"kid": KEY_ID})
    strangers = [
        Person(USER, WRONG, _token(WRONG_KEY, USER)),
        Person("nobody", WRONG, _token(RIGHT_KEY, USER, seconds=-3600)),
        Person("", PASSWORD, unsigned),
        Person("bob", PASSWORD, friend.token[:-8] + "AAAAAAAA"),
    ]
    return friend, strangers


def request(body: object, version: int, correlation_id: int = 7) -> bytes:
    """A request as it stands in a frame."""
    return b"".join(encode_request(body, version, correlation_id=correlation_id, client_id="door"))[4:]


def login(random: Random, mechanism: str, person: Person, spoil: Callable[[bytes], bytes] = bytes) -> Talk:
    """A login, in one of the ways that there are for it, and what one would do then; `spoil` is for its messages."""
    if random.randrange(2):
        yield request(ApiVersionsRequest(), random.randrange(5))
    bare = not random.randrange(4)
    version = random.randrange(3)
    yield request(SaslHandshakeRequest(mechanism=mechanism), 0 if bare else 1)

    def say(message: bytes) -> bytes:
        message = spoil(message)
        return message if bare else request(SaslAuthenticateRequest(auth_bytes=message), version)

    def heard(reply: bytes) -> bytes:
        if bare:
            return reply[4:]
        try:
            return bytes(decode_response(SaslAuthenticateResponse, version, reply[4:])[1].auth_bytes)
        except ProtocolError:
            return b""

    scram = ScramMechanism.named(mechanism)
    if scram is not None:
        client = ScramClient(scram, person.user, person.password, f"nonce{random.randrange(1 << 60)}")
        challenge = heard((yield say(client.first())))
        try:
            final = client.answer(challenge) or b""
        except SaslError:
            final = b"c=biws,r=nonce,p=AAAA"
        yield say(final)
    elif mechanism == "PLAIN":
        yield say(f"\0{person.user}\0{person.password}".encode())
    else:
        refusal = heard((yield say(f"n,a={person.user},\1auth=Bearer {person.token}\1\1".encode())))
        if refusal:
            yield say(b"\1")
    yield request(MetadataRequest(topics=None), 1)


def any_request(random: Random) -> bytes:
    """A request of any API and version, most of which exist, with or without a sound body."""
    key = random.choice([*api.MODULES, random.randrange(-2, 120)])
    version = random.randrange(-1, 20)
    if key in api.MODULES and random.randrange(2):
        try:
            return request(api.request(key)(), version)
        except (ValueError, KeyError, ProtocolError):
            pass
    return key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + random.randbytes(20)


# Ways to be a nuisance: each makes of a login what is sent, with the sizes of frames.

Attack = Callable[[Random, str, Person], Talk]


def framed(frame: bytes) -> bytes:
    """A frame with its size."""
    return len(frame).to_bytes(4, "big") + frame


def wrong_secret(random: Random, mechanism: str, person: Person) -> Talk:
    """All as it should be, except for what the person knows."""
    yield from _sent(login(random, mechanism, person), framed)


def spoilt_messages(random: Random, mechanism: str, person: Person) -> Talk:
    """Sound requests around messages that are not."""
    spoil = lambda message: hostile(random, message) if random.randrange(2) else message  # noqa: E731
    yield from _sent(login(random, mechanism, person, spoil), framed)


def spoilt_requests(random: Random, mechanism: str, person: Person) -> Talk:
    """Frames that hold damaged requests."""
    yield from _sent(
        login(random, mechanism, person), lambda frame: framed(hostile(random, frame) if random.randrange(2) else frame)
    )


def spoilt_stream(random: Random, mechanism: str, person: Person) -> Talk:
    """Damage that does not stop at sizes: frames of two billion bytes, of less than none, and half ones."""
    yield from _sent(
        login(random, mechanism, person),
        lambda frame: hostile(random, framed(frame)) if random.randrange(2) else framed(frame),
    )


def out_of_place(random: Random, mechanism: str, person: Person) -> Talk:
    """Requests of all kinds before a login and in the middle of one; requests twice, and others not at all."""
    talk = login(random, mechanism, person)
    try:
        frame = next(talk)
        while True:
            if not random.randrange(4):
                yield framed(any_request(random))
            repeats = random.choice((*[1] * 9, 0, 2, 40))
            reply = b""
            for _ in range(repeats):
                reply = yield framed(frame)
            frame = talk.send(reply)
    except StopIteration:
        return


def changing_mind(random: Random, mechanism: str, person: Person) -> Talk:
    """Begins one login, and goes on with another."""
    for _ in range(random.randint(2, 4)):
        talk = login(random, wanted_mechanism(random), person)
        try:
            frame = next(talk)
            for _ in range(random.randint(1, 4)):
                frame = talk.send((yield framed(frame)))
        except StopIteration:
            continue


ATTACKS: tuple[Attack, ...] = (
    wrong_secret,
    spoilt_messages,
    spoilt_requests,
    spoilt_stream,
    out_of_place,
    changing_mind,
)


def _sent(talk: Talk, form: Callable[[bytes], bytes]) -> Talk:
    try:
        frame = next(talk)
        while True:
            frame = talk.send((yield form(frame)))
    except StopIteration:
        return


def secrets(friend: Person, others: list[Person]) -> list[str]:
    """What must be in no log."""
    signatures = [person.token.rpartition(".")[2] for person in (friend, *others)]
    return [PASSWORD, WRONG, *[text for text in signatures if len(text) > 10]]


def wanted_mechanism(random: Random) -> str:
    """One of those that there are."""
    (found,) = random.choices(list(MECHANISMS), list(MECHANISMS.values()))
    return found
