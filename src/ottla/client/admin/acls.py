"""Rules of access: who may do what to which resources."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, TypeVar

from ottla.client.admin.part import AdminPart, Answers, lacks, list_of
from ottla.client.checks import shown
from ottla.client.errors import check, error_of
from ottla.cluster.acl import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from ottla.net import Connection
from ottla.wire.api.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.api.delete_acls import DeleteAclsFilter, DeleteAclsMatchingAcl, DeleteAclsRequest
from ottla.wire.api.describe_acls import AclDescription, DescribeAclsRequest, DescribeAclsResource
from ottla.wire.errors import KafkaError

E = TypeVar("E", bound=IntEnum)

FIRST_VERSION_WITH_PATTERNS = 1


class AclAdmin(AdminPart):
    """The methods that concern rules of access. Brokers without an authorizer answer SECURITY_DISABLED to all."""

    async def describe_acls(self, acl_filter: ACLFilter) -> list[ACL]:
        """The rules that a filter matches.

        >>> orders = ResourcePattern(ResourceType.TOPIC, "orders")
        >>> rule = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders)
        >>> run(lambda admin: admin.create_acls([rule]))
        >>> everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        >>> wanted = ACLFilter("User:alice", None, ACLOperation.ANY, ACLPermissionType.ANY, everything)
        >>> run(lambda admin: admin.describe_acls(wanted)) == [rule]
        True
        """
        (wanted,) = _filters([acl_filter])

        async def ask(connection: Connection) -> list[ACL]:
            _check_patterns(connection, DescribeAclsRequest, [wanted.resource_pattern])
            response = await connection.request(DescribeAclsRequest(**_fields(wanted)))
            check(response.error_code, response.error_message or "rules of access")
            return [_rule(rule, resource) for resource in response.resources for rule in resource.acls]

        async def attempt() -> list[ACL]:
            return await ask(await self._cluster.any_broker())

        return await self._cluster.retrying(attempt)

    async def create_acls(self, acls: Iterable[ACL]) -> None:
        """Add rules. Those that are there already stay as they are.

        >>> orders = ResourcePattern(ResourceType.TOPIC, "orders-", ACLResourcePatternType.PREFIXED)
        >>> run(lambda admin: admin.create_acls(
        ...     [ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders)]
        ... ))
        >>> run(lambda admin: admin.create_acls(
        ...     [ACL("alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders)]
        ... ))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ottla.errors.InvalidRequestError: INVALID_REQUEST: principal 'alice': write it with its kind, as in ...
        """
        wanted = list_of(acls, "acls")
        for rule in wanted:
            if not isinstance(rule, ACL):
                raise TypeError(f"acls has {shown(rule)}; give rules, each an ACL")

        async def ask(left: list[ACL]) -> Answers[ACL, None]:
            connection = await self._cluster.controller()
            _check_patterns(connection, CreateAclsRequest, [rule.resource_pattern for rule in left])
            response = await connection.request(CreateAclsRequest(creations=[_creation(rule) for rule in left]))
            return {
                rule: _outcome(result.error_code, result.error_message)
                for rule, result in zip(left, response.results, strict=False)
            }

        await self._each(wanted, ask)

    async def delete_acls(self, acl_filters: Iterable[ACLFilter]) -> dict[ACLFilter, list[ACL]]:
        """Remove the rules that filters match; by filter those that it matched, none where there were none.

        >>> orders = ResourcePattern(ResourceType.TOPIC, "orders")
        >>> rule = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders)
        >>> run(lambda admin: admin.create_acls([rule]))
        >>> wanted = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, orders)
        >>> run(lambda admin: admin.delete_acls([wanted])) == {wanted: [rule]}
        True
        """
        wanted = _filters(acl_filters)

        async def ask(left: list[ACLFilter]) -> Answers[ACLFilter, list[ACL]]:
            connection = await self._cluster.controller()
            _check_patterns(connection, DeleteAclsRequest, [one.resource_pattern for one in left])
            request = DeleteAclsRequest(filters=[DeleteAclsFilter(**_fields(one)) for one in left])
            response = await connection.request(request)
            return {
                one: _outcome(result.error_code, result.error_message) or _removed(result.matching_acls)
                for one, result in zip(left, response.filter_results, strict=False)
            }

        return await self._each(wanted, ask)


def _filters(filters: Iterable[ACLFilter]) -> list[ACLFilter]:
    wanted = list_of(filters, "acl_filters")
    for one in wanted:
        if not isinstance(one, ACLFilter):
            raise TypeError(f"{shown(one)} is no filter; give an ACLFilter")
    return wanted


def _fields(wanted: ACLFilter) -> dict[str, Any]:
    """A filter as both requests have it."""
    return {
        "resource_type_filter": wanted.resource_pattern.resource_type,
        "resource_name_filter": wanted.resource_pattern.resource_name,
        "pattern_type_filter": wanted.resource_pattern.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission_type,
    }


def _creation(rule: ACL) -> AclCreation:
    return AclCreation(
        resource_type=rule.resource_pattern.resource_type,
        resource_name=rule.resource_pattern.resource_name,
        resource_pattern_type=rule.resource_pattern.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission_type,
    )


def _removed(matching: list[DeleteAclsMatchingAcl]) -> list[ACL] | KafkaError:
    failed = next((rule for rule in matching if rule.error_code), None)
    if failed is not None:
        return error_of(failed.error_code, failed.error_message or f"a rule about {failed.resource_name!r}")
    return [_rule(rule, rule) for rule in matching]


def _rule(rule: AclDescription | DeleteAclsMatchingAcl, resource: DescribeAclsResource | DeleteAclsMatchingAcl) -> ACL:
    return ACL(
        rule.principal,
        rule.host,
        _known(ACLOperation, rule.operation),
        _known(ACLPermissionType, rule.permission_type),
        ResourcePattern(
            _known(ResourceType, resource.resource_type),
            resource.resource_name,
            _known(ACLResourcePatternType, resource.pattern_type),
        ),
    )


def _known(kind: type[E], number: int) -> E:
    """The member of that number; UNKNOWN for what only later versions of Kafka have."""
    return kind(number) if number in kind._value2member_map_ else kind(0)


def _outcome(code: int, message: str | None) -> KafkaError | None:
    return error_of(code, message or "a rule of access") if code else None


def _check_patterns(
    connection: Connection, request: type, patterns: Iterable[ResourcePattern | ResourcePatternFilter]
) -> None:
    old = connection.version_of(request) < FIRST_VERSION_WITH_PATTERNS
    plain = (ACLResourcePatternType.LITERAL, ACLResourcePatternType.ANY)
    if old and any(pattern.pattern_type not in plain for pattern in patterns):
        raise lacks(connection.broker, "rules about prefixes")
