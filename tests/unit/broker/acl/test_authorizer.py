"""The authorizer against a plain model, and what it remembers."""

import logging
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.broker.acl import authorizer as module
from ottla.broker.acl.authorizer import Authorizer, Somebody
from ottla.broker.acl.matching import Rules
from ottla.cluster.acl import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    Acls,
    ResourcePattern,
    ResourceType,
)
from ottla.config.broker import BrokerConfig
from ottla.wire.errors import ErrorCode, KafkaError

ALLOW, DENY = ACLPermissionType.ALLOW, ACLPermissionType.DENY
LITERAL, PREFIXED = ACLResourcePatternType.LITERAL, ACLResourcePatternType.PREFIXED
TOPIC = ResourceType.TOPIC
ALICE = Somebody("10.0.0.1", "User:alice")

PRINCIPALS = ("User:alice", "User:bob", "User:root")
HOSTS = ("10.0.0.1", "10.0.0.2")
TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
OPERATIONS = tuple(ACLOperation)[2:]
RULED = ["*", *("".join(letters) for length in (1, 2) for letters in product("ab", repeat=length))]
"""Names that rules have."""
# No rule has a c in it, so that there are names that only prefixes are about.
NAMES = [*RULED, "c", *(name + "c" for name in RULED)]

patterns = st.builds(
    ResourcePattern,
    st.sampled_from(TYPES),
    st.sampled_from(RULED),
    st.sampled_from([LITERAL, PREFIXED]),
)
rules_of = st.builds(
    ACL,
    st.sampled_from([*PRINCIPALS, "User:*"]),
    st.sampled_from([*HOSTS, "*"]),
    st.sampled_from(OPERATIONS),
    st.sampled_from([ALLOW, DENY]),
    patterns,
)


class Model(NamedTuple):
    """Kafka's documentation, word for word and as slow as can be."""

    rules: Sequence[ACL]
    everyone_if_none: bool

    def allows(self, principal: str, host: str, operation: ACLOperation, kind: ResourceType, name: str) -> bool:
        if principal == "User:root":
            return True
        about = [rule for rule in self.rules if self.is_about(rule.resource_pattern, kind, name)]
        if not about:
            return self.everyone_if_none
        mine = [rule for rule in about if rule.principal in (principal, "User:*") and rule.host in (host, "*")]
        if any(rule.permission_type is DENY and rule.operation in (operation, ACLOperation.ALL) for rule in mine):
            return False
        return any(rule.permission_type is ALLOW and operation in self.allowed_by(rule) for rule in mine)

    def is_about(self, pattern: ResourcePattern, kind: ResourceType, name: str) -> bool:
        if pattern.resource_type is not kind:
            return False
        if pattern.pattern_type is PREFIXED:
            return name.startswith(pattern.resource_name)
        return pattern.resource_name in (name, "*")

    def allowed_by(self, rule: ACL) -> Iterable[ACLOperation]:
        operation = rule.operation
        if operation is ACLOperation.ALL:
            return OPERATIONS
        if operation in (ACLOperation.READ, ACLOperation.WRITE, ACLOperation.DELETE, ACLOperation.ALTER):
            return (operation, ACLOperation.DESCRIBE)
        if operation is ACLOperation.ALTER_CONFIGS:
            return (operation, ACLOperation.DESCRIBE_CONFIGS)
        return (operation,)


def by_pattern(*rules: ACL) -> Acls:
    found: dict[ResourcePattern, set[ACL]] = {}
    for rule in rules:
        found.setdefault(rule.resource_pattern, set()).add(rule)
    return {pattern: frozenset(some) for pattern, some in found.items()}


def rule(operation: ACLOperation, name: str = "orders", *, permission: ACLPermissionType = ALLOW) -> ACL:
    return ACL("User:alice", "*", operation, permission, ResourcePattern(TOPIC, name))


@settings(max_examples=300, deadline=None)
@given(st.lists(rules_of, max_size=12), st.booleans())
def test_decisions_are_those_of_the_model(rules: list[ACL], everyone_if_none: bool) -> None:
    model = Model(rules, everyone_if_none)
    authorizer = Authorizer(by_pattern(*rules), super_users=["User:root"], allow_if_no_rule=everyone_if_none)
    questions = product(PRINCIPALS, HOSTS, (ACLOperation.READ, ACLOperation.DESCRIBE, ACLOperation.CREATE), TYPES)
    for principal, host, operation, kind in questions:
        who = Somebody(host, principal)
        decisions = {name: authorizer.allows(who, operation, kind, name) for name in NAMES}
        assert decisions == {name: model.allows(principal, host, operation, kind, name) for name in NAMES}
        assert authorizer.allows_some(who, operation, kind) == any(decisions.values())


@settings(max_examples=200, deadline=None)
@given(rules_of, st.sampled_from(OPERATIONS))
def test_each_operation_implies_what_kafka_says(one: ACL, operation: ACLOperation) -> None:
    who = Somebody("10.0.0.1", "User:alice")
    kind, name = one.resource_pattern.resource_type, "ab"
    decided = Authorizer(by_pattern(one)).allows(who, operation, kind, name)
    assert decided == Model([one], False).allows("User:alice", "10.0.0.1", operation, kind, name)


