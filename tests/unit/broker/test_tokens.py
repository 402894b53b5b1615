"""Tokens of OAUTHBEARER against a set of keys: what is good, and everything that is not."""

import asyncio
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.utils import base64url_encode

from ottla.broker.exchanges import BearerExchange
from ottla.broker.tokens import LONGEST_TOKEN, Bearer, Tokens, parse_keys
from ottla.broker.turns import MOST_WAITING, FullLineError
from ottla.config.broker import BrokerConfig
from ottla.net.sasl.errors import SaslError
from ottla.wire.errors import KafkaError

EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_EC_KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ED_KEY = ed25519.Ed25519PrivateKey.generate()

HOST = "10.0.0.7"
DAY = 24 * 60 * 60
"""Tokens that are made when tests are collected must be what they are until the last one has run."""


def key_set(**keys: Any) -> dict[str, Any]:
    """A JWK set of public keys by their ids."""
    found = []
    for name, key in keys.items():
        kind: Any = OKPAlgorithm
        if isinstance(key, ec.EllipticCurvePrivateKey):
            kind = ECAlgorithm
        elif isinstance(key, rsa.RSAPrivateKey):
            kind = RSAAlgorithm
        found.append({**json.loads(kind.to_jwk(key.public_key())), "kid": name})
    return {"keys": found}


def token(key: Any = EC_KEY, algorithm: str = "ES256", key_id: str | None = "one", **claims: Any) -> str:
    now = int(time.time())
    body = {"sub": "alice", "aud": "ottla", "iss": "us", "iat": now, "exp": now + 2 * DAY, **claims}
    headers = {} if key_id is None else {"kid": key_id}
    return jwt.encode({name: value for name, value in body.items() if value is not None}, key, algorithm, headers)


def write_keys(folder: Path, document: Any) -> str:
    file = folder / "keys.json"
    file.write_text(json.dumps(document))
    return file.as_uri()


def run(url: str, story: Callable[[Tokens], Coroutine[Any, Any, Any]], **settings: str) -> Any:
    async def main() -> Any:
        tokens = Tokens(
            BrokerConfig(
                {
                    "sasl.oauthbearer.jwks.endpoint.url": url,
                    **{f"sasl.oauthbearer.{name.replace('_', '.')}": value for name, value in settings.items()},
                }
            ),
            "SASL_SSL",
        )
        try:
            return await story(tokens)
        finally:
            tokens.close()

    return asyncio.run(main())


@pytest.fixture
def url(tmp_path: Path) -> str:
    return write_keys(tmp_path, key_set(one=EC_KEY, two=RSA_KEY, three=ED_KEY))


@pytest.mark.parametrize(
    ("key", "algorithm", "key_id"),
    [(EC_KEY, "ES256", "one"), (RSA_KEY, "RS256", "two"), (RSA_KEY, "PS512", "two"), (ED_KEY, "EdDSA", "three")],
)
def test_a_good_token_names_its_user_and_its_end(url: str, key: Any, algorithm: str, key_id: str) -> None:
    end = int(time.time()) + 100
    found = run(url, lambda tokens: tokens.check(token(key, algorithm, key_id, exp=end), HOST), clock_skew_seconds="5")
    assert found == Bearer("alice", (end + 5) * 1000)


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (token(OTHER_EC_KEY), "Signature verification failed"),
        (token(key_id="made-up"), "no key 'made-up'"),
        (token(key_id=None), "which key"),
        (token(exp=int(time.time()) - 60), "expired"),
        (token(exp=None), "exp"),
        (token(iat=None), "iat"),
        (token(iat=int(time.time()) + DAY), "not yet valid"),
        (token(nbf=int(time.time()) + DAY), "not yet valid"),
        (token(sub=None), "sub"),
        (token(sub=""), "sub"),
        (token(aud="others"), "udience"),
        (token(aud=None), "aud"),
        (token(iss="others"), "ssuer"),
        (jwt.encode({"sub": "alice"}, "", "none", {"kid": "one"}), "not good"),
        (jwt.encode({"sub": "alice"}, "x" * 64, "HS256", {"kid": "one"}), "not good"),
        ("", "cannot be read"),
        ("abc", "cannot be read"),
        ("a.b.c", "cannot be read"),
        ("x" * (LONGEST_TOKEN + 1), "characters"),
    ],
)
def test_what_is_not_good_is_refused_and_the_reason_does_not_repeat_it(url: str, bad: str, complaint: str) -> None:
    with pytest.raises(SaslError, match=complaint) as refused:
        run(
            url,
            lambda tokens: tokens.check(bad, HOST),
            expected_audience="ottla",
            expected_issuer="us",
            clock_skew_seconds="30",
        )
    assert not bad or bad not in str(refused.value)


