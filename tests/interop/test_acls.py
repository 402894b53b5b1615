"""Rules of access by other people's clients: they make them, list them, live by them, and know what a refusal means."""

import asyncio
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import aiokafka
import aiokafka.errors
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType
from confluent_kafka.admin._resource import ResourceType as ConfluentResourceType

import ottla
from ottla import errors, sync
from ottla.client.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from ottla.testing import TestBroker
from tests.java import skip_without_maven

from .acl_people import SETTINGS, admin, confluent, python
from .java_tools import JavaTools

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="(read|open)_text is deprecated", category=DeprecationWarning)
    import kafka
    import kafka.admin
    import kafka.errors

PATIENCE_S = 30
TOPIC, HIDDEN = "orders", "salaries"
RECORDS = [b"one", b"two", b"three"]

EVERYTHING = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)


def rule(operation: ACLOperation, kind: ResourceType, name: str, *, user: str = "alice", prefix: bool = False) -> ACL:
    pattern_type = ACLResourcePatternType.PREFIXED if prefix else ACLResourcePatternType.LITERAL
    pattern = ResourcePattern(kind, name, pattern_type)
    return ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, pattern)


READ_TOPIC = rule(ACLOperation.READ, ResourceType.TOPIC, TOPIC)
WRITE_TOPIC = rule(ACLOperation.WRITE, ResourceType.TOPIC, TOPIC)


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    """A broker with two topics, of which each has three records."""
    with TestBroker(SETTINGS) as started:
        with admin(started) as root:
            root.create_topics([TOPIC, HIDDEN])
        with sync.Producer(**python(started, "root")) as producer:
            for topic in (TOPIC, HIDDEN):
                for value in RECORDS:
                    producer.send(topic, value)
        yield started


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """A group that no other test has."""
    return str(request.node.name)


@pytest.fixture
def read_group(group: str) -> ACL:
    return rule(ACLOperation.READ, ResourceType.GROUP, group)


@pytest.fixture
def root(broker: TestBroker) -> Iterator[sync.Admin]:
    """The super user; rules are gone when the test is over."""
    with admin(broker) as made:
        yield made
        made.delete_acls([EVERYTHING])


# Making rules.

WANTED = {
    rule(ACLOperation.READ, ResourceType.TOPIC, "orders-", prefix=True),
    ACL(
        *("User:*", "10.0.0.1", ACLOperation.ALL, ACLPermissionType.DENY),
        ResourcePattern(ResourceType.GROUP, "*"),
    ),
}


def test_confluent_makes_lists_and_removes_rules(broker: TestBroker, root: sync.Admin) -> None:
    client = AdminClient(confluent(broker, "root"))
    kinds, patterns, operations, permissions = (
        ConfluentResourceType,
        ResourcePatternType,
        AclOperation,
        AclPermissionType,
    )
    bindings = [
        AclBinding(*(kinds.TOPIC, "orders-", patterns.PREFIXED, "User:alice", "*"), operations.READ, permissions.ALLOW),
        AclBinding(*(kinds.GROUP, "*", patterns.LITERAL, "User:*", "10.0.0.1"), operations.ALL, permissions.DENY),
    ]
    for future in client.create_acls(bindings).values():
        future.result(PATIENCE_S)
    assert set(root.describe_acls(EVERYTHING)) == WANTED

    def wanted(name: str | None, how: ResourcePatternType) -> AclBindingFilter:
        anybody: Any = None
        return AclBindingFilter(kinds.ANY, cast(str, name), how, anybody, anybody, operations.ANY, permissions.ANY)

    assert set(client.describe_acls(wanted(None, patterns.ANY)).result(PATIENCE_S)) == set(bindings)
    concerned = client.describe_acls(wanted("orders-eu", patterns.MATCH)).result(PATIENCE_S)
    assert set(concerned) == set(bindings), "of a group '*' too"
    (removed,) = client.delete_acls([wanted("orders-", patterns.PREFIXED)]).values()
    assert removed.result(PATIENCE_S) == bindings[:1]
    assert client.describe_acls(wanted(None, patterns.ANY)).result(PATIENCE_S) == bindings[1:]


