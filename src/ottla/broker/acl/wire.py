"""Rules of access and filters as requests have them."""

from enum import IntEnum
from typing import TypeVar

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
from ottla.wire.api.create_acls import AclCreation
from ottla.wire.api.delete_acls import DeleteAclsFilter
from ottla.wire.api.describe_acls import DescribeAclsRequest
from ottla.wire.errors import ErrorCode, KafkaError

E = TypeVar("E", bound=IntEnum)


def read_rule(creation: AclCreation) -> ACL:
    """The rule that a request asks for; INVALID_REQUEST if there can be no such rule."""
    rule = ACL(
        creation.principal,
        creation.host,
        _member(ACLOperation, creation.operation),
        _member(ACLPermissionType, creation.permission_type),
        ResourcePattern(
            _member(ResourceType, creation.resource_type),
            creation.resource_name,
            _member(ACLResourcePatternType, creation.resource_pattern_type),
        ),
    )
    rule.check()
    return rule


def read_filter(asked: DescribeAclsRequest | DeleteAclsFilter) -> ACLFilter:
    """The filter that a request has; INVALID_REQUEST if it asks for what is not known."""
    wanted = ACLFilter(
        asked.principal_filter,
        asked.host_filter,
        _member(ACLOperation, asked.operation),
        _member(ACLPermissionType, asked.permission_type),
        ResourcePatternFilter(
            _member(ResourceType, asked.resource_type_filter),
            asked.resource_name_filter,
            _member(ACLResourcePatternType, asked.pattern_type_filter),
        ),
    )
    wanted.check()
    return wanted


def _member(kind: type[E], number: int) -> E:
    try:
        return kind(number)
    except ValueError:
        # Whatever it is, a later version knows it, and this one does not.
        return kind(0)


def no_authorizer() -> KafkaError:
    """The error where there are no rules of access."""
    return KafkaError(
        ErrorCode.SECURITY_DISABLED,
        "everybody may do everything here; set authorizer.class.name = ottla and super.users to have rules of access",
    )