def test_a_decision_is_remembered_until_the_rules_change(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Counting(Rules):
        def decide(
            self, principal: str, host: str, operation: ACLOperation, resource_type: ResourceType, name: str
        ) -> bool | None:
            asked.append(name)
            return super().decide(principal, host, operation, resource_type, name)

    monkeypatch.setattr(module, "Rules", Counting)
    authorizer = Authorizer(by_pattern(rule(ACLOperation.READ)))
    assert all(authorizer.allows(ALICE, ACLOperation.READ, TOPIC, "orders") for _ in range(3))
    assert asked == ["orders"]
    authorizer.take({})
    assert not authorizer.allows(ALICE, ACLOperation.READ, TOPIC, "orders")
    assert asked == ["orders", "orders"]


def test_what_is_remembered_is_bounded_whatever_clients_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DECISIONS", 10)
    authorizer = Authorizer({})
    for index in range(100):
        with pytest.raises(KafkaError):
            authorizer.check(ALICE, ACLOperation.READ, TOPIC, f"topic-{index}")
        assert not authorizer.allows_some(Somebody(f"10.0.0.{index}", "User:bob"), ACLOperation.READ, TOPIC)
        assert not authorizer.allows(ALICE, ACLOperation.READ, ResourceType.GROUP, "x" * 100_000 + str(index))
    known = authorizer._known
    assert len(known.decisions) <= 10
    assert len(known.told) <= 10
    assert max(len(question[-1]) for question in known.decisions) < 1000


def test_a_refusal_names_who_what_and_where_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = Authorizer({})
    with caplog.at_level(logging.INFO, logger="ottla.authorizer"):
        for _ in range(3):
            with pytest.raises(KafkaError) as refused:
                authorizer.check(ALICE, ACLOperation.WRITE, TOPIC, "orders")
    assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert refused.value.message == "User:alice may not WRITE topic 'orders' from 10.0.0.1"
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [refused.value.message]


def test_a_refusal_is_one_line_in_the_log_whatever_one_is_called(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="ottla.authorizer"), pytest.raises(KafkaError):
        Authorizer({}).check(Somebody("10.0.0.1", "User:eve\nroot"), ACLOperation.READ, TOPIC, "a\nb" * 1000)
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) < 2000


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ResourceType.TOPIC, 29),
        (ResourceType.GROUP, 30),
        (ResourceType.CLUSTER, 31),
        (ResourceType.TRANSACTIONAL_ID, 53),
        (ResourceType.DELEGATION_TOKEN, 65),
    ],
)
def test_each_type_of_resource_has_its_code(kind: ResourceType, code: int) -> None:
    with pytest.raises(KafkaError) as refused:
        Authorizer({}).check(ALICE, ACLOperation.DESCRIBE, kind, "name")
    assert refused.value.code == code


@pytest.mark.parametrize("host", ["::ffff:10.0.0.1", "10.0.0.1"])
def test_an_address_is_the_same_in_all_its_forms(host: str) -> None:
    pattern = ResourcePattern(TOPIC, "orders")
    authorizer = Authorizer(by_pattern(ACL("User:alice", "10.0.0.1", ACLOperation.READ, ALLOW, pattern)))
    assert authorizer.allows(Somebody(host, "User:alice"), ACLOperation.READ, TOPIC, "orders")
    assert not authorizer.allows(Somebody("10.0.0.3", "User:alice"), ACLOperation.READ, TOPIC, "orders")


@pytest.mark.parametrize(
    "name",
    ["ottla", "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "kafka.security.authorizer.AclAuthorizer"],
)
def test_the_settings_of_kafka_switch_it_on(name: str) -> None:
    settings = {"authorizer.class.name": name, "super.users": "User:root; User:CN=boss,O=Ottla"}
    authorizer = Authorizer.of(BrokerConfig(settings), {})
    assert authorizer is not None
    for principal in ("User:root", "User:CN=boss,O=Ottla"):
        assert authorizer.allows(Somebody("h", principal), ACLOperation.ALTER, ResourceType.CLUSTER, "kafka-cluster")
    assert not authorizer.allows(ALICE, ACLOperation.READ, TOPIC, "orders")
    lenient = Authorizer.of(BrokerConfig({**settings, "allow.everyone.if.no.acl.found": "true"}), {})
    assert lenient is not None
    assert lenient.allows(ALICE, ACLOperation.READ, TOPIC, "orders")


def test_without_settings_there_is_none() -> None:
    assert Authorizer.of(BrokerConfig(), {}) is None


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            {"authorizer.class.name": "com.example.Mine"},
            "'com.example.Mine': must be one of ottla, org.apache.*, or empty",
        ),
        ({"super.users": "root"}, "write User:root"),
        ({"super.users": "User:root, User:alice"}, "write semicolons between them, as in User:root;User:alice"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint):
        BrokerConfig(settings)
