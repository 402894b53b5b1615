"""What handlers ask before they do something. Without an authorizer everybody may do everything."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from ottla.broker.request import Request
from ottla.cluster.acl import CLUSTER_NAME, ACLOperation, ResourceType
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

T = TypeVar("T")

SUPPORTED = {
    ResourceType.TOPIC: (
        ACLOperation.READ,
        ACLOperation.WRITE,
        ACLOperation.CREATE,
        ACLOperation.DELETE,
        ACLOperation.ALTER,
        ACLOperation.DESCRIBE,
        ACLOperation.DESCRIBE_CONFIGS,
        ACLOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (ACLOperation.READ, ACLOperation.DELETE, ACLOperation.DESCRIBE),
    ResourceType.CLUSTER: (
        ACLOperation.CREATE,
        ACLOperation.ALTER,
        ACLOperation.DESCRIBE,
        ACLOperation.CLUSTER_ACTION,
        ACLOperation.DESCRIBE_CONFIGS,
        ACLOperation.ALTER_CONFIGS,
        ACLOperation.IDEMPOTENT_WRITE,
    ),
}
"""All that can be done to resources of a type that clients can ask this of."""


def is_allowed(
    broker: "Broker",
    request: Request,
    operation: ACLOperation,
    resource_type: ResourceType,
    name: str = CLUSTER_NAME,
) -> bool:
    """Whether whoever sent a request may do something."""
    authorizer = broker.authorizer
    return authorizer is None or authorizer.allows(request.caller, operation, resource_type, name)


def check_allowed(
    broker: "Broker",
    request: Request,
    operation: ACLOperation,
    resource_type: ResourceType,
    name: str = CLUSTER_NAME,
) -> None:
    """The KafkaError to answer if whoever sent a request may not do something."""
    authorizer = broker.authorizer
    if authorizer is not None:
        authorizer.check(request.caller, operation, resource_type, name)


def allowed_names(
    broker: "Broker", request: Request, operation: ACLOperation, resource_type: ResourceType, names: Iterable[str]
) -> list[str]:
    """Those of the names to which whoever sent a request may do something; what he did not name is not logged."""
    authorizer = broker.authorizer
    if authorizer is None:
        return list(names)
    return [name for name in names if authorizer.allows(request.caller, operation, resource_type, name)]


def divided(things: Iterable[T], failure_of: Callable[[T], ErrorCode]) -> tuple[list[T], list[T]]:
    """Things that may be asked for, and those that may not.

    >>> divided(["a", "b"], lambda name: ErrorCode.TOPIC_AUTHORIZATION_FAILED if name == "b" else ErrorCode.NONE)
    (['a'], ['b'])
    """
    allowed: list[T] = []
    refused: list[T] = []
    for thing in things:
        (refused if failure_of(thing) else allowed).append(thing)
    return allowed, refused


def topic_failure(broker: "Broker", request: Request, operation: ACLOperation, name: str) -> ErrorCode:
    """The code for a topic to which something may not be done; NONE if it may be."""
    try:
        check_allowed(broker, request, operation, ResourceType.TOPIC, name)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def authorized_operations(
    broker: "Broker", request: Request, resource_type: ResourceType, name: str = CLUSTER_NAME
) -> int:
    """What whoever sent a request may do to a resource, as the set of bits that clients read."""
    return sum(
        1 << operation
        for operation in SUPPORTED[resource_type]
        if is_allowed(broker, request, operation, resource_type, name)
    )


def cluster_operations(broker: "Broker", request: Request) -> int:
    """What he may do to the cluster; nothing if he may not even look at it."""
    if not is_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.CLUSTER):
        return 0
    return authorized_operations(broker, request, ResourceType.CLUSTER)
