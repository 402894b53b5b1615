"""Somebody who tries passwords: `python -m tests.broker.bad_logins HOST PORT A_SECOND SECONDS`.

Prints, as JSON, how many logins were refused, how many did something else, and how long it took.
"""

import asyncio
import json
import sys
from collections import Counter

from ottla.wire.api.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.api.sasl_handshake import SaslHandshakeRequest
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request

TICK_S = 0.02
MOST_AT_ONCE = 500
TURNS = ("PLAIN", *["SCRAM-SHA-256"] * 4)
"""A password in clear takes the broker a millisecond or two, in a thread of which there is one."""


def _request(body: object, version: int) -> bytes:
    return b"".join(encode_request(body, version, correlation_id=1, client_id="guess"))


HANDSHAKES = {name: _request(SaslHandshakeRequest(mechanism=name), 1) for name in ("PLAIN", "SCRAM-SHA-256")}
FIRST = _request(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=guess"), 1)
GUESS = _request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess"), 1)


async def _answer(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


async def _guess(address: tuple[str, int], mechanism: str) -> str:
    """How one login ends."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(HANDSHAKES[mechanism] + (GUESS if mechanism == "PLAIN" else FIRST))
        await _answer(reader)
        if mechanism != "PLAIN":
            challenge = decode_response(SaslAuthenticateResponse, 1, await _answer(reader))[1].auth_bytes
            nonce = bytes(challenge).partition(b",")[0]
            final = b"c=biws," + nonce + b",p=" + b"A" * 43 + b"="
            writer.write(_request(SaslAuthenticateRequest(auth_bytes=final), 1))
        code = decode_response(SaslAuthenticateResponse, 1, await _answer(reader))[1].error_code
        return "refused" if code == ErrorCode.SASL_AUTHENTICATION_FAILED else f"code {code}"
    except (OSError, asyncio.IncompleteReadError) as error:
        return type(error).__name__
    finally:
        writer.close()


async def attack(address: tuple[str, int], a_second: int, seconds: float) -> dict[str, float]:
    """Try so many passwords a second, by PLAIN and SCRAM in turn, whether or not earlier ones are answered yet."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    running: set[asyncio.Task[str]] = set()
    ends: Counter[str] = Counter()
    sent = 0

    def done(task: asyncio.Task[str]) -> None:
        running.discard(task)
        ends[task.result()] += 1

    while (passed := loop.time() - began) < seconds:
        while sent < passed * a_second and len(running) < MOST_AT_ONCE:
            task = asyncio.create_task(_guess(address, TURNS[sent % len(TURNS)]))
            running.add(task)
            task.add_done_callback(done)
            sent += 1
        await asyncio.sleep(TICK_S)
    await asyncio.gather(*running)
    return {**ends, "seconds": loop.time() - began}


if __name__ == "__main__":
    host, port, a_second, seconds = sys.argv[1:]
    print(json.dumps(asyncio.run(attack((host, int(port)), int(a_second), float(seconds)))))