def test_audience_and_issuer_are_as_the_settings_say(url: str) -> None:
    good = token(aud=["others", "ottla"])
    assert (
        run(url, lambda tokens: tokens.check(good, HOST), expected_audience="x,ottla", expected_issuer="us").user
        == "alice"
    )


@pytest.mark.parametrize("prefix", ["listener.name.outer.", "listener.name.outer.oauthbearer."])
def test_a_listener_may_ask_for_another_audience(url: str, prefix: str) -> None:
    name = "sasl.oauthbearer.expected.audience"
    config = BrokerConfig({"sasl.oauthbearer.jwks.endpoint.url": url, name: "ottla", f"{prefix}{name}": "others"})

    async def main() -> None:
        outer, inner = Tokens(config, "OUTER"), Tokens(config, "INNER")
        try:
            assert (await inner.check(token(), HOST)).user == "alice"
            with pytest.raises(SaslError, match="udience"):
                await outer.check(token(), HOST)
        finally:
            outer.close()
            inner.close()

    asyncio.run(main())


def test_the_user_may_be_in_another_claim(url: str) -> None:
    good = token(azp="service")
    assert run(url, lambda tokens: tokens.check(good, HOST), sub_claim_name="azp").user == "service"


def test_who_is_too_many_is_not_told_that_the_token_is_bad(url: str) -> None:
    async def story(tokens: Tokens) -> None:
        said = f"n,,\1auth=Bearer {token()}\1\1".encode()
        await tokens.check(token(), HOST)
        crowd = [BearerExchange(tokens, HOST) for _ in range(MOST_WAITING + 3)]
        ends = await asyncio.gather(*[one.answer(said) for one in crowd], return_exceptions=True)
        assert ends[:-2] == [b""] * (MOST_WAITING + 1)
        assert [type(end) for end in ends[-2:]] == [FullLineError] * 2
        assert {one.refused for one in crowd} == {""}

    run(url, story)


def test_a_public_key_is_no_shared_secret(url: str) -> None:
    """The trick with which a library is led to check a signature by a hash that takes the public key for a secret."""
    public = EC_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = ({"alg": "HS256", "kid": "one"}, {"sub": "root", "iat": 0, "exp": 2**40})
    signed = b".".join(base64url_encode(json.dumps(part).encode()) for part in parts)
    forged = signed + b"." + base64url_encode(hmac.digest(public, signed, "sha256"))
    with pytest.raises(SaslError, match="alg value is not allowed"):
        run(url, lambda tokens: tokens.check(forged.decode(), HOST))


def test_shared_secrets_and_keys_for_encryption_are_not_taken_from_a_set() -> None:
    document = key_set(one=EC_KEY, two=RSA_KEY)
    document["keys"][1]["use"] = "enc"
    document["keys"].append({"kty": "oct", "k": "c2VjcmV0", "kid": "three"})
    assert set(parse_keys(document)) == {"one", None}


BAD_KEYS: dict[str, tuple[dict[str, Any], str]] = {
    "a short coordinate": ({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}, "Coords should be 32 bytes"),
    "a number for a text": ({"kty": "RSA", "n": 5, "e": "AQAB"}, "Expected a string"),
    "nothing in it": ({"kty": "OKP"}, "cannot be used"),
    "no algorithm": ({"kty": "RSA", "n": "AQAB", "e": "AQAB", "alg": "none"}, "its `alg` is 'none'; RS256, RS384"),
    "a list for an id": ({"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": ["bad-7"]}, "its `kid` is no text"),
}


