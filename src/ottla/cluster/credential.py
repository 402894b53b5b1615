"""What a cluster keeps of a user's password: enough to check it, too little to log in with it."""

from dataclasses import dataclass, field
from enum import IntEnum


class ScramMechanism(IntEnum):
    """A SCRAM mechanism, as requests number it.

    >>> ScramMechanism.named("SCRAM-SHA-512"), ScramMechanism.SCRAM_SHA_256.text, ScramMechanism.named("PLAIN")
    (<ScramMechanism.SCRAM_SHA_512: 2>, 'SCRAM-SHA-256', None)
    """

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def text(self) -> str:
        """The name in SASL."""
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        """The hash function, as Python calls it."""
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @property
    def hash_bytes(self) -> int:
        """How long its hashes are."""
        return 32 if self is ScramMechanism.SCRAM_SHA_256 else 64

    @staticmethod
    def named(text: str) -> "ScramMechanism | None":
        """The mechanism of that name in SASL, if there is one."""
        return next((one for one in ScramMechanism if one.text == text), None)


LEAST_ITERATIONS = 4096
MOST_ITERATIONS = 16_384
"""How often a password is hashed; Kafka takes no credential beyond these bounds."""


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """The credential of one user for one mechanism, as RFC 5802 has it.

    >>> ScramCredential(ScramMechanism.SCRAM_SHA_256, b"salt", b"stored", b"server", 4096)
    ScramCredential(mechanism=<ScramMechanism.SCRAM_SHA_256: 1>, iterations=4096)
    """

    mechanism: ScramMechanism
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int
