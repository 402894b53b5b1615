"""Rules of access: who may do what to which resources, from where. Their names and numbers are Kafka's.

The classes are called as in kafka-python, whose users know them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ottla.wire.errors import ErrorCode, KafkaError

WILDCARD = "*"
"""As the name of a literal resource, as a host, and after `User:`: any."""

EVERYBODY = "User:*"

CLUSTER_NAME = "kafka-cluster"
"""The one name that a resource of type CLUSTER has."""

LONGEST_TEXT = 1000
"""Characters of a resource's name, a principal or a host. Rules are kept, in memory too."""


class ResourceType(IntEnum):
    """What a rule is about.

    >>> ResourceType.TOPIC, ResourceType["GROUP"].value
    (<ResourceType.TOPIC: 2>, 3)
    """

    UNKNOWN = 0
    ANY = 1
    """In filters."""
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class ACLResourcePatternType(IntEnum):
    """How a rule's resource name is meant.

    >>> ACLResourcePatternType.PREFIXED.name
    'PREFIXED'
    """

    UNKNOWN = 0
    ANY = 1
    """In filters: whichever."""
    MATCH = 2
    """In filters: all rules that concern the resource of that name, the prefixes and `*` too."""
    LITERAL = 3
    """The resource of that name; `*` stands for all."""
    PREFIXED = 4
    """Resources whose names begin with it."""


class ACLOperation(IntEnum):
    """What one may do.

    >>> ACLOperation.READ.name, ACLOperation.ALL.value
    ('READ', 2)
    """

    UNKNOWN = 0
    ANY = 1
    """In filters."""
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ACLPermissionType(IntEnum):
    """Whether a rule allows or denies.

    >>> ACLPermissionType.DENY < ACLPermissionType.ALLOW
    True
    """

    UNKNOWN = 0
    ANY = 1
    """In filters."""
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True)
class ResourcePattern:
    """The resources that a rule is about.

    >>> ResourcePattern(ResourceType.TOPIC, "orders").pattern_type.name
    'LITERAL'
    """

    resource_type: ResourceType
    resource_name: str
    pattern_type: ACLResourcePatternType = ACLResourcePatternType.LITERAL

    def __post_init__(self) -> None:
        _expect(ResourceType, self.resource_type, "resource_type")
        _expect(ACLResourcePatternType, self.pattern_type, "pattern_type")


@dataclass(frozen=True, slots=True)
class ACL:
    """A rule: a principal, such as `User:alice`, may or may not do something from a host, or with `*` from any.

    >>> orders = ResourcePattern(ResourceType.TOPIC, "orders")
    >>> ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders).resource_pattern.resource_name
    'orders'
    """

    principal: str
    host: str
    operation: ACLOperation
    permission_type: ACLPermissionType
    resource_pattern: ResourcePattern

    def __post_init__(self) -> None:
        _expect(ACLOperation, self.operation, "operation")
        _expect(ACLPermissionType, self.permission_type, "permission_type")

    def check(self) -> None:
        """INVALID_REQUEST if there can be no such rule.

        >>> orders = ResourcePattern(ResourceType.TOPIC, "orders")
        >>> ACL("alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders).check()
        Traceback (most recent call last):
            ...
        ottla.wire.errors.KafkaError: INVALID_REQUEST: principal 'alice': write it with its kind, as in User:alice
        """
        if (complaint := _complaint(self)) is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, complaint)


@dataclass(frozen=True, slots=True)
class ResourcePatternFilter:
    """Which resources to look for; a name of None stands for any.

    >>> wanted = ResourcePatternFilter(ResourceType.TOPIC, "orders-eu", ACLResourcePatternType.MATCH)
    >>> wanted.matches(ResourcePattern(ResourceType.TOPIC, "orders-", ACLResourcePatternType.PREFIXED))
    True
    """

    resource_type: ResourceType
    resource_name: str | None
    pattern_type: ACLResourcePatternType

    def __post_init__(self) -> None:
        _expect(ResourceType, self.resource_type, "resource_type")
        _expect(ACLResourcePatternType, self.pattern_type, "pattern_type")

    def matches(self, pattern: ResourcePattern) -> bool:
        """Whether it is one of those that are looked for.

        >>> ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.LITERAL).matches(
        ...     ResourcePattern(ResourceType.GROUP, "readers")
        ... )
        True
        """
        return _concerns(self, pattern)


