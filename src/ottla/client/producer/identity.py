"""Asking a broker for an identity."""

from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.client.producer.idempotence import Identity
from ottla.wire.api.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.errors import ErrorCode

WHAT_IT_TAKES = (
    "an idempotent producer takes WRITE on the topic, and with brokers before 2.8 IDEMPOTENT_WRITE on the cluster"
)
"""What it means that a broker gives no identity. It looks whether the user may write to any topic, not to which."""


async def obtain_identity(cluster: Cluster) -> Identity:
    """An identity that no other producer has."""

    async def ask() -> Identity:
        connection = await cluster.any_broker()
        response: InitProducerIdResponse = await connection.request(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
        )
        refused = response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        check(response.error_code, WHAT_IT_TAKES if refused else "no identity for an idempotent producer")
        return Identity(response.producer_id, response.producer_epoch)

    return await cluster.retrying(ask)
