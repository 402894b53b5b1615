"""SCRAM (RFC 5802, RFC 7677): keys and messages, for both sides. No password travels, nor what could stand for one.

As Kafka and librdkafka do, texts are taken as they are written, without the normalisation of SASLprep.
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64Error

from ottla.cluster.credential import ScramCredential, ScramMechanism
from ottla.net.sasl.errors import SaslError

NONCE_BYTES = 18
SALT_BYTES = 16

_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")


def salted_password(mechanism: ScramMechanism, password: str | bytes, salt: bytes, iterations: int) -> bytes:
    """The password, hashed so many times. This takes milliseconds: not for an event loop.

    >>> salted_password(ScramMechanism.SCRAM_SHA_256, "pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096).hex()[:16]
    'c4a49510323ab4f9'
    """
    raw = password.encode() if isinstance(password, str) else password
    return hashlib.pbkdf2_hmac(mechanism.hash_name, raw, salt, iterations)


def credential_of(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """What is kept of a salted password."""
    stored_key = hash_of(mechanism, keyed(mechanism, salted, b"Client Key"))
    return ScramCredential(mechanism, salt, stored_key, keyed(mechanism, salted, b"Server Key"), iterations)


def make_credential(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> ScramCredential:
    """What is kept of a password. This takes milliseconds: not for an event loop."""
    return credential_of(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)


def matches(credential: ScramCredential, password: str) -> bool:
    """Whether a password is the one of a credential. This takes milliseconds: not for an event loop.

    >>> kept = make_credential(ScramMechanism.SCRAM_SHA_512, "wonder", b"salt", 4096)
    >>> matches(kept, "wonder"), matches(kept, "wander")
    (True, False)
    """
    found = make_credential(credential.mechanism, password, credential.salt, credential.iterations)
    return hmac.compare_digest(found.stored_key, credential.stored_key)


def keyed(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    """An HMAC."""
    return hmac.digest(key, message, mechanism.hash_name)


def hash_of(mechanism: ScramMechanism, data: bytes) -> bytes:
    """A hash."""
    return hashlib.new(mechanism.hash_name, data).digest()


def combined(one: bytes, other: bytes) -> bytes:
    """Both, by exclusive or."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


# Messages.


def nonce_of(secret: bytes) -> str:
    """A nonce as messages write it."""
    return b64encode(secret).decode()


def base64(data: bytes) -> str:
    """Bytes as messages write them."""
    return b64encode(data).decode()


def escaped(name: str) -> str:
    """A user name as messages write it.

    >>> escaped("a=b,c")
    'a=3Db=2Cc'
    """
    return name.replace("=", "=3D").replace(",", "=2C")


def unescaped(text: str) -> str:
    """The user name that was written so.

    >>> unescaped("a=3Db=2Cc")
    'a=b,c'
    """
    if re.search(r"=(?!2C|3D)", text):
        raise SaslError("the user name is written wrongly")
    return text.replace("=2C", ",").replace("=3D", "=")


def text_of(message: bytes) -> str:
    """A message as text."""
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SaslError("the message is no UTF-8") from None


def attributes(message: str, *names: str) -> list[str]:
    """The values of a message that has these attributes, in this order, and perhaps others that may be ignored.

    >>> attributes("r=abc,s=c2FsdA==,i=4096", "r", "s", "i")
    ['abc', 'c2FsdA==', '4096']
    """
    parts = message.split(",")
    for part, name in zip(parts, names, strict=False):
        # An attribute called m is one that must be understood, and nobody has defined any.
        if not part.startswith(f"{name}="):
            raise SaslError(f"the message lacks attribute {name}")
    if len(parts) < len(names):
        raise SaslError(f"the message lacks attribute {names[len(parts)]}")
    if any(part.startswith("m=") for part in parts):
        raise SaslError("the message asks for an extension that does not exist")
    return [part[2:] for part in parts[: len(names)]]


def checked_nonce(text: str) -> str:
    """A nonce, which must be printable."""
    if not _NONCE.fullmatch(text):
        raise SaslError("the nonce is not made of printable characters")
    return text


def from_base64(text: str) -> bytes:
    """Bytes of a message."""
    try:
        return b64decode(text, validate=True)
    except (NotBase64Error, ValueError):
        raise SaslError("the message has something that is no base64") from None
