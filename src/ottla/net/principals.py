"""Who a certificate belongs to: its subject as Java writes names, and the rules that make a user's name of it."""

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from ottla.config.parse import refuse

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""The attributes that RFC 2253 has words for; others are written as numbers."""

_STRING_TAGS = frozenset({12, 19, 20, 22, 27, 28, 30})
_VERSION_TAG = 0xA0
_SUBJECT = 4
"""Where the subject stands, if the version is left out: after serial number, algorithm, issuer and validity."""
_ESCAPED = frozenset(',=+<>#;"\\')


class _Element(NamedTuple):
    tag: int
    whole: bytes
    content: bytes


def _elements(data: bytes) -> Iterator[_Element]:
    """The elements of an encoding that OpenSSL has checked already, one after the other."""
    position = 0
    while position < len(data):
        length, start = data[position + 1], position + 2
        if length & 0x80:
            start += length & 0x7F
            length = int.from_bytes(data[position + 2 : start])
        end = start + length
        yield _Element(data[position], data[position:end], data[start:end])
        position = end


def subject_name(certificate: bytes) -> str:
    """The subject of a certificate in DER, as Java's `X500Principal.getName` and so Kafka writes it (RFC 2253)."""
    (whole,) = _elements(certificate)
    fields = [one for one in _elements(next(_elements(whole.content)).content) if one.tag != _VERSION_TAG]
    names = [_relative_name(one.content) for one in _elements(fields[_SUBJECT].content)]
    return ",".join(reversed(names))


def _relative_name(data: bytes) -> str:
    parts = []
    for pair in _elements(data):
        kind, value = _elements(pair.content)
        parts.append(_attribute(_object_id(kind.content), value))
    return "+".join(parts)


def _attribute(kind: str, value: _Element) -> str:
    keyword = _KEYWORDS.get(kind)
    if keyword is None or value.tag not in _STRING_TAGS:
        return f"{keyword or kind}=#{value.whole.hex()}"
    # Whichever kind of string it is: Java takes all of them for this one.
    text = value.content.decode("utf-8", "replace")
    escaped = "".join("\\" + one if one in _ESCAPED else "\\00" if one == "\0" else one for one in text)
    # Spaces at either end would be lost.
    begun = escaped.lstrip(" ")
    ended = begun.rstrip(" ")
    return keyword + "=" + "\\ " * (len(escaped) - len(begun)) + ended + "\\ " * (len(begun) - len(ended))


def _object_id(data: bytes) -> str:
    numbers, number = [], 0
    for byte in data:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    replacement: str
    case: str


_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")


class PrincipalRules:
    """Kafka's `ssl.principal.mapping.rules`: the first rule whose pattern is the whole name makes the user's.

    >>> rules = PrincipalRules("RULE:^CN=(.*?),OU=Service.*$/$1/L, DEFAULT")
    >>> rules.user("CN=Billing,OU=Service,O=Shop"), rules.user("CN=alice")
    ('billing', 'CN=alice')
    >>> PrincipalRules("RULE:^CN=(.*?)$/$1/").user("OU=nobody") is None
    True
    """

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule | None] = []
        position = 0
        while position < len(text.strip()):
            found = _RULE.match(text, position)
            if found is None:
                _refuse(text, f"{text[position:]!r} is no rule; write RULE:PATTERN/REPLACEMENT/, or DEFAULT")
            position = found.end()
            if found[1]:
                self._rules.append(None)
                continue
            try:
                pattern = re.compile(found[2])
                replacement = _replacement(found[3])
                pattern.sub(replacement, "")
            except (re.error, IndexError) as error:
                _refuse(text, f"{found[2]!r} with {found[3]!r} is no regular expression: {error}")
            self._rules.append(_Rule(pattern, replacement, found[4]))

    def user(self, name: str) -> str | None:
        """The user that a certificate's name stands for; None if no rule says."""
        for rule in self._rules:
            if rule is None:
                return name
            if rule.pattern.fullmatch(name):
                found = rule.pattern.sub(rule.replacement, name)
                return found.lower() if rule.case == "L" else found.upper() if rule.case == "U" else found
        return None


def _replacement(java: str) -> str:
    """Groups as Python writes them: `$1` is `\\g<1>`."""
    unescaped = re.sub(r"\\(.)", r"\1", java)
    return re.sub(r"\$(\d)", r"\\g<\1>", unescaped.replace("\\", "\\\\"))


def _refuse(text: str, complaint: str) -> NoReturn:
    refuse("ssl.principal.mapping.rules", text, complaint)