def test_confluent_hears_that_it_may_not(broker: TestBroker, root: sync.Admin) -> None:
    # That it may not describe them, librdkafka takes for there being none.
    client = AdminClient(confluent(broker, "alice"))
    binding = AclBinding(
        *(ConfluentResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL, "User:alice", "*"),
        *(AclOperation.ALL, AclPermissionType.ALLOW),
    )
    (made,) = client.create_acls([binding]).values()
    with pytest.raises(KafkaException) as refused:
        made.result(PATIENCE_S)
    assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert root.describe_acls(EVERYTHING) == []


def test_kafka_python_makes_lists_and_removes_rules(broker: TestBroker, root: sync.Admin) -> None:
    theirs = kafka.admin
    client = theirs.KafkaAdminClient(**python(broker, "root"))
    try:
        made = [
            theirs.ACL(
                *("User:alice", "*", theirs.ACLOperation.READ, theirs.ACLPermissionType.ALLOW),
                theirs.ResourcePattern(theirs.ResourceType.TOPIC, "orders-", theirs.ACLResourcePatternType.PREFIXED),
            ),
            theirs.ACL(
                *("User:*", "10.0.0.1", theirs.ACLOperation.ALL, theirs.ACLPermissionType.DENY),
                theirs.ResourcePattern(theirs.ResourceType.GROUP, "*"),
            ),
        ]
        assert client.create_acls(made)["failed"] == []
        assert set(root.describe_acls(EVERYTHING)) == WANTED
        anything = theirs.ACLFilter(
            *(None, None, theirs.ACLOperation.ANY, theirs.ACLPermissionType.ANY),
            theirs.ResourcePatternFilter(theirs.ResourceType.ANY, None, theirs.ACLResourcePatternType.ANY),
        )
        found, _ = client.describe_acls(anything)
        assert set(found) == set(made)
        ((_, removed, _),) = client.delete_acls([anything])
        assert set(removed) == set(made)
        assert root.describe_acls(EVERYTHING) == []
    finally:
        client.close()


@pytest.mark.maven
@skip_without_maven("kafka-acls tried nothing on the broker")
def test_kafka_acls_makes_lists_and_removes_rules(
    broker: TestBroker, root: sync.Admin, group: str, read_group: ACL, tools: JavaTools, tmp_path: Path
) -> None:
    login = tmp_path / "root.properties"
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="root" password="root-secret";\n'
    )
    here = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", str(login))
    consumer = ("--allow-principal", "User:alice", "--consumer", "--topic", TOPIC, "--group", group)
    tools.run("kafka-acls", *here, "--add", *consumer)
    assert set(root.describe_acls(EVERYTHING)) == {
        READ_TOPIC,
        rule(ACLOperation.DESCRIBE, ResourceType.TOPIC, TOPIC),
        read_group,
    }
    listed = tools.run("kafka-acls", *here, "--list", "--principal", "User:alice")
    assert f"name={TOPIC}, patternType=LITERAL" in listed
    assert "principal=User:alice, host=*, operation=READ, permissionType=ALLOW" in listed
    tools.run("kafka-acls", *here, "--remove", "--force", *consumer)
    assert root.describe_acls(EVERYTHING) == []


# Living by them.


