"""Tokens for OAUTHBEARER from an authorization server, as Kafka's Java client gets them."""

import json
from base64 import b64encode
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import quote_plus, urlencode, urlsplit
from urllib.request import Request

from ottla.net.sasl.errors import TokenError
from ottla.net.web import read_address


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """Gets a token for a client's id and secret; for `sasl_oauth_token_provider`. A `file:` address is read as it is.

    >>> ClientCredentials(token_endpoint_url="https://login.example/token", client_id="billing", client_secret="s")
    ClientCredentials(token_endpoint_url='https://login.example/token', client_id='billing', scope=None)
    """

    token_endpoint_url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str | None = None

    def __post_init__(self) -> None:
        scheme = urlsplit(self.token_endpoint_url).scheme
        if scheme not in ("https", "http", "file"):
            raise ValueError(
                f"the token endpoint is {self.token_endpoint_url!r}; give an address, https://... or file:///..."
            )
        if scheme != "file" and not (self.client_id and self.client_secret):
            raise ValueError("the client's id or secret is missing; a token endpoint needs both")

    def token(self) -> str:
        """A fresh token, or a TokenError that says why there is none. It takes as long as the server does."""
        there = urlsplit(self.token_endpoint_url)
        # The rest of the address, and what a server says, may be for nobody's eyes.
        where = there.path if there.scheme == "file" else f"{there.scheme}://{there.hostname}"
        try:
            found = self._fetched()
        except (OSError, HTTPException, ValueError) as error:
            raise TokenError(f"there is no token from {where}: {_reason(error)}") from error
        if not found:
            raise TokenError(f"there is no token from {where}: what it gives is empty")
        return found

    def _fetched(self) -> str:
        if urlsplit(self.token_endpoint_url).scheme == "file":
            return read_address(self.token_endpoint_url).decode().strip()
        who = f"{quote_plus(self.client_id)}:{quote_plus(self.client_secret)}"
        form = {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        request = Request(
            self.token_endpoint_url,
            urlencode(form).encode(),
            {"Authorization": f"Basic {b64encode(who.encode()).decode()}", "Accept": "application/json"},
        )
        found = json.loads(read_address(request))
        token = found.get("access_token") if isinstance(found, dict) else None
        if not isinstance(token, str):
            raise _NoTokenError
        return token


class _NoTokenError(ValueError):
    """A server answered, and its answer has no token."""


def _reason(error: Exception) -> str:
    """Why nothing was had, in words that hold nothing of what was sent or received.

    >>> _reason(URLError(ConnectionRefusedError(111, "Connection refused")))
    'connection refused'
    >>> _reason(HTTPError("", 401, "what it says", {}, None))
    'it answers 401 Unauthorized'
    """
    if isinstance(error, HTTPError):
        known = {status.value: f" {status.phrase}" for status in HTTPStatus}
        return f"it answers {error.code}{known.get(error.code, '')}"
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    if isinstance(cause, _NoTokenError):
        return "its answer has no access_token"
    if isinstance(cause, ValueError):
        return "what it answers is no token"
    # A refusal to go on to another address, in words of our own.
    return cause if isinstance(cause, str) else type(cause).__name__
