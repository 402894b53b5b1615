"""AlterUserScramCredentials (51): set and delete what users log in with.

A client sends no password, but what it becomes after it was hashed thousands of times; a user's changes are made
together or not at all.
"""

from typing import TYPE_CHECKING, Any

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.cluster.credential import LEAST_ITERATIONS, MOST_ITERATIONS, ScramCredential, ScramMechanism
from ottla.meta.credentials import UserCredentials
from ottla.net.sasl.scram import credential_of
from ottla.wire.api.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

LONGEST_SALT = 1024

Change = ScramCredentialDeletion | ScramCredentialUpsertion


async def handle(broker: "Broker", request: Request) -> Answer:
    """Make the changes user by user, and say what became of each."""
    body: AlterUserScramCredentialsRequest = request.body
    by_user: dict[str, list[Change]] = {}
    changes: list[Change] = [*body.deletions, *body.upsertions]
    for change in changes:
        by_user.setdefault(change.name, []).append(change)
    try:
        check_allowed(broker, request, ACLOperation.ALTER, ResourceType.CLUSTER)
    except KafkaError as error:
        return AlterUserScramCredentialsResponse(results=[_result(user, error) for user in by_user])
    results = [_result(user, await _alter(broker, user, changes)) for user, changes in by_user.items()]
    return AlterUserScramCredentialsResponse(results=results)


async def _alter(broker: "Broker", user: str, changes: list[Change]) -> KafkaError | None:
    try:
        upserted, deleted = _checked(user, changes)

        def alter(before: UserCredentials) -> UserCredentials:
            missing = deleted - before.keys()
            if missing:
                message = f"user {user!r} has no credential for {min(missing).text}"
                raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, message)
            kept = {mechanism: found for mechanism, found in before.items() if mechanism not in deleted}
            return {**kept, **upserted}

        await broker.users.alter(user, alter)
    except KafkaError as error:
        return error
    return None


def _checked(user: str, changes: list[Change]) -> tuple[dict[ScramMechanism, ScramCredential], set[ScramMechanism]]:
    """What to set, and what to delete."""
    upserted: dict[ScramMechanism, ScramCredential] = {}
    deleted: set[ScramMechanism] = set()
    if not user:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the user name is empty")
    for change in changes:
        mechanism = _mechanism(change.mechanism)
        if mechanism in upserted or mechanism in deleted:
            message = f"the credential of user {user!r} for {mechanism.text} is to be changed twice"
            raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, message)
        if isinstance(change, ScramCredentialUpsertion):
            upserted[mechanism] = _credential(mechanism, change)
        else:
            deleted.add(mechanism)
    return upserted, deleted


def _mechanism(number: int) -> ScramMechanism:
    try:
        return ScramMechanism(number)
    except ValueError:
        known = ", ".join(f"{one} is {one.text}" for one in ScramMechanism)
        message = f"there is no SCRAM mechanism {number}; {known}"
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, message) from None


def _credential(mechanism: ScramMechanism, change: ScramCredentialUpsertion) -> ScramCredential:
    complaint = _complaint(mechanism, change)
    if complaint is not None:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, complaint)
    return credential_of(mechanism, bytes(change.salted_password), bytes(change.salt), change.iterations)


def _complaint(mechanism: ScramMechanism, change: Any) -> str | None:
    if not LEAST_ITERATIONS <= change.iterations <= MOST_ITERATIONS:
        return f"{change.iterations} iterations; take {LEAST_ITERATIONS} to {MOST_ITERATIONS}"
    if not 0 < len(change.salt) <= LONGEST_SALT:
        return f"a salt of {len(change.salt)} bytes; take 1 to {LONGEST_SALT}"
    size = len(change.salted_password)
    if size != mechanism.hash_bytes:
        return f"a salted password of {size} bytes; one of {mechanism.text} has {mechanism.hash_bytes}"
    return None


def _result(user: str, error: KafkaError | None) -> AlterUserScramCredentialsResult:
    if error is None:
        return AlterUserScramCredentialsResult(user=user, error_message=None)
    return AlterUserScramCredentialsResult(user=user, error_code=error.code, error_message=error.message)
