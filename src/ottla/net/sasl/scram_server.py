"""A broker's side of SCRAM."""

import hmac
from collections.abc import Callable

from ottla.cluster.credential import ScramCredential, ScramMechanism
from ottla.net.sasl.errors import SaslError, WrongPasswordError
from ottla.net.sasl.scram import (
    attributes,
    base64,
    checked_nonce,
    combined,
    from_base64,
    hash_of,
    keyed,
    text_of,
    unescaped,
)

FindCredential = Callable[[str], ScramCredential]
"""The credential of a user; of one who does not exist, one that no password fits, and always the same."""


class ScramServer:
    """One exchange: two messages in, two out.

    >>> from ottla.net.sasl.scram import make_credential
    >>> from ottla.net.sasl.scram_client import ScramClient
    >>> mechanism = ScramMechanism.SCRAM_SHA_256
    >>> kept = make_credential(mechanism, "wonder", b"salt", 4096)
    >>> client = ScramClient(mechanism, "alice", "wonder", "n1")
    >>> server = ScramServer(mechanism, lambda user: kept, "n2")
    >>> client.answer(server.answer(client.answer(server.answer(client.first()))))
    >>> server.complete, server.user
    (True, 'alice')
    """

    def __init__(self, mechanism: ScramMechanism, find: FindCredential, nonce: str) -> None:
        self._mechanism = mechanism
        self._find = find
        self._own_nonce = nonce
        self._header = ""
        self._said = ""
        self._credential: ScramCredential | None = None
        self.user = ""
        """Who the client claims to be, and who it is once the exchange is complete."""
        self.complete = False

    def answer(self, message: bytes) -> bytes:
        """The reply to a message; SaslError if the client is not who it says, or makes no sense."""
        if self.complete:
            raise SaslError("the client goes on after the end")
        text = text_of(message)
        return (self._first(text) if self._credential is None else self._final(text)).encode()

    def _first(self, text: str) -> str:
        binding, acts_as, bare = [*text.split(",", 2), "", ""][:3]
        # "y": the client could bind to a channel, and thinks that the broker cannot, which is right.
        if binding not in ("n", "y"):
            raise SaslError("the client asks for channel binding, which is not offered")
        name, client_nonce = attributes(bare, "n", "r")
        self.user = unescaped(name)
        if acts_as not in ("", f"a={name}"):
            raise SaslError("the client asks to act as another user than it logs in as")
        if "tokenauth=true" in bare.split(",")[2:]:
            raise SaslError("the client asks to log in with a delegation token, which is not offered")
        if not self.user:
            raise SaslError("the user name is empty")
        self._header = f"{binding},{acts_as},"
        self._credential = found = self._find(self.user)
        reply = f"r={checked_nonce(client_nonce)}{self._own_nonce},s={base64(found.salt)},i={found.iterations}"
        self._said = f"{bare},{reply}"
        return reply

    def _final(self, text: str) -> str:
        assert self._credential is not None
        without_proof, _, proof_text = text.rpartition(",p=")
        header, nonce = attributes(without_proof, "c", "r")
        if from_base64(header) != self._header.encode():
            raise SaslError("the client ends with another channel binding than it began with")
        # As in Kafka, only this side's part counts, which is what nobody can have known before: librdkafka up to 2.6
        # writes its own part twice.
        if not nonce.endswith(self._own_nonce):
            raise SaslError("the nonce is not the one of this exchange")
        said = f"{self._said},{without_proof}".encode()
        signature = keyed(self._mechanism, self._credential.stored_key, said)
        proof = from_base64(proof_text)
        if len(proof) != len(signature):
            raise SaslError("the proof has a wrong length")
        client_key = combined(proof, signature)
        if not hmac.compare_digest(hash_of(self._mechanism, client_key), self._credential.stored_key):
            raise WrongPasswordError("the password is wrong")
        self.complete = True
        return f"v={base64(keyed(self._mechanism, self._credential.server_key, said))}"
