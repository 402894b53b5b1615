"""DescribeUserScramCredentials (50): which users can log in with SCRAM, and how often their passwords are hashed."""

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.wire.api.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Describe the users that are asked for, or all."""
    body: DescribeUserScramCredentialsRequest = request.body
    try:
        check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.CLUSTER)
    except KafkaError as error:
        return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=error.message)
    asked = Counter(user.name for user in body.users or ()) or Counter(broker.users.names)
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=[_result(broker, name, times) for name, times in asked.items()]
    )


def _result(broker: "Broker", name: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        return DescribeUserScramCredentialsResult(
            user=name, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=f"user {name!r} is asked for twice"
        )
    found = broker.users.credentials(name)
    if not found:
        return DescribeUserScramCredentialsResult(
            user=name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=f"there is no user {name!r}"
        )
    infos = [CredentialInfo(mechanism=one.mechanism, iterations=one.iterations) for one in found.values()]
    return DescribeUserScramCredentialsResult(user=name, error_message=None, credential_infos=infos)