def test_confluent_writes_where_it_may(broker: TestBroker, root: sync.Admin) -> None:
    def write(user: str, **more: Any) -> int | None:
        outcome: list[Any] = []
        producer = Producer(confluent(broker, user, message_timeout_ms=10_000, **more))
        producer.produce(TOPIC, b"written", on_delivery=lambda error, _: outcome.append(error))
        producer.flush(PATIENCE_S)
        (error,) = outcome
        return None if error is None else int(error.code())

    assert write("alice") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    root.create_acls([WRITE_TOPIC])
    assert write("alice") is None
    assert write("alice", enable_idempotence=True) is None
    assert write("bob") == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_confluent_reads_where_it_may(
    broker: TestBroker, root: sync.Admin, group: str, read_group: ACL, protocol: str
) -> None:
    def read(*topics: str) -> bytes | int:
        """The first record, or the first error."""
        consumer = Consumer(
            confluent(broker, "alice", group_id=group, auto_offset_reset="earliest", group_protocol=protocol)
        )
        consumer.subscribe(list(topics))
        try:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            error, value = message.error(), message.value()
            return int(error.code()) if error is not None else value or b""
        finally:
            consumer.close()

    root.create_acls([READ_TOPIC])
    assert read(TOPIC) == KafkaError.GROUP_AUTHORIZATION_FAILED
    root.create_acls([read_group])
    assert read(HIDDEN) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert read(TOPIC) == RECORDS[0]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_pattern_of_confluent_finds_only_what_may_be_seen(
    broker: TestBroker, root: sync.Admin, protocol: str
) -> None:
    root.create_acls([READ_TOPIC, rule(ACLOperation.READ, ResourceType.GROUP, "patterns", prefix=True)])
    assigned: set[str] = set()
    consumer = Consumer(
        confluent(
            broker, "alice", group_id=f"patterns-{protocol}", auto_offset_reset="earliest", group_protocol=protocol
        )
    )
    consumer.subscribe(["^.*"], on_assign=lambda _, places: assigned.update(place.topic for place in places))
    try:
        deadline = time.monotonic() + PATIENCE_S
        values: set[bytes] = set()
        while not set(RECORDS) <= values:
            assert time.monotonic() < deadline
            message = consumer.poll(0.2)
            if message is not None:
                assert message.error() is None, message.error()
                values.add(message.value() or b"")
        assert assigned == {TOPIC}
    finally:
        consumer.close()


def test_kafka_python_reads_and_writes_where_it_may(
    broker: TestBroker, root: sync.Admin, group: str, read_group: ACL
) -> None:
    def write() -> None:
        producer = kafka.KafkaProducer(**python(broker, "alice"))
        try:
            producer.send(TOPIC, b"written").get(PATIENCE_S)
        finally:
            producer.close(PATIENCE_S)

    def read() -> bytes:
        consumer = kafka.KafkaConsumer(
            TOPIC, **python(broker, "alice"), group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
        )
        try:
            return bytes(next(consumer).value)
        finally:
            consumer.close()

    with pytest.raises(kafka.errors.TopicAuthorizationFailedError):
        write()
    root.create_acls([WRITE_TOPIC, READ_TOPIC])
    write()
    with pytest.raises(kafka.errors.GroupAuthorizationFailedError):
        read()
    root.create_acls([read_group])
    assert read() == RECORDS[0]


