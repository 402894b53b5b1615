"""A client's side of SCRAM. It finds out as well whether the broker knows the password, and trusts no other."""

import hmac

from ottla.cluster.credential import LEAST_ITERATIONS, ScramMechanism
from ottla.net.sasl.errors import SaslError
from ottla.net.sasl.scram import (
    attributes,
    base64,
    checked_nonce,
    combined,
    escaped,
    from_base64,
    hash_of,
    keyed,
    salted_password,
    text_of,
)

MOST_ITERATIONS = 1_000_000
"""What a broker may ask for: far more than any does, and less than a second."""

_HEADER = "n,,"
"""No channel binding, and nobody else to act as."""


class ScramClient:
    """One exchange. See `ottla.net.sasl.scram_server`."""

    def __init__(self, mechanism: ScramMechanism, user: str, password: str, nonce: str) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        self._bare = f"n={escaped(user)},r={nonce}"
        self._signature: bytes | None = None
        self._complete = False

    def first(self) -> bytes:
        """The message to begin with."""
        return f"{_HEADER}{self._bare}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        """The reply to a message, or None where the broker has shown that it knows the password.

        The first takes milliseconds: not for an event loop.
        """
        if self._complete:
            raise SaslError("the broker goes on after the end")
        text = text_of(challenge)
        if self._signature is None:
            return self._final(text)
        self._verify(text)
        return None

    def _final(self, text: str) -> bytes:
        nonce, salt, iterations = attributes(text, "r", "s", "i")
        if not checked_nonce(nonce).startswith(self._nonce) or nonce == self._nonce:
            raise SaslError(
                "the broker's nonce does not go on from this client's: the answer belongs to another exchange"
            )
        if not iterations.isdecimal() or not LEAST_ITERATIONS <= int(iterations[:9]) <= MOST_ITERATIONS:
            raise SaslError(
                f"the broker asks for {iterations[:20]} iterations, outside of {LEAST_ITERATIONS} to {MOST_ITERATIONS}"
            )
        salted = salted_password(self._mechanism, self._password, from_base64(salt), int(iterations))
        client_key = keyed(self._mechanism, salted, b"Client Key")
        without_proof = f"c={base64(_HEADER.encode())},r={nonce}"
        said = f"{self._bare},{text},{without_proof}".encode()
        proof = combined(client_key, keyed(self._mechanism, hash_of(self._mechanism, client_key), said))
        self._signature = keyed(self._mechanism, keyed(self._mechanism, salted, b"Server Key"), said)
        return f"{without_proof},p={base64(proof)}".encode()

    def _verify(self, text: str) -> None:
        assert self._signature is not None
        if text.startswith("e="):
            raise SaslError(f"the broker says {text[2:][:100]!r}")
        (signature,) = attributes(text, "v")
        if not hmac.compare_digest(from_base64(signature), self._signature):
            raise SaslError("the broker does not know the password, so it is not the one that it claims to be")
        self._complete = True
