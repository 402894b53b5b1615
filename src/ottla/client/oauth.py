"""Tokens for OAUTHBEARER from an authorization server, as Kafka's Java client gets them."""

import json
from base64 import b64encode
from dataclasses import dataclass, field
from urllib.parse import quote_plus, urlencode, urlsplit
from urllib.request import Request

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
        """A fresh token. It takes as long as the server does."""
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
            raise ValueError(f"{self.token_endpoint_url} answers without an access_token")
        return token
