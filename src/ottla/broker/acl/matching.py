"""Which rules concern somebody who wants to do something, and what they say. No state, no defaults, no super users."""

from collections.abc import Iterator
from functools import cached_property

from ottla.cluster.acl import (
    ACL,
    EVERYBODY,
    WILDCARD,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    Acls,
    ResourcePattern,
    ResourceType,
)
from ottla.config.address import plain_host

_IMPLIED = {
    ACLOperation.DESCRIBE: frozenset(
        {ACLOperation.READ, ACLOperation.WRITE, ACLOperation.DELETE, ACLOperation.ALTER, ACLOperation.DESCRIBE}
    ),
    ACLOperation.DESCRIBE_CONFIGS: frozenset({ACLOperation.ALTER_CONFIGS, ACLOperation.DESCRIBE_CONFIGS}),
}
"""Operations of which each, where it is allowed, allows another one too. Where it is denied, it denies only itself."""

IN_NO_NAME = "\0"
"""What no name has in it."""


class Rules:
    """The rules at one moment.

    >>> from ottla.cluster.acl import ACLPermissionType
    >>> orders = ResourcePattern(ResourceType.TOPIC, "orders-", ACLResourcePatternType.PREFIXED)
    >>> rule = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders)
    >>> rules = Rules({orders: frozenset({rule})})
    >>> rules.decide("User:alice", "10.0.0.1", ACLOperation.DESCRIBE, ResourceType.TOPIC, "orders-eu")
    True
    >>> rules.decide("User:bob", "10.0.0.1", ACLOperation.DESCRIBE, ResourceType.TOPIC, "orders-eu")
    False
    """

    def __init__(self, acls: Acls) -> None:
        self._acls = acls

    @cached_property
    def _prefix_lengths(self) -> dict[ResourceType, list[int]]:
        """The lengths of all prefixes: there are few different ones, however many prefixes there are."""
        lengths: dict[ResourceType, set[int]] = {}
        for pattern in self._acls:
            if pattern.pattern_type is ACLResourcePatternType.PREFIXED:
                lengths.setdefault(pattern.resource_type, set()).add(len(pattern.resource_name))
        return {kind: sorted(some) for kind, some in lengths.items()}

    def decide(
        self, principal: str, host: str, operation: ACLOperation, resource_type: ResourceType, name: str
    ) -> bool | None:
        """Whether the rules allow it: no if one denies it, else yes if one allows it. None if none is about it."""
        allowed = False
        concerned = False
        for rule in self._about(resource_type, name):
            concerned = True
            if _applies(rule, principal, host, operation):
                if rule.permission_type is ACLPermissionType.DENY:
                    return False
                allowed = True
        return allowed if concerned else None

    def decide_some(self, principal: str, host: str, operation: ACLOperation, resource_type: ResourceType) -> bool:
        """Whether they allow it for some resource of a type, which need not be there."""
        return any(
            pattern.resource_type is resource_type
            and any(
                rule.permission_type is ACLPermissionType.ALLOW and _applies(rule, principal, host, operation)
                for rule in rules
            )
            and self.decide(principal, host, operation, resource_type, _example(pattern)) is True
            for pattern, rules in self._acls.items()
        )

    def _about(self, resource_type: ResourceType, name: str) -> Iterator[ACL]:
        acls = self._acls
        for literal in (name, WILDCARD) if name != WILDCARD else (WILDCARD,):
            yield from acls.get(ResourcePattern(resource_type, literal), ())
        for length in self._prefix_lengths.get(resource_type, ()):
            if length > len(name):
                break
            prefix = ResourcePattern(resource_type, name[:length], ACLResourcePatternType.PREFIXED)
            yield from acls.get(prefix, ())


def _example(pattern: ResourcePattern) -> str:
    """A resource that the pattern is about, and as few others as can be."""
    if pattern.pattern_type is ACLResourcePatternType.PREFIXED:
        return pattern.resource_name + IN_NO_NAME
    return IN_NO_NAME if pattern.resource_name == WILDCARD else pattern.resource_name


def _applies(rule: ACL, principal: str, host: str, operation: ACLOperation) -> bool:
    if rule.principal not in (principal, EVERYBODY):
        return False
    if rule.host != WILDCARD and plain_host(rule.host) != plain_host(host):
        return False
    if rule.operation in (operation, ACLOperation.ALL):
        return True
    return rule.permission_type is ACLPermissionType.ALLOW and rule.operation in _IMPLIED.get(operation, ())
