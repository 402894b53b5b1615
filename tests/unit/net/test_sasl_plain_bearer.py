"""PLAIN and OAUTHBEARER: what is read, and what is refused."""

import pytest

from ottla.net.sasl.bearer import BearerClient, parse_bearer
from ottla.net.sasl.errors import SaslError
from ottla.net.sasl.plain import PlainClient, parse_plain


@pytest.mark.parametrize(("user", "password"), [("alice", "wonder"), ("Jürgen", "pä ss\N{SNOWMAN}"), ("a,b=c", "\x01")])
def test_name_and_password_arrive_as_they_were_given(user: str, password: str) -> None:
    found = parse_plain(PlainClient(user, password).first())
    assert (found.user, found.password) == (user, password)


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"alice",
        b"\0alice",
        b"\0alice\0",
        b"\0\0wonder",
        b"root\0alice\0wonder",
        b"\0alice\0wonder\0",
        b"\0al\0ice\0wonder",
        b"\0alice\0\xff",
        b"\0alice\0" + b"wonder" * 1000,
    ],
)
def test_messages_of_plain_that_make_no_sense_are_refused(token: bytes) -> None:
    with pytest.raises(SaslError) as refused:
        parse_plain(token)
    assert "wonder" not in str(refused.value)


def test_a_password_does_not_show() -> None:
    assert "wonder" not in repr(parse_plain(b"\0alice\0wonder"))
    assert "wonder" not in repr(PlainClient("alice", "wonder"))


def test_a_zero_in_a_name_would_move_the_password_and_is_refused() -> None:
    with pytest.raises(SaslError):
        PlainClient("alice\0x", "wonder")


def test_a_broker_that_asks_for_more_than_plain_has_is_not_answered() -> None:
    with pytest.raises(SaslError):
        PlainClient("alice", "wonder").answer(b"again")


def test_token_and_extensions_arrive_as_they_were_given() -> None:
    found = parse_bearer(BearerClient("a.b-_c.d", {"traceId": "1 2"}).first())
    assert (found.token, found.extensions, found.acts_as) == ("a.b-_c.d", {"traceId": "1 2"}, "")
    assert "a.b" not in repr(found)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer abc\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"y,,\x01auth=Bearer abc\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01au th=Bearer abc\x01\x01",
        b"n,,\x01x=y\x01\x01",
        b"n,,\x01auth=Bearer a\x00bc\x01\x01",
        b"\xff,,\x01auth=Bearer abc\x01\x01",
    ],
)
def test_messages_of_oauthbearer_that_make_no_sense_are_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        parse_bearer(message)


def test_a_token_cannot_smuggle_in_an_extension() -> None:
    with pytest.raises(SaslError):
        BearerClient("abc\x01scope=all")


def test_a_client_ends_a_refusal_as_the_standard_has_it() -> None:
    client = BearerClient("abc")
    assert client.answer(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SaslError, match="invalid_token"):
        client.answer(b'{"status":"invalid_token"}')
    assert BearerClient("abc").answer(b"") is None