def test_aiokafka_reads_and_writes_where_it_may(
    broker: TestBroker, root: sync.Admin, group: str, read_group: ACL
) -> None:
    async def write() -> None:
        producer = aiokafka.AIOKafkaProducer(**python(broker, "alice"))
        try:
            await producer.start()
            await producer.send_and_wait(TOPIC, b"written")
        finally:
            await producer.stop()

    async def read() -> bytes:
        consumer = aiokafka.AIOKafkaConsumer(
            TOPIC, **python(broker, "alice"), group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
        )
        try:
            await consumer.start()
            return bytes((await consumer.getone()).value)
        finally:
            await consumer.stop()

    def run(story: Callable[[], Any]) -> Any:
        return asyncio.run(asyncio.wait_for(story(), PATIENCE_S))

    with pytest.raises(aiokafka.errors.TopicAuthorizationFailedError):
        run(write)
    root.create_acls([WRITE_TOPIC, READ_TOPIC])
    run(write)
    with pytest.raises(aiokafka.errors.GroupAuthorizationFailedError):
        run(read)
    root.create_acls([read_group])
    assert run(read) == RECORDS[0]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_our_own_client_reads_and_writes_where_it_may(
    broker: TestBroker, root: sync.Admin, group: str, read_group: ACL, protocol: Any
) -> None:
    async def write() -> None:
        async with ottla.Producer(**python(broker, "alice")) as producer:
            await producer.send_and_wait(TOPIC, b"written")

    async def read() -> Any:
        async with ottla.Consumer(
            TOPIC,
            **python(broker, "alice"),
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            group_protocol=protocol,
        ) as consumer:
            return (await consumer.getone()).value

    def run(story: Callable[[], Any]) -> Any:
        return asyncio.run(asyncio.wait_for(story(), PATIENCE_S))

    # Producers are idempotent here if nothing is said, which takes the right to write to some topic.
    with pytest.raises(errors.ClusterAuthorizationFailedError):
        run(write)
    root.create_acls([rule(ACLOperation.WRITE, ResourceType.TOPIC, "another")])
    with pytest.raises(errors.TopicAuthorizationFailedError):
        run(write)
    root.create_acls([WRITE_TOPIC, READ_TOPIC])
    run(write)
    with pytest.raises(errors.GroupAuthorizationFailedError):
        run(read)
    root.create_acls([read_group])
    assert run(read) == RECORDS[0]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("topic", [HIDDEN, "missing"])
def test_our_own_client_hears_that_it_may_not_read(
    broker: TestBroker, root: sync.Admin, group: str, read_group: ACL, topic: str, protocol: Any
) -> None:
    root.create_acls([read_group])

    async def read_in_a_group() -> None:
        async with ottla.Consumer(
            topic, **python(broker, "alice"), group_id=group, group_protocol=protocol
        ) as consumer:
            await consumer.getone()

    async def read_alone() -> None:
        async with ottla.Consumer(**python(broker, "alice")) as consumer:
            consumer.assign([ottla.TopicPartition(topic, 0)])
            await consumer.getone()

    for story in (read_in_a_group, read_alone):
        with pytest.raises(errors.TopicAuthorizationFailedError):
            asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat_lists_and_writes_what_it_may(broker: TestBroker, root: sync.Admin) -> None:
    def kcat(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        login = [f"{name}={value}" for name, value in confluent(broker, "alice").items() if "." in name]
        options = [word for one in login for word in ("-X", one)]
        return subprocess.run(
            ["kcat", *options, *words], input=stdin, capture_output=True, timeout=PATIENCE_S, check=False
        )

    root.create_acls([READ_TOPIC])
    listed = kcat("-L").stdout
    assert TOPIC.encode() in listed
    assert HIDDEN.encode() not in listed
    refused = kcat("-P", "-t", TOPIC, stdin=b"written\n")
    assert b"authorization failed" in refused.stderr.lower()
    root.create_acls([WRITE_TOPIC])
    assert kcat("-P", "-t", TOPIC, stdin=b"written\n").returncode == 0


def test_rules_outlast_the_broker(tmp_path: Path) -> None:
    broker = TestBroker(SETTINGS, folder=str(tmp_path))
    with broker:
        with admin(broker) as root:
            root.create_topics([TOPIC, HIDDEN])
            root.create_acls([READ_TOPIC])
        broker.stop()
        broker.start()
        with admin(broker) as root, admin(broker, "alice") as alice:
            assert root.describe_acls(EVERYTHING) == [READ_TOPIC]
            assert alice.list_topics() == [TOPIC]
            with pytest.raises(errors.ClusterAuthorizationFailedError):
                alice.describe_acls(EVERYTHING)
            with pytest.raises(errors.TopicAuthorizationFailedError):
                alice.delete_topics([TOPIC])