@dataclass(frozen=True, slots=True)
class ACLFilter:
    """Which rules to look for; None stands for any principal or host.

    >>> everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    >>> wanted = ACLFilter("User:alice", None, ACLOperation.ANY, ACLPermissionType.ALLOW, everything)
    >>> orders = ResourcePattern(ResourceType.TOPIC, "orders")
    >>> wanted.matches(ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders))
    True
    """

    principal: str | None
    host: str | None
    operation: ACLOperation
    permission_type: ACLPermissionType
    resource_pattern: ResourcePatternFilter | ResourcePattern

    def __post_init__(self) -> None:
        _expect(ACLOperation, self.operation, "operation")
        _expect(ACLPermissionType, self.permission_type, "permission_type")

    def matches(self, rule: ACL) -> bool:
        """Whether it is one of those that are looked for.

        >>> orders = ResourcePattern(ResourceType.TOPIC, "orders")
        >>> rule = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders)
        >>> ACLFilter(None, "10.0.0.1", ACLOperation.ANY, ACLPermissionType.ANY, orders).matches(rule)
        False
        """
        return (
            self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (ACLOperation.ANY, rule.operation)
            and self.permission_type in (ACLPermissionType.ANY, rule.permission_type)
            and _concerns(self.resource_pattern, rule.resource_pattern)
        )

    def check(self) -> None:
        """INVALID_REQUEST if it asks for what is not known.

        >>> everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        >>> ACLFilter(None, None, ACLOperation.UNKNOWN, ACLPermissionType.ANY, everything).check()
        Traceback (most recent call last):
            ...
        ottla.wire.errors.KafkaError: INVALID_REQUEST: a filter cannot ask for what is UNKNOWN; ask for ANY
        """
        wanted = self.resource_pattern
        if not all((self.operation, self.permission_type, wanted.resource_type, wanted.pattern_type)):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a filter cannot ask for what is UNKNOWN; ask for ANY")


Acls = Mapping[ResourcePattern, frozenset[ACL]]
"""Rules by the resources that they are about."""


def _concerns(wanted: ResourcePatternFilter | ResourcePattern, pattern: ResourcePattern) -> bool:
    kinds = ACLResourcePatternType
    if wanted.resource_type not in (ResourceType.ANY, pattern.resource_type):
        return False
    if wanted.pattern_type not in (kinds.ANY, kinds.MATCH, pattern.pattern_type):
        return False
    if wanted.resource_name is None:
        return True
    if wanted.pattern_type is not kinds.MATCH:
        return wanted.resource_name == pattern.resource_name
    if pattern.pattern_type is kinds.PREFIXED:
        return wanted.resource_name.startswith(pattern.resource_name)
    return pattern.resource_name in (wanted.resource_name, WILDCARD)


def _expect(kind: type[IntEnum], value: Any, field: str) -> None:
    if not isinstance(value, kind):
        example = list(kind)[2]
        raise TypeError(f"{field} is {value!r}; give a {kind.__name__}, such as {kind.__name__}.{example.name}")


def _complaint(rule: ACL) -> str | None:
    pattern = rule.resource_pattern
    if pattern.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        return f"resource type {pattern.resource_type.name}: a rule is about one type, such as TOPIC"
    if pattern.pattern_type not in (ACLResourcePatternType.LITERAL, ACLResourcePatternType.PREFIXED):
        return f"pattern type {pattern.pattern_type.name}: a rule's is LITERAL or PREFIXED"
    if rule.operation in (ACLOperation.UNKNOWN, ACLOperation.ANY):
        return f"operation {rule.operation.name}: a rule is about one, or about ALL"
    if rule.permission_type not in (ACLPermissionType.DENY, ACLPermissionType.ALLOW):
        return f"permission type {rule.permission_type.name}: a rule's is ALLOW or DENY"
    if not pattern.resource_name:
        return "the resource has no name; '*' stands for all"
    if pattern.resource_type is ResourceType.CLUSTER and pattern.resource_name != CLUSTER_NAME:
        return f"cluster {pattern.resource_name[:100]!r}: the only name that a CLUSTER has is {CLUSTER_NAME!r}"
    kind, colon, name = rule.principal.partition(":")
    if not (kind and colon and name):
        return f"principal {rule.principal[:100]!r}: write it with its kind, as in User:alice"
    if not rule.host:
        return "the rule has no host; '*' stands for any"
    longest = max(map(len, (pattern.resource_name, rule.principal, rule.host)))
    if longest > LONGEST_TEXT:
        return f"a name, principal or host has {longest} characters, and at most {LONGEST_TEXT} are possible"
    return None
