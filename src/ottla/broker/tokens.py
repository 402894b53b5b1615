"""Whether a token of OAUTHBEARER is good: signed by whom the settings trust, for this cluster, and not expired."""

import asyncio
import json
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import Any, NamedTuple, Protocol
from urllib.error import URLError
from urllib.parse import urlsplit

from ottla.broker.exchanges import OAUTHBEARER
from ottla.broker.turns import Turns
from ottla.config.broker import BrokerConfig
from ottla.net.sasl.errors import SaslError
from ottla.wire.errors import ErrorCode, KafkaError

FETCH_S = 10.0
"""How long one step of fetching keys may take."""

LONGEST_TOKEN = 64 * 1024

_ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""By type of key. What is signed with a shared secret, or not at all, is never good."""

log = logging.getLogger("ottla.broker")


class Key(NamedTuple):
    """A key that tokens may be signed with."""

    key: Any
    algorithms: tuple[str, ...]


class Bearer(NamedTuple):
    """Whom a token speaks for, and for how long."""

    user: str
    expires_at_ms: int


class TokenCheck(Protocol):
    """Whatever can tell whether a token is good."""

    async def check(self, token: str, host: str) -> Bearer:
        """Whom a token speaks for; SaslError, without the token, if it is not good. FullLineError if too many wait."""
        ...


class Tokens:
    """Checks tokens against a set of keys, which is fetched in a thread, kept, and fetched again now and then."""

    def __init__(self, config: BrokerConfig, listener: str) -> None:
        def setting(name: str) -> Any:
            return config.of_listener(listener, f"sasl.oauthbearer.{name}", OAUTHBEARER)

        url = setting("jwks.endpoint.url")
        if url is None or urlsplit(url).scheme not in ("https", "http", "file"):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"sasl.oauthbearer.jwks.endpoint.url = {url!r}: OAUTHBEARER needs the address of the keys that tokens "
                "are signed with; give one such as https://... or file:///...",
            )
        try:
            import jwt
        except ImportError:
            message = 'sasl.enabled.mechanisms has OAUTHBEARER, for which PyJWT is missing; pip install "ottla[oauth]"'
            raise KafkaError(ErrorCode.INVALID_CONFIG, message) from None
        self._jwt = jwt
        self._url: str = url
        self._refresh_s: float = setting("jwks.endpoint.refresh.ms") / 1000
        self._backoff_s: float = setting("jwks.endpoint.retry.backoff.ms") / 1000
        self._longest_backoff_s: float = setting("jwks.endpoint.retry.backoff.max.ms") / 1000
        self._audience: tuple[str, ...] | None = setting("expected.audience")
        self._issuer: str | None = setting("expected.issuer")
        self._leeway_s: int = setting("clock.skew.seconds")
        self._user_claim: str = setting("sub.claim.name")
        self._keys: Mapping[str | None, Key] = {}
        self._fetching: asyncio.Task[None] | None = None
        # One, so that strangers who try tokens take one processor at most; and each address in turn.
        self._turns = Turns()
        self._thread = ThreadPoolExecutor(1, "ottla-tokens")
        self._failures = 0
        self._next_regular = 0.0
        self._next_fetch = 0.0

    def begin(self) -> None:
        """Fetch the keys before the first token comes, so that the log says at the start if there are none."""
        loop = asyncio.get_running_loop()
        self._fetching = loop.create_task(self._fetch(loop))

    async def check(self, token: str, host: str) -> Bearer:
        """Whom a token speaks for; SaslError, without the token, if it is not good."""
        if len(token) > LONGEST_TOKEN:
            raise SaslError(f"a token of {len(token)} characters; {LONGEST_TOKEN} is the most")
        try:
            key_id = self._jwt.get_unverified_header(token).get("kid")
        except self._jwt.PyJWTError as error:
            raise SaslError(f"the token cannot be read: {error}") from None
        key = await self._key(key_id)
        async with self._turns.turn(host):
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._verified, token, key)

    def close(self) -> None:
        """Let go of the thread."""
        if self._fetching is not None:
            self._fetching.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _verified(self, token: str, key: Key) -> Bearer:
        try:
            claims = self._jwt.decode(
                token,
                key.key,
                algorithms=list(key.algorithms),
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._leeway_s,
                options={"require": ["exp", "iat", self._user_claim], "verify_aud": self._audience is not None},
            )
        except self._jwt.PyJWTError as error:
            raise SaslError(f"the token is not good: {error}") from None
        user = claims[self._user_claim]
        if not isinstance(user, str) or not user:
            raise SaslError(f"the token's claim {self._user_claim!r} is no name")
        # As long as the same token would be taken again.
        return Bearer(user, int((claims["exp"] + self._leeway_s) * 1000))

    # Keys.

    async def _key(self, key_id: str | None) -> Key:
        loop = asyncio.get_running_loop()
        if loop.time() >= self._next_regular or (key_id not in self._keys and loop.time() >= self._next_fetch):
            if self._fetching is None:
                self._fetching = loop.create_task(self._fetch(loop))
            # Once for all who wait for it, also if the first of them leaves.
            await asyncio.shield(self._fetching)
        found = self._keys.get(key_id)
        if found is None:
            raise SaslError(
                f"no key {key_id!r:.100} is known" if key_id else "the token does not say which key it is for"
            )
        return found

    async def _fetch(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            # Whoever sends byte after byte never lets a socket wait for long.
            self._keys = await asyncio.wait_for(asyncio.to_thread(self._read), 2 * FETCH_S)
        # Keys that were good a while ago still are, so it goes on with those.
        except (OSError, HTTPException, ValueError, self._jwt.PyJWTError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            log.warning(
                "cannot get the keys for OAUTHBEARER from %s: %s", self._url, str(reason) or "it takes too long"
            )
            wait_s = min(self._backoff_s * 2**self._failures, self._longest_backoff_s)
            self._failures = min(self._failures + 1, 30)
            self._next_regular = self._next_fetch = loop.time() + wait_s
            return
        finally:
            self._fetching = None
        self._failures = 0
        self._next_regular = loop.time() + self._refresh_s
        # Not for each made-up key of a stranger.
        self._next_fetch = loop.time() + self._longest_backoff_s

    def _read(self) -> dict[str | None, Key]:
        # Here, in a thread, and not for those who take no tokens: HTTP takes a while to load.
        from ottla.net.web import read_address

        return parse_keys(json.loads(read_address(self._url, FETCH_S)))


def parse_keys(document: Any) -> dict[str | None, Key]:
    """The keys of a JWK set by id; the only one also without. Those that will not do are logged, and left out."""
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("not a JWK set, which is an object with a list `keys`")
    keys: dict[str | None, Key] = {}
    for entry in entries:
        if (
            not isinstance(entry, dict)
            or entry.get("use", "sig") != "sig"
            or entry.get("kty") not in tuple(_ALGORITHMS)
        ):
            continue
        try:
            key_id, key = _parse_key(entry)
        except ValueError as error:
            shown = f"{entry.get('kid')!r:.100} of type {entry['kty']}"
            log.warning("key %s for OAUTHBEARER cannot be used: %s; have it corrected in the key set", shown, error)
            continue
        keys[key_id] = key
    if len(keys) == 1:
        keys[None] = next(iter(keys.values()))
    return keys


def _parse_key(entry: dict[str, Any]) -> tuple[str | None, Key]:
    from jwt import PyJWK, PyJWTError

    key_id, kind, algorithm = entry.get("kid"), entry["kty"], entry.get("alg")
    if not isinstance(key_id, str | None):
        raise ValueError("its `kid` is no text")
    # Keys of RSA do for several algorithms, unless they say for which one they are.
    allowed = _ALGORITHMS[kind]
    if algorithm is not None and algorithm not in allowed:
        raise ValueError(f"its `alg` is {algorithm!r:.100}; {', '.join(allowed)} will do")
    try:
        found = PyJWK(entry)
    except (PyJWTError, TypeError, ValueError) as error:
        raise ValueError(str(error)) from None
    if kind != "RSA" or algorithm is not None:
        allowed = tuple(one for one in allowed if one == found.algorithm_name)
    return key_id, Key(found.key, allowed)