@pytest.mark.parametrize("trouble", BAD_KEYS)
def test_a_key_that_is_broken_is_named_and_the_others_are_used(trouble: str, caplog: pytest.LogCaptureFixture) -> None:
    entry, complaint = BAD_KEYS[trouble]
    document = key_set(one=EC_KEY)
    document["keys"].append({"kid": "bad-7", **entry})
    assert set(parse_keys(document)) == {"one", None}
    assert "bad-7" in caplog.text
    assert complaint in caplog.text


def test_a_type_that_is_no_text_is_passed_over() -> None:
    assert parse_keys({"keys": [{"kty": ["EC"]}, 7]}) == {}


def test_a_new_key_is_found_when_a_token_needs_it(tmp_path: Path) -> None:
    url = write_keys(tmp_path, key_set(one=EC_KEY))

    async def story(tokens: Tokens) -> None:
        await tokens.check(token(), HOST)
        write_keys(tmp_path, key_set(one=EC_KEY, new=OTHER_EC_KEY))
        deadline = asyncio.get_running_loop().time() + 10
        while True:
            try:
                assert (await tokens.check(token(OTHER_EC_KEY, key_id="new"), HOST)).user == "alice"
                return
            except SaslError:
                assert asyncio.get_running_loop().time() < deadline
                await asyncio.sleep(0.01)

    run(url, story, jwks_endpoint_retry_backoff_max_ms="50")


def test_keys_that_cannot_be_had_are_told_in_the_log_and_those_that_were_had_stay_good(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = write_keys(tmp_path, key_set(one=EC_KEY))

    async def story(tokens: Tokens) -> None:
        await tokens.check(token(), HOST)
        (tmp_path / "keys.json").write_text("{")
        await asyncio.sleep(0.02)
        await tokens.check(token(), HOST)

    run(url, story, jwks_endpoint_refresh_ms="1")
    assert "cannot get the keys for OAUTHBEARER" in caplog.text


def test_made_up_keys_do_not_have_the_set_fetched_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = write_keys(tmp_path, key_set(one=EC_KEY))
    reads = []
    original = Tokens._read

    def counted(self: Tokens) -> Any:
        reads.append(1)
        return original(self)

    monkeypatch.setattr(Tokens, "_read", counted)

    async def story(tokens: Tokens) -> None:
        for number in range(50):
            with pytest.raises(SaslError):
                await tokens.check(token(key_id=f"made-up-{number}"), HOST)

    run(url, story)
    assert len(reads) == 1


def test_whoever_leaves_while_keys_are_fetched_has_them_fetched_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = write_keys(tmp_path, key_set(one=EC_KEY))
    reads = []
    go_on = threading.Event()
    original = Tokens._read

    def slow(self: Tokens) -> Any:
        reads.append(1)
        assert go_on.wait(10)
        return original(self)

    monkeypatch.setattr(Tokens, "_read", slow)

    async def story(tokens: Tokens) -> None:
        first, *others = [asyncio.ensure_future(tokens.check(token(), HOST)) for _ in range(3)]
        while not reads:
            await asyncio.sleep(0.001)
        first.cancel()
        await asyncio.wait([first])
        others.append(asyncio.ensure_future(tokens.check(token(), HOST)))
        await asyncio.sleep(0)
        go_on.set()
        assert [found.user for found in await asyncio.gather(*others)] == ["alice"] * 3

    run(url, story)
    assert len(reads) == 1


def test_a_server_that_answers_nonsense_is_asked_again_later(caplog: pytest.LogCaptureFixture) -> None:
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                asked.append(1)
                with client:
                    client.recv(10_000)
                    client.sendall(b"this is no HTTP\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()

        async def story(tokens: Tokens) -> None:
            for _ in range(3):
                with pytest.raises(SaslError, match="no key"):
                    await tokens.check(token(), HOST)

        run(f"http://127.0.0.1:{server.getsockname()[1]}/", story, jwks_endpoint_retry_backoff_ms="60000")
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert len(asked) == 1
    assert "cannot get the keys for OAUTHBEARER" in caplog.text


@pytest.mark.parametrize("url", ["", "keys.json", "ftp://keys"])
def test_a_broker_does_not_start_without_an_address_of_keys(url: str) -> None:
    with pytest.raises(KafkaError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url"):
        Tokens(BrokerConfig({"sasl.oauthbearer.jwks.endpoint.url": url}), "SASL_SSL")
