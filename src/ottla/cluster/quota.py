"""Quotas: how much users, clients and addresses may use. Names are Kafka's.

A quota is for an entity: a user, a client id, both together, or an address. An entity without a name stands for all
that have no quota of their own.
"""

import math
from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from ottla.config.address import plain_host
from ottla.wire.errors import ErrorCode, KafkaError

USER, CLIENT_ID, IP = "user", "client-id", "ip"

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONNECTION_CREATION_RATE = "connection_creation_rate"

OF_CLIENTS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE)
OF_ADDRESSES = (CONNECTION_CREATION_RATE,)

LONGEST_NAME = 1000

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Types and names, in the order of the types; None is the default of its type."""

QuotaValues = Mapping[str, float]
"""Limits by their key."""


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """An entity of its parts; INVALID_REQUEST if there is no such kind.

    >>> quota_entity([("user", "alice"), ("client-id", None)])
    (('client-id', None), ('user', 'alice'))
    """
    found = tuple(sorted(parts, key=lambda part: part[0]))
    types = [kind for kind, _ in found]
    if types not in ([USER], [CLIENT_ID], [CLIENT_ID, USER], [IP]):
        together = " and ".join(types)
        raise _invalid(f"a quota is for a user, a client-id, both, or an ip, and not for {together or 'nobody'}")
    for kind, name in found:
        if name is not None and not 0 < len(name) <= LONGEST_NAME:
            raise _invalid(f"the name of a {kind} has 1 to {LONGEST_NAME} characters, and not {len(name)}")
    if types == [IP] and (address := found[0][1]) is not None:
        try:
            ip_address(address)
        except ValueError:
            raise _invalid(f"{address!r} is no address; write one such as 10.0.0.7") from None
        # In the form that sockets give it: in another it would fit nobody.
        return ((IP, plain_host(address)),)
    return found


def check_quota(entity: QuotaEntity, key: str, value: float) -> None:
    """INVALID_REQUEST if such an entity has no such limit, or not of that size."""
    keys = OF_ADDRESSES if entity[0][0] == IP else OF_CLIENTS
    if key not in keys:
        whom = "an address" if keys is OF_ADDRESSES else "users and client ids"
        raise _invalid(f"there is no quota {key!r} for {whom}; there is {', '.join(keys)}")
    if not (math.isfinite(value) and value > 0):
        raise _invalid(f"{key} = {value}: a limit is above 0; remove the quota if there is to be none")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
