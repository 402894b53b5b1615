"""Rules of access: which there can be, and which of them a filter matches."""

from dataclasses import replace
from typing import Any

import pytest

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
from ottla.wire.errors import ErrorCode, KafkaError

ANY, MATCH = ACLResourcePatternType.ANY, ACLResourcePatternType.MATCH
LITERAL, PREFIXED = ACLResourcePatternType.LITERAL, ACLResourcePatternType.PREFIXED

ORDERS = ResourcePattern(ResourceType.TOPIC, "orders")
RULE = ACL("User:alice", "10.0.0.1", ACLOperation.READ, ACLPermissionType.ALLOW, ORDERS)
EVERYTHING = ACLFilter(
    None, None, ACLOperation.ANY, ACLPermissionType.ANY, ResourcePatternFilter(ResourceType.ANY, None, ANY)
)

PATTERNS = {
    "literal": ORDERS,
    "other": ResourcePattern(ResourceType.TOPIC, "payments"),
    "all": ResourcePattern(ResourceType.TOPIC, "*"),
    "prefix": ResourcePattern(ResourceType.TOPIC, "ord", PREFIXED),
    "long prefix": ResourcePattern(ResourceType.TOPIC, "orders-eu", PREFIXED),
    "same prefix": ResourcePattern(ResourceType.TOPIC, "orders", PREFIXED),
    "group": ResourcePattern(ResourceType.GROUP, "orders"),
}


@pytest.mark.parametrize(
    ("name", "pattern_type", "expected"),
    [
        ("orders", LITERAL, {"literal"}),
        ("orders", PREFIXED, {"same prefix"}),
        ("orders", ANY, {"literal", "same prefix"}),
        ("orders", MATCH, {"literal", "all", "prefix", "same prefix"}),
        ("orders-eu-1", MATCH, {"all", "prefix", "long prefix", "same prefix"}),
        ("*", LITERAL, {"all"}),
        ("*", MATCH, {"all"}),
        (None, LITERAL, {"literal", "other", "all"}),
        (None, PREFIXED, {"prefix", "long prefix", "same prefix"}),
        (None, MATCH, set(PATTERNS) - {"group"}),
        (None, ANY, set(PATTERNS) - {"group"}),
    ],
)
def test_a_filter_matches_what_kafka_matches(
    name: str | None, pattern_type: ACLResourcePatternType, expected: set[str]
) -> None:
    wanted = ResourcePatternFilter(ResourceType.TOPIC, name, pattern_type)
    assert {key for key, pattern in PATTERNS.items() if wanted.matches(pattern)} == expected


@pytest.mark.parametrize(
    ("field", "same", "other"),
    [
        ("principal", "User:alice", "User:bob"),
        ("host", "10.0.0.1", "*"),
        ("operation", ACLOperation.READ, ACLOperation.ALL),
        ("permission_type", ACLPermissionType.ALLOW, ACLPermissionType.DENY),
        ("resource_pattern", ORDERS, PATTERNS["prefix"]),
    ],
)
def test_each_part_of_a_filter_counts(field: str, same: Any, other: Any) -> None:
    assert EVERYTHING.matches(RULE)
    assert replace(EVERYTHING, **{field: same}).matches(RULE)
    assert not replace(EVERYTHING, **{field: other}).matches(RULE)


@pytest.mark.parametrize(
    "change",
    [
        {"principal": "alice"},
        {"principal": "User:"},
        {"principal": "User:" + "x" * 1000},
        {"host": ""},
        {"operation": ACLOperation.ANY},
        {"operation": ACLOperation.UNKNOWN},
        {"permission_type": ACLPermissionType.ANY},
        {"permission_type": ACLPermissionType.UNKNOWN},
        {"resource_pattern": ResourcePattern(ResourceType.TOPIC, "")},
        {"resource_pattern": ResourcePattern(ResourceType.ANY, "orders")},
        {"resource_pattern": ResourcePattern(ResourceType.UNKNOWN, "orders")},
        {"resource_pattern": ResourcePattern(ResourceType.TOPIC, "orders", ANY)},
        {"resource_pattern": ResourcePattern(ResourceType.TOPIC, "orders", MATCH)},
        {"resource_pattern": ResourcePattern(ResourceType.CLUSTER, "*")},
    ],
    ids=str,
)
def test_a_rule_that_cannot_be_is_refused(change: dict[str, Any]) -> None:
    RULE.check()
    with pytest.raises(KafkaError) as refused:
        replace(RULE, **change).check()
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "change",
    [
        {"operation": ACLOperation.UNKNOWN},
        {"permission_type": ACLPermissionType.UNKNOWN},
        {"resource_pattern": ResourcePatternFilter(ResourceType.UNKNOWN, None, ANY)},
        {"resource_pattern": ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.UNKNOWN)},
    ],
    ids=str,
)
def test_a_filter_for_the_unknown_is_refused(change: dict[str, Any]) -> None:
    EVERYTHING.check()
    with pytest.raises(KafkaError, match="INVALID_REQUEST"):
        replace(EVERYTHING, **change).check()


def test_names_in_the_place_of_members_are_refused() -> None:
    with pytest.raises(TypeError, match=r"resource_type is 'topic'; give a ResourceType, such as ResourceType\.TOPIC"):
        ResourcePattern("topic", "orders")  # type: ignore[arg-type]
