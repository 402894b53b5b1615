"""Logins as Kafka's configs write them: a line in the language of Java's JAAS.

`org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="wonder";`
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_TOKEN = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([=;])|([^\s=;"']+))""", re.DOTALL)
_FLAGS = ("required", "requisite", "sufficient", "optional")


@dataclass(frozen=True, slots=True)
class JaasLogin:
    """A login module and its options."""

    module: str
    """The module's class, without its package."""
    options: Mapping[str, str] = field(repr=False)

    @property
    def users(self) -> dict[str, str]:
        """Passwords by user, as a broker's PLAIN module lists them."""
        found = {name.removeprefix("user_"): text for name, text in self.options.items() if name.startswith("user_")}
        return {name: password for name, password in found.items() if name}


def parse_jaas(text: str) -> JaasLogin:
    """Read one login; ValueError says what is wrong, but never repeats what may be a password.

    >>> login = parse_jaas('a.b.PlainLoginModule required username="alice" password="a \\\\"b\\\\"" user_bob=c;')
    >>> login.module, login.options["password"], login.users
    ('PlainLoginModule', 'a "b"', {'bob': 'c'})
    >>> parse_jaas("PlainLoginModule required username=alice")
    Traceback (most recent call last):
    ValueError: it does not end with a semicolon
    """
    tokens = _tokens(text)
    if not tokens or tokens[-1] != (";", True):
        raise ValueError("it does not end with a semicolon")
    if (";", True) in tokens[:-1]:
        raise ValueError("it has several login modules; write one")
    words = tokens[:-1]
    if len(words) < 2 or words[0][1] or words[1][0].lower() not in _FLAGS:
        raise ValueError("it does not begin with a login module and the word 'required'")
    options: dict[str, str] = {}
    rest = words[2:]
    for number, position in enumerate(range(0, len(rest), 3), 1):
        group = rest[position : position + 3]
        if len(group) < 3 or group[0][1] or group[1] != ("=", True) or group[2][1]:
            raise ValueError(f'its option number {number} is not of the form name="value"')
        options[group[0][0]] = group[2][0]
    return JaasLogin(words[0][0].rpartition(".")[2], MappingProxyType(options))


def _tokens(text: str) -> list[tuple[str, bool]]:
    """Words, and whether each is a sign."""
    text = text.strip()
    found: list[tuple[str, bool]] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError("it has a quotation mark that is not closed")
        double, single, sign, word = match.groups()
        quoted = double if double is not None else single
        found.append((re.sub(r"\\(.)", r"\1", quoted), False) if quoted is not None else (sign or word, bool(sign)))
        position = match.end()
    return found
