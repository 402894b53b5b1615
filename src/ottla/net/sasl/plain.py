"""PLAIN (RFC 4616): name and password in one message, so it belongs on an encrypted connection."""

from typing import NamedTuple

from ottla.net.sasl.errors import SaslError

LONGEST = 4096
"""Bytes of a message. Many may wait to be checked at a time, and strangers wrote them."""


class PlainLogin(NamedTuple):
    """What a client says in PLAIN."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"PlainLogin(user={self.user!r})"


def parse_plain(token: bytes) -> PlainLogin:
    """Read a client's message. To act as somebody else than one logs in as is refused.

    >>> parse_plain(b"\\0alice\\0wonder")
    PlainLogin(user='alice')
    """
    if len(token) > LONGEST:
        raise SaslError(f"a message of {len(token)} bytes; {LONGEST} is the most")
    try:
        parts = token.decode().split("\0")
    except UnicodeDecodeError:
        raise SaslError("the message is no UTF-8") from None
    if len(parts) != 3:
        raise SaslError(f"the message has {len(parts)} parts, not 3")
    acts_as, user, password = parts
    if not user or not password:
        raise SaslError(f"the {'password' if user else 'user name'} is empty")
    if acts_as not in ("", user):
        raise SaslError("the client asks to act as another user than it logs in as")
    return PlainLogin(user, password)


class PlainClient:
    """A client's side of PLAIN.

    >>> PlainClient("alice", "wonder").first()
    b'\\x00alice\\x00wonder'
    """

    def __init__(self, user: str, password: str) -> None:
        if "\0" in user or "\0" in password:
            raise SaslError("the user name or the password holds a zero character, which PLAIN cannot carry")
        self._user = user
        self._password = password

    def first(self) -> bytes:
        """The message to begin with."""
        return f"\0{self._user}\0{self._password}".encode()

    def answer(self, challenge: bytes) -> None:
        """The broker says nothing more than whether it is satisfied."""
        if challenge:
            raise SaslError("the broker asks for more, which PLAIN does not have")
