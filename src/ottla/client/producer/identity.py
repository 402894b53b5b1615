"""Asking a broker for an identity."""

from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.client.producer.idempotence import Identity
from ottla.wire.api.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def obtain_identity(cluster: Cluster) -> Identity:
    """An identity that no other producer has."""

    async def ask() -> Identity:
        connection = await cluster.any_broker()
        response: InitProducerIdResponse = await connection.request(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
        )
        check(response.error_code, "no identity for an idempotent producer")
        return Identity(response.producer_id, response.producer_epoch)

    return await cluster.retrying(ask)
