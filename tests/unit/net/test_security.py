"""What clients are told about security, checked where it comes in."""

import inspect
import pickle
from dataclasses import fields

import pytest

from ottla import Admin, Consumer, Producer, read_table, sync
from ottla.net.security import Security, SecurityOptions, security_of


def test_the_keyword_arguments_are_the_fields() -> None:
    assert list(SecurityOptions.__annotations__) == [one.name for one in fields(Security)]


@pytest.mark.parametrize(
    "client", [Producer, Consumer, Admin, read_table, sync.Producer, sync.Consumer, sync.Admin, sync.read_table]
)
def test_every_client_shows_them_with_their_defaults(client: object) -> None:
    shown = inspect.signature(client).parameters  # type: ignore[arg-type]
    assert {one.name: one.default for one in fields(Security)}.items() <= {
        name: one.default for name, one in shown.items()
    }.items()
    assert not [one for one in shown.values() if one.kind is inspect.Parameter.VAR_KEYWORD]


def test_a_wrong_name_is_refused_as_python_does() -> None:
    with pytest.raises(TypeError, match=r"Producer\(\) got an unexpected keyword argument 'ssl_ca'"):
        Producer(ssl_ca="ca.pem")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"security_protocol": "TLS"}, "security_protocol is 'TLS'; it must be one of PLAINTEXT, SSL"),
        ({"ssl_cafile": "ca.pem"}, "ssl_cafile is set, but security_protocol is 'PLAINTEXT'"),
        ({"security_protocol": "SSL", "ssl_cafile": b"ca.pem"}, "ssl_cafile is of type bytes; give a str"),
        ({"security_protocol": "SSL", "ssl_context": "context"}, "ssl_context is of type str"),
        ({"security_protocol": "SSL", "ssl_keyfile": "key.pem"}, "ssl_keyfile is set without ssl_certfile"),
    ],
)
def test_what_does_not_go_together_is_said(options: SecurityOptions, said: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        security_of(options, "Producer")
    assert said in str(caught.value)


def test_secrets_are_not_shown_and_it_can_be_sent_to_other_processes() -> None:
    security = Security(
        security_protocol="ssl", ssl_certfile="-----BEGIN X", ssl_keyfile="-----BEGIN SECRET", ssl_password="hidden"
    )
    assert "SECRET" not in repr(security)
    assert "hidden" not in repr(security)
    assert pickle.loads(pickle.dumps(security)) == security
