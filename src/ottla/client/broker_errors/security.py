"""Errors of brokers that concern who may do what, who can log in, and how much anybody may use."""

from ottla.client.broker_errors.base import BrokerError
from ottla.wire.errors import ErrorCode


class TopicAuthorizationFailedError(BrokerError):
    """This client may not do that with the topic.

    >>> print(TopicAuthorizationFailedError("topic 'orders'"))
    TOPIC_AUTHORIZATION_FAILED: topic 'orders'; have the broker's administrator allow it
    """

    code_of_class = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    advice = "have the broker's administrator allow it"


class GroupAuthorizationFailedError(BrokerError):
    """This client may not do that with the group.

    >>> print(GroupAuthorizationFailedError("group 'billing'"))
    GROUP_AUTHORIZATION_FAILED: group 'billing'; have the broker's administrator allow it
    """

    code_of_class = ErrorCode.GROUP_AUTHORIZATION_FAILED
    advice = "have the broker's administrator allow it"


class ClusterAuthorizationFailedError(BrokerError):
    """This client may not do that with the cluster.

    >>> print(ClusterAuthorizationFailedError("broker 1"))
    CLUSTER_AUTHORIZATION_FAILED: broker 1; have the broker's administrator allow it
    """

    code_of_class = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    advice = "have the broker's administrator allow it"


class ThrottlingQuotaExceededError(BrokerError):
    """A quota is used up.

    >>> print(ThrottlingQuotaExceededError("broker 1"))
    THROTTLING_QUOTA_EXCEEDED: broker 1; try again later
    """

    code_of_class = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    advice = "try again later"


class UnacceptableCredentialError(BrokerError):
    """A credential that the broker does not take.

    >>> print(UnacceptableCredentialError("user 'alice': 100 iterations"))
    UNACCEPTABLE_CREDENTIAL: user 'alice': 100 iterations; take 4096 to 16384 iterations, and a name that is not empty
    """

    code_of_class = ErrorCode.UNACCEPTABLE_CREDENTIAL
    advice = "take 4096 to 16384 iterations, and a name that is not empty"
