"""Errors of brokers that concern what administrators do: topics, configs, and the cluster itself."""

from ottla.client.broker_errors.base import BrokerError
from ottla.wire.errors import ErrorCode


class BrokerNotAvailableError(BrokerError):
    """The cluster has no such broker.

    >>> print(BrokerNotAvailableError("broker 1"))
    BROKER_NOT_AVAILABLE: broker 1; see describe_cluster for those that it has
    """

    code_of_class = ErrorCode.BROKER_NOT_AVAILABLE
    advice = "see describe_cluster for those that it has"


class InvalidTopicError(BrokerError):
    """The name is not one that a topic can have, or it is the broker's own.

    >>> print(InvalidTopicError("topic 'orders'"))
    INVALID_TOPIC_EXCEPTION: topic 'orders'; use up to 249 letters, digits, dots, dashes and underscores
    """

    code_of_class = ErrorCode.INVALID_TOPIC_EXCEPTION
    advice = "use up to 249 letters, digits, dots, dashes and underscores"


class TopicAlreadyExistsError(BrokerError):
    """There is a topic of that name already.

    >>> print(TopicAlreadyExistsError("topic 'orders'"))
    TOPIC_ALREADY_EXISTS: topic 'orders'; choose another name, or use the one that is there
    """

    code_of_class = ErrorCode.TOPIC_ALREADY_EXISTS
    advice = "choose another name, or use the one that is there"


class InvalidPartitionsError(BrokerError):
    """The number of partitions is not one that the topic can have.

    >>> print(InvalidPartitionsError("topic 'orders'"))
    INVALID_PARTITIONS: topic 'orders'; a topic has at least one partition, and never loses one
    """

    code_of_class = ErrorCode.INVALID_PARTITIONS
    advice = "a topic has at least one partition, and never loses one"


class InvalidReplicationFactorError(BrokerError):
    """There are fewer brokers than replicas were asked for.

    >>> print(InvalidReplicationFactorError("topic 'orders'"))
    INVALID_REPLICATION_FACTOR: topic 'orders'; ask for at most as many replicas as there are brokers
    """

    code_of_class = ErrorCode.INVALID_REPLICATION_FACTOR
    advice = "ask for at most as many replicas as there are brokers"


class InvalidConfigError(BrokerError):
    """A config's name or value is wrong.

    >>> print(InvalidConfigError("topic 'orders'"))
    INVALID_CONFIG: topic 'orders'; see describe_configs for names and values
    """

    code_of_class = ErrorCode.INVALID_CONFIG
    advice = "see describe_configs for names and values"


class NotControllerError(BrokerError):
    """The broker that was asked is not the controller (any more).

    >>> print(NotControllerError("broker 1"))
    NOT_CONTROLLER: broker 1; try again
    """

    code_of_class = ErrorCode.NOT_CONTROLLER
    advice = "try again"


class InvalidRequestError(BrokerError):
    """The broker takes the request for nonsense.

    >>> print(InvalidRequestError("broker 1"))
    INVALID_REQUEST: broker 1; look at the arguments and at the broker's log
    """

    code_of_class = ErrorCode.INVALID_REQUEST
    advice = "look at the arguments and at the broker's log"


class PolicyViolationError(BrokerError):
    """The broker's policy forbids it.

    >>> print(PolicyViolationError("topic 'orders'"))
    POLICY_VIOLATION: topic 'orders'; ask the broker's administrator what is allowed
    """

    code_of_class = ErrorCode.POLICY_VIOLATION
    advice = "ask the broker's administrator what is allowed"


class ResourceNotFoundError(BrokerError):
    """What is to be described or deleted does not exist.

    >>> print(ResourceNotFoundError("there is no user 'alice'"))
    RESOURCE_NOT_FOUND: there is no user 'alice'; look what there is, and check the name
    """

    code_of_class = ErrorCode.RESOURCE_NOT_FOUND
    advice = "look what there is, and check the name"


class DuplicateResourceError(BrokerError):
    """The same thing is named twice in one request.

    >>> print(DuplicateResourceError("user 'alice'"))
    DUPLICATE_RESOURCE: user 'alice'; name it once
    """

    code_of_class = ErrorCode.DUPLICATE_RESOURCE
    advice = "name it once"
