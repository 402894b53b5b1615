"""Strangers who come through a real socket: garbage, handshakes of TLS that are cut or damaged, and blind logins."""

import asyncio
import socket
import ssl
import struct
from random import Random
from typing import TYPE_CHECKING

from .door_words import any_request, framed, login, people, wanted_mechanism
from .hostile import hostile

if TYPE_CHECKING:
    from .door import Door

PATIENCE_SECONDS = 0.01
"""How long a stranger listens before going away, where the broker may rightly wait for more."""


async def knock(door: "Door", random: Random) -> tuple[str, bool]:
    """Come, be a nuisance, and go; what was tried, and whether the broker closed the connection first."""
    name = random.choice(("SSL", "SASL_SSL", "SASL_PLAINTEXT"))
    with socket.socket() as one:
        one.setblocking(False)
        # Gone at once, without a word: thousands of sockets would be on their way out else.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        loop = asyncio.get_running_loop()
        await loop.sock_connect(one, door.address(name))
        try:
            if name == "SASL_PLAINTEXT" or not random.randrange(4):
                await loop.sock_sendall(one, _blind(random))
            else:
                await _handshake(door, random, one)
            closed = await _closed(one)
        except ConnectionError:
            closed = True
    return f"sockets: {name}", closed


def _blind(random: Random) -> bytes:
    """All that a login has, without listening."""
    _, strangers = people()
    talk = login(random, wanted_mechanism(random), random.choice(strangers))
    frames = [framed(next(talk)), framed(talk.send(b"")), framed(any_request(random))]
    talk.close()
    return hostile(random, b"".join(frames))


async def _handshake(door: "Door", random: Random, one: socket.socket) -> None:
    """TLS, as far as chance wants: each flight may be damaged or cut. If it succeeds, nonsense follows inside."""
    loop = asyncio.get_running_loop()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = door.tls.wrap_bio(incoming, outgoing, server_hostname="localhost")
    spoils = random.randrange(3)
    for _ in range(4):
        try:
            tls.do_handshake()
            tls.write(_blind(random) or b"\0")
            await loop.sock_sendall(one, outgoing.read())
            return
        except ssl.SSLWantReadError:
            flight = outgoing.read()
        except ssl.SSLError:
            return
        await loop.sock_sendall(one, hostile(random, flight) if spoils == 0 else flight)
        spoils -= 1
        try:
            async with asyncio.timeout(PATIENCE_SECONDS * 20):
                incoming.write(await loop.sock_recv(one, 65536))
        except TimeoutError:
            return


async def _closed(one: socket.socket) -> bool:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await asyncio.get_running_loop().sock_recv(one, 65536):
                pass
    except TimeoutError:
        return False
    return True
