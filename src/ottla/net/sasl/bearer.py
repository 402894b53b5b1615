"""OAUTHBEARER (RFC 7628): a token that somebody else has signed, so it belongs on an encrypted connection."""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from ottla.net.sasl.errors import SaslError

REFUSAL = b'{"status":"invalid_token"}'
"""What a broker says to a token that will not do. The client answers with a single byte, and only then it is over."""

LAST_WORD = b"\x01"

_EXTENSION = re.compile(r"([A-Za-z]+)=([\x21-\x7e \t\r\n]*)")


class BearerLogin(NamedTuple):
    """What a client says in OAUTHBEARER."""

    acts_as: str
    """Whom to act as; empty if it does not say."""
    token: str
    extensions: Mapping[str, str]

    def __repr__(self) -> str:
        return f"BearerLogin(acts_as={self.acts_as!r})"


def parse_bearer(message: bytes) -> BearerLogin:
    """Read a client's message.

    >>> login = parse_bearer(b"n,,\\x01auth=Bearer abc.def.ghi\\x01traceId=7\\x01\\x01")
    >>> login.token, login.extensions
    ('abc.def.ghi', {'traceId': '7'})
    """
    try:
        header, *pairs = message.decode().split("\x01")
    except UnicodeDecodeError:
        raise SaslError("the message is no UTF-8") from None
    found = re.fullmatch(r"n,(?:a=([^,]*))?,", header)
    if found is None or len(pairs) < 3 or pairs[-2:] != ["", ""]:
        raise SaslError("the message is not one of OAUTHBEARER")
    extensions: dict[str, str] = {}
    for pair in pairs[:-2]:
        extension = _EXTENSION.fullmatch(pair)
        if extension is None:
            raise SaslError("the message is not one of OAUTHBEARER")
        extensions[extension[1]] = extension[2]
    scheme, _, token = extensions.pop("auth", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise SaslError("the message has no bearer token")
    return BearerLogin(found[1] or "", token.strip(), extensions)


class BearerClient:
    """A client's side of OAUTHBEARER.

    >>> BearerClient("abc.def.ghi").first()
    b'n,,\\x01auth=Bearer abc.def.ghi\\x01\\x01'
    """

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        self._pairs = [f"auth=Bearer {token}", *(f"{key}={value}" for key, value in (extensions or {}).items())]
        if not all(map(_EXTENSION.fullmatch, self._pairs)):
            raise SaslError("the token, or an extension, has characters that OAUTHBEARER cannot carry")
        self._refused = ""

    def first(self) -> bytes:
        """The message to begin with."""
        return "\x01".join(["n,,", *self._pairs, "", ""]).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        """None if the broker is satisfied. If it says why it is not, it wants to hear one more byte."""
        if not challenge:
            return None
        if self._refused:
            raise SaslError(f"the broker refuses the token: {self._refused}")
        self._refused = _status(challenge)
        return LAST_WORD


def _status(challenge: bytes) -> str:
    try:
        status = json.loads(challenge)["status"]
    except (ValueError, KeyError, TypeError):
        status = "it does not say why"
    return str(status)[:100]
