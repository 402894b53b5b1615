"""What clients may say about logins."""

import pickle
from typing import Any

import pytest

from ottla.net.security import Security

LOGIN: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "alice",
    "sasl_plain_password": "wonder-4711",
}


@pytest.mark.parametrize("mechanism", ["PLAIN", "scram-sha-256", "SCRAM-SHA-512"])
def test_a_login_needs_mechanism_name_and_password(mechanism: str) -> None:
    found = Security(**{**LOGIN, "sasl_mechanism": mechanism})
    assert (found.sasl_mechanism, found.uses_sasl, found.uses_tls) == (mechanism.upper(), True, False)
    for name in ("sasl_mechanism", "sasl_plain_username", "sasl_plain_password"):
        with pytest.raises(ValueError, match=name):
            Security(**{**LOGIN, "sasl_mechanism": mechanism, name: None})


def test_tokens_need_what_gives_them() -> None:
    options = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
    with pytest.raises(ValueError, match="sasl_oauth_token_provider"):
        Security(**options)  # type: ignore[arg-type]
    assert Security(**options, sasl_oauth_token_provider=str).uses_tls  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["sasl_mechanism", "sasl_plain_username", "sasl_plain_password"])
@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_login_that_would_not_happen_is_told(name: str, protocol: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is set, but security_protocol is '{protocol}'"):
        Security(security_protocol=protocol, **{name: LOGIN[name]})


def test_mistakes_are_told_without_the_password() -> None:
    for wrong in ({"sasl_mechanism": "GSSAPI"}, {"sasl_plain_username": 7}, {"sasl_plain_password": b"wonder-4711"}):
        with pytest.raises((ValueError, TypeError)) as refused:
            Security(**{**LOGIN, **wrong})
        assert "wonder-4711" not in str(refused.value)


def test_the_password_does_not_show_and_travels_to_other_processes() -> None:
    found = Security(**LOGIN)
    assert "wonder-4711" not in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(found) == hash(Security(**LOGIN))
