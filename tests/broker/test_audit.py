"""The audit log: who asked for which change, and what became of it."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from ottla.broker import audit
from ottla.broker.request import Request
from ottla.client.admin import Admin, ConfigResource, NewTopic
from ottla.client.types import TopicPartition
from ottla.metrics.clients import ClientCounters
from ottla.metrics.logs import JsonFormatter
from ottla.testing import TestBroker
from ottla.wire.api import request as request_class
from ottla.wire.api import response as response_class
from ottla.wire.api.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.api.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ottla.wire.api.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.api.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.errors import ErrorCode, KafkaError

Audited = Callable[[], list[logging.LogRecord]]


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as running:
        yield running


@pytest.fixture
def audited(caplog: pytest.LogCaptureFixture) -> Audited:
    caplog.set_level(logging.INFO, "ottla.audit")
    return lambda: [record for record in caplog.records if record.name == "ottla.audit"]


class _Alice:
    peer, host, principal = "10.0.0.7:51514", "10.0.0.7", "User:alice"
    listener = security_protocol = "PLAINTEXT"
    client: ClientCounters | None = None
    context: object = None
    interrupt: Callable[[], object] | None = None

    @property
    def identity(self) -> dict[str, str | None]:
        return {"address": self.peer, "principal": self.principal, "client_id": None}


def _record(key: int, body: object, response: object) -> None:
    audit.record_request(Request(key, 0, "admin", _Alice(), body), response)


def test_changes_through_a_broker_are_written_down_with_who_and_what_became_of_them(
    broker: TestBroker, audited: Audited
) -> None:
    async def story() -> None:
        async with Admin(broker.bootstrap_servers, client_id="keeper") as admin:
            await admin.create_topics([NewTopic("orders", 1)])
            with suppress(KafkaError):
                await admin.create_topics([NewTopic("orders", 1)])
            await admin.create_partitions({"orders": 3})
            await admin.alter_configs([ConfigResource("topic", "orders", {"retention.ms": "123454321"})])
            await admin.delete_records({TopicPartition("orders", 0): 0})
            await admin.delete_topics(["orders"])
            await admin.describe_topics()

    asyncio.run(story())
    written = audited()
    said = [record.getMessage().partition(", from ")[0] for record in written]
    by = "by User:ANONYMOUS, client id 'keeper'"
    names = ["CreateTopics", "CreateTopics", "CreatePartitions", "IncrementalAlterConfigs", "DeleteRecords"]
    assert said == [f"{name} {by}" for name in [*names, "DeleteTopics"]]
    outcomes = [vars(record)["outcome"] for record in written]
    assert outcomes == [
        ["topic 'orders': ok"],
        ["topic 'orders': TOPIC_ALREADY_EXISTS"],
        ["topic 'orders' to 3 partitions: ok"],
        ["topic 'orders' ('retention.ms'): ok"],
        ["partition 0 of topic 'orders' before offset 0: ok"],
        ["topic 'orders': ok"],
    ]
    assert vars(written[0])["address"].startswith("127.0.0.1:")
    assert "123454321" not in "".join(record.getMessage() for record in written)


def test_a_users_name_cannot_make_lines_of_its_own(audited: Audited) -> None:
    class Mallory(_Alice):
        principal = "User:m\nDeleteTopics by User:alice"

    body, response = CreateTopicsRequest(), CreateTopicsResponse(topics=[CreatableTopicResult(name="a")])
    audit.record_request(Request(19, 0, "admin", Mallory(), body), response)
    assert "\n" not in audited()[-1].getMessage()


def test_a_line_as_json_says_who_in_fields_of_its_own(audited: Audited) -> None:
    _record(19, CreateTopicsRequest(), CreateTopicsResponse(topics=[CreatableTopicResult(name="a")]))
    written = json.loads(JsonFormatter().format(audited()[-1]))
    written.pop("time")
    assert written == {
        "level": "INFO",
        "logger": "ottla.audit",
        "message": "CreateTopics by User:alice, client id 'admin', from 10.0.0.7:51514: topic 'a': ok",
        "principal": "User:alice",
        "client_id": "admin",
        "address": "10.0.0.7:51514",
        "action": "CreateTopics",
        "outcome": ["topic 'a': ok"],
    }


def test_no_secret_is_written_down(audited: Audited) -> None:
    _record(
        51,
        AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="bob", mechanism=1)],
            upsertions=[ScramCredentialUpsertion(name="eve", mechanism=2, salt=b"SALT", salted_password=b"SECRET")],
        ),
        AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResult(user="bob", error_code=91),
                AlterUserScramCredentialsResult(user="eve"),
            ]
        ),
    )
    _record(
        44,
        IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=4,
                    resource_name="1",
                    configs=[AlterableConfig(name="ssl.keystore.password", value="SECRET")],
                )
            ]
        ),
        IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse(resource_type=4, resource_name="1")]),
    )
    text = "".join(JsonFormatter().format(record) for record in audited())
    assert "SECRET" not in text
    assert "SALT" not in text
    assert vars(audited()[-2])["outcome"] == [
        "credentials of user 'bob' (SCRAM_SHA_256 removed): RESOURCE_NOT_FOUND",
        "credentials of user 'eve' (SCRAM_SHA_512 set): ok",
    ]
    assert vars(audited()[-1])["outcome"] == ["broker '1' ('ssl.keystore.password'): ok"]


def test_rules_of_access_are_spelt_out(audited: Audited) -> None:
    rule = AclCreation(
        resource_type=2,
        resource_name="orders",
        resource_pattern_type=4,
        principal="User:bob",
        host="*",
        operation=3,
        permission_type=2,
    )
    _record(30, CreateAclsRequest(creations=[rule]), CreateAclsResponse(results=[AclCreationResult()]))
    assert vars(audited()[-1])["outcome"] == ["rule: DENY 'User:bob' from '*' to READ TOPIC 'orders' (PREFIXED): ok"]


def test_a_name_with_a_line_break_does_not_look_like_a_line_of_the_log(audited: Audited) -> None:
    topics = [
        CreatableTopicResult(name="a\nCreateTopics by User:mallory", error_code=ErrorCode.INVALID_TOPIC_EXCEPTION)
    ]
    _record(19, CreateTopicsRequest(), CreateTopicsResponse(topics=topics))
    assert "\n" not in audited()[-1].getMessage()


def test_a_request_that_names_thousands_makes_a_line_of_bounded_length(audited: Audited) -> None:
    topics = [CreatableTopicResult(name="x" * 30_000) for _ in range(5000)]
    _record(19, CreateTopicsRequest(validate_only=True), CreateTopicsResponse(topics=topics))
    said = audited()[-1].getMessage()
    assert said.startswith("CreateTopics (only checked) by ")
    assert said.endswith("and 4950 more")
    assert len(said) < 20_000


@pytest.mark.parametrize("key", sorted(audit.AUDITED))
def test_every_kind_of_line_can_be_written(key: int, audited: Audited) -> None:
    _record(key, request_class(key)(), response_class(key)())
    assert len(audited()) == 1
