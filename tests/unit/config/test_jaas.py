import pytest

from ottla.config.jaas import parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f'{PLAIN} required username="alice" password="wonder";', {"username": "alice", "password": "wonder"}),
        (f"{PLAIN} required username='alice' password='won\"der';", {"username": "alice", "password": 'won"der'}),
        (f'{PLAIN} required\n  username = alice\n  password = "a=b;c" ;\n', {"username": "alice", "password": "a=b;c"}),
        (f'{PLAIN} REQUIRED password="a\\\\b\\"c";', {"password": 'a\\b"c'}),
        (f"{PLAIN} required;", {}),
    ],
)
def test_logins_are_read_as_kafka_writes_them(text: str, options: dict[str, str]) -> None:
    found = parse_jaas(text)
    assert (found.module, dict(found.options)) == ("PlainLoginModule", options)


def test_a_brokers_users_are_those_that_are_listed() -> None:
    found = parse_jaas(f'{PLAIN} required username="admin" password="x" user_admin="x" user_alice="y" user_="z";')
    assert found.users == {"admin": "x", "alice": "y"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "secret",
        f'{PLAIN} required password="secret"',
        f'{PLAIN} required password="secret',
        f"{PLAIN} required password=;",
        f"{PLAIN} required secret;",
        f'{PLAIN} required password "secret";',
        f'{PLAIN} password="secret";',
        f'{PLAIN} required password="secret"; {PLAIN} required;',
    ],
)
def test_what_cannot_be_read_is_told_without_its_secrets(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_jaas(text)
    assert "secret" not in str(refused.value)


def test_passwords_do_not_show() -> None:
    assert "secret" not in repr(parse_jaas(f'{PLAIN} required password="secret";'))
