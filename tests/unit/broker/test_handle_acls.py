"""DescribeAcls, CreateAcls and DeleteAcls through the codec of each version."""

from typing import Any

import pytest

from ottla.cluster.acl import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from ottla.meta.catalog import Catalog
from ottla.ports import SystemChance
from ottla.wire.api.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.api.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.api.describe_acls import DescribeAclsRequest
from tests.unit.broker.small_broker import SmallBroker, User

ROOT = User("root")
ON = {"authorizer.class.name": "ottla", "super.users": "User:root"}
INVALID_REQUEST, SECURITY_DISABLED = 42, 54
LITERAL, PREFIXED = ACLResourcePatternType.LITERAL, ACLResourcePatternType.PREFIXED

Row = tuple[str, str, str, str, str]


@pytest.fixture
def settings() -> dict[str, str]:
    return ON


def creation(name: str = "orders", **changes: Any) -> AclCreation:
    fields = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": ACLOperation.READ,
        "permission_type": ACLPermissionType.ALLOW,
    }
    return AclCreation(**{**fields, **changes})


EVERYTHING: dict[str, Any] = {
    "resource_type_filter": ResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ACLResourcePatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ACLOperation.ANY,
    "permission_type": ACLPermissionType.ANY,
}


def create(small: SmallBroker, *creations: AclCreation, version: int = 3) -> list[int]:
    response = small.ask(CreateAclsRequest(creations=list(creations)), version, ROOT)
    return [result.error_code for result in response.results]


def described(small: SmallBroker, version: int = 3, **wanted: Any) -> set[Row]:
    response = small.ask(DescribeAclsRequest(**{**EVERYTHING, **wanted}), version, ROOT)
    assert (response.error_code, response.error_message) == (0, None)
    return {
        (
            ACLResourcePatternType(resource.pattern_type).name,
            resource.resource_name,
            rule.principal,
            ACLOperation(rule.operation).name,
            ACLPermissionType(rule.permission_type).name,
        )
        for resource in response.resources
        for rule in resource.acls
    }


READ: Row = ("LITERAL", "orders", "User:alice", "READ", "ALLOW")
DENY: Row = ("PREFIXED", "ord", "User:bob", "ALL", "DENY")


def fill(small: SmallBroker) -> None:
    denied = creation(
        "ord",
        resource_pattern_type=PREFIXED,
        principal="User:bob",
        operation=ACLOperation.ALL,
        permission_type=ACLPermissionType.DENY,
    )
    assert create(small, creation(), denied) == [0, 0]


@pytest.mark.parametrize("version", range(4))
def test_rules_are_made_shown_and_removed(small: SmallBroker, version: int) -> None:
    assert create(small, creation(), version=version) == [0]
    assert create(small, creation(), version=version) == [0], "once more is fine"
    assert described(small, version) == {READ}
    response = small.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)] * 2), version, ROOT)
    for result in response.filter_results:
        (removed,) = result.matching_acls
        assert (result.error_code, removed.error_code, removed.resource_name) == (0, 0, "orders")
    assert described(small, version) == set()


def test_rules_outlast_the_broker(small: SmallBroker) -> None:
    fill(small)
    catalog = small.run(Catalog.open(small.broker.catalog.store, SystemChance()))
    assert small.run(catalog.load()).acls == small.broker.image.acls != {}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, {READ, DENY}),
        ({"principal_filter": "User:bob"}, {DENY}),
        ({"host_filter": "10.0.0.1"}, set()),
        ({"operation": ACLOperation.READ}, {READ}),
        ({"permission_type": ACLPermissionType.DENY}, {DENY}),
        ({"resource_type_filter": ResourceType.GROUP}, set()),
        ({"resource_name_filter": "orders", "pattern_type_filter": LITERAL}, {READ}),
        ({"resource_name_filter": "orders", "pattern_type_filter": ACLResourcePatternType.MATCH}, {READ, DENY}),
        ({"resource_name_filter": "ord"}, {DENY}),
    ],
)
def test_filters_choose(small: SmallBroker, wanted: dict[str, Any], expected: set[Row]) -> None:
    fill(small)
    assert described(small, **wanted) == expected
    chosen = DeleteAclsFilter(**{**EVERYTHING, **wanted})
    (result,) = small.ask(DeleteAclsRequest(filters=[chosen]), 3, ROOT).filter_results
    assert {rule.resource_name for rule in result.matching_acls} == {row[1] for row in expected}
    assert described(small) == {READ, DENY} - expected


def test_a_rule_that_cannot_be_does_not_hinder_the_others(small: SmallBroker) -> None:
    bad = creation(principal="alice")
    assert create(small, creation("first"), bad, creation("last")) == [0, INVALID_REQUEST, 0]
    assert {row[1] for row in described(small)} == {"first", "last"}


@pytest.mark.parametrize(
    "change",
    [
        {"resource_type": 0},
        {"resource_type": 1},
        {"resource_type": 99},
        {"resource_name": ""},
        {"resource_pattern_type": 2},
        {"operation": 1},
        {"operation": 77},
        {"permission_type": 1},
        {"principal": "User:"},
        {"host": ""},
        {"resource_type": ResourceType.CLUSTER},
    ],
    ids=str,
)
def test_what_kafka_refuses_is_refused(small: SmallBroker, change: dict[str, Any]) -> None:
    assert create(small, creation(**change)) == [INVALID_REQUEST]
    assert small.broker.image.acls == {}


@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
@pytest.mark.parametrize("number", [0, 99])
def test_a_filter_for_the_unknown_is_refused(small: SmallBroker, field: str, number: int) -> None:
    fill(small)
    wanted = {**EVERYTHING, field: number}
    assert small.ask(DescribeAclsRequest(**wanted), 3, ROOT).error_code == INVALID_REQUEST
    (result,) = small.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**wanted)]), 3, ROOT).filter_results
    assert (result.error_code, result.matching_acls) == (INVALID_REQUEST, [])
    assert described(small) == {READ, DENY}


@pytest.mark.parametrize("settings", [{}])
@pytest.mark.parametrize("version", range(4))
def test_without_an_authorizer_there_are_no_rules(small: SmallBroker, version: int) -> None:
    assert create(small, creation(), version=version) == [SECURITY_DISABLED]
    response = small.ask(DescribeAclsRequest(**EVERYTHING), version)
    assert response.error_code == SECURITY_DISABLED
    assert "authorizer.class.name" in response.error_message
    deleted = small.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)]), version)
    assert [result.error_code for result in deleted.filter_results] == [SECURITY_DISABLED]
    assert small.broker.image.acls == {}
