"""InitProducerId (22): an identity for an idempotent producer.

v3 and later may bring an identity whose epoch the producer wants raised. Transactional producers are not served yet.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.wire.api.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_LARGEST_EPOCH = 2**15 - 1


def handle(broker: "Broker", request: Request) -> Answer:
    """Give out an id that nobody has, or raise the epoch of the one that is brought."""
    body: InitProducerIdRequest = request.body
    try:
        _check_access(broker, request, body.transactional_id)
    except KafkaError as error:
        return InitProducerIdResponse(error_code=error.code, producer_epoch=-1)
    if body.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, producer_epoch=-1)
    if body.producer_id >= 0 and 0 <= body.producer_epoch < _LARGEST_EPOCH - 1:
        return InitProducerIdResponse(producer_id=body.producer_id, producer_epoch=body.producer_epoch + 1)
    return _allocate(broker)


def _check_access(broker: "Broker", request: Request, transactional_id: str | None) -> None:
    if transactional_id is not None:
        check_allowed(broker, request, ACLOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    elif broker.authorizer is not None and not broker.authorizer.allows_some(
        request.caller, ACLOperation.WRITE, ResourceType.TOPIC
    ):
        # Whoever may write to some topic may do so without duplicates; only others must be allowed to by name.
        check_allowed(broker, request, ACLOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)


async def _allocate(broker: "Broker") -> InitProducerIdResponse:
    try:
        return InitProducerIdResponse(producer_id=await broker.producer_ids.next(), producer_epoch=0)
    except KafkaError as error:
        return InitProducerIdResponse(error_code=error.code, producer_epoch=-1)
