"""Addresses that configs, quotas and rules of access name, each in the one form that sockets give them."""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from ottla.config.parse import Value

LONGEST = 100
"""No address has more letters, with whatever zone. What strangers write may, and is not to be remembered."""


def plain_host(text: str) -> str:
    """An address in the one form that all its forms have in common; what is no address as it is.

    >>> plain_host("::ffff:10.0.0.1"), plain_host("0:0:0:0:0:0:0:1"), plain_host("here")
    ('10.0.0.1', '::1', 'here')
    """
    return text if len(text) > LONGEST else _plain_host(text)


@lru_cache(maxsize=10_000)
def _plain_host(text: str) -> str:
    try:
        address = ip_address(text)
    except ValueError:
        return text
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


def parse_limits(entries: tuple[str, ...]) -> dict[str, int]:
    """Read `ADDRESS:NUMBER` entries; ValueError says what is wrong with them.

    >>> parse_limits(("10.0.0.7:200", "::1:3"))
    {'10.0.0.7': 200, '::1': 3}
    """
    limits: dict[str, int] = {}
    for entry in entries:
        address, _, number = entry.rpartition(":")
        # One that stands in brackets, as in listeners.
        bare = address.strip().removeprefix("[").removesuffix("]")
        try:
            host = str(ip_address(plain_host(bare)))
        except ValueError:
            raise ValueError(f"{entry!r} has no address before its last colon; write it like 10.0.0.7:200") from None
        if not (number.isascii() and number.isdigit()):
            raise ValueError(f"{entry!r} ends in no number of connections; write it like 10.0.0.7:200")
        if host in limits:
            raise ValueError(f"{host} is there twice")
        limits[host] = int(number)
    return limits


def check_limits(value: Value) -> str | None:
    """What is wrong with limits by address, or None."""
    assert isinstance(value, tuple)
    try:
        parse_limits(value)
    except ValueError as error:
        return str(error)
    return None
