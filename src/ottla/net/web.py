"""What is fetched from web servers, keys and tokens, and where it is not fetched from."""

from http.client import HTTPMessage
from typing import IO, Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

TIMEOUT_S = 10.0
MOST_BYTES = 1024 * 1024


class _Careful(HTTPRedirectHandler):
    """Follows a server that sends on to another address, but not to one without TLS, and not with a secret in hand."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The request to the other address."""
        refusal = self._refusal(req, newurl)
        if refusal is not None:
            fp.close()
            raise URLError(refusal)
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    def _refusal(self, request: Request, address: str) -> str | None:
        there = urlsplit(address)
        # The rest of the address may be for nobody's eyes.
        led = f"{request.host} sends on to {there.scheme}://{there.hostname}"
        if there.scheme not in ("http", "https") or (request.type == "https" and there.scheme != "https"):
            return f"{led}, which has no TLS; give an address that has"
        if request.has_header("Authorization"):
            return f"{led}, to which no secret is taken; give that address itself"
        return None


def read_address(address: str | Request, timeout_s: float = TIMEOUT_S) -> bytes:
    """What is found at an address; OSError or HTTPException if nothing is, ValueError if it is more than a megabyte."""
    response: Any
    with build_opener(_Careful).open(address, timeout=timeout_s) as response:
        found: bytes = response.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES} bytes")
    return found
