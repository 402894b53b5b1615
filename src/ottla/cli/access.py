"""What a command needs to be allowed to do, and what it says when it is not: who lacks what, and how to grant it."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.cli.people import principal_of
from ottla.cluster.acl import CLUSTER_NAME, ACLOperation, ResourceType
from ottla.net.security import Security
from ottla.wire.errors import ErrorCode, KafkaError

KIND_OF_CODE = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ResourceType.TOPIC,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ResourceType.GROUP,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ResourceType.CLUSTER,
}


@dataclass(frozen=True)
class Need:
    """An operation on resources of a type; without names, on some that only the error names."""

    operation: ACLOperation
    kind: ResourceType
    names: Sequence[str] = ()
    note: str = ""
    """What else may be missing, in words that follow the operation."""


def on_topics(operation: ACLOperation, names: Iterable[str] = (), note: str = "") -> Need:
    """The need to do something to topics."""
    return Need(operation, ResourceType.TOPIC, tuple(names), note)


def on_groups(operation: ACLOperation, names: Iterable[str]) -> Need:
    """The need to do something to groups."""
    return Need(operation, ResourceType.GROUP, tuple(names))


def on_cluster(operation: ACLOperation) -> Need:
    """The need to do something to the cluster."""
    return Need(operation, ResourceType.CLUSTER, (CLUSTER_NAME,))


def refusal(error: KafkaError, needs: Sequence[Need], security: Security) -> str | None:
    """What to say about an error of authorization; None for other errors.

    >>> error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "topic 'orders'")
    >>> print(refusal(error, [on_topics(ACLOperation.READ, ["orders"])], Security()))
    TOPIC_AUTHORIZATION_FAILED: User:ANONYMOUS needs READ on topic 'orders'
    an administrator allows it with: ottla acl add --allow-principal User:ANONYMOUS --operation Read --topic orders
    """
    kind = KIND_OF_CODE.get(error.code)
    if kind is None or not needs:
        return None
    fits = any(need.kind is kind for need in needs)
    # A producer that may write to no topic is refused in the name of the cluster.
    meant = kind if fits else needs[0].kind
    relevant = [need for need in needs if need.kind is meant]
    every = dict.fromkeys(name for need in relevant for name in need.names)
    # Of several, those that failed.
    names = [name for name in every if repr(name) in error.message] or list(every)
    operations = list(dict.fromkeys(need.operation for need in relevant))
    who = principal_of(security)
    needed = " and ".join(operation.name for operation in operations) + "".join(need.note for need in relevant)
    said = f"{who or 'the user whom the broker takes this for'} needs {needed} on {_resource(meant, names)}"
    told = f"{error.code.name}: {said}" if fits and names else f"{said} ({error.code.name}: {error.message})"
    return f"{told}\nan administrator allows it with: {_grant(who or 'User:NAME', operations, meant, names)}"


def _resource(kind: ResourceType, names: Sequence[str]) -> str:
    if kind is ResourceType.CLUSTER:
        return "the cluster"
    word = kind.name.lower()
    if not names:
        return f"a {word}"
    return f"{word}{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


def _grant(principal: str, operations: Iterable[ACLOperation], kind: ResourceType, names: Sequence[str]) -> str:
    words = ["ottla", "acl", "add", "--allow-principal", principal]
    for operation in operations:
        words += ["--operation", operation.name.replace("_", " ").title().replace(" ", "")]
    if kind is ResourceType.CLUSTER:
        words.append("--cluster")
    else:
        words += [word for name in names or ["NAME"] for word in (f"--{kind.name.lower()}", name)]
    return shlex.join(words)
