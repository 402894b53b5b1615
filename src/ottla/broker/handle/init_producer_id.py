"""InitProducerId (22): an identity for an idempotent producer.

v3 and later may bring an identity whose epoch the producer wants raised. Transactional producers are not served yet.
"""

from typing import TYPE_CHECKING

from ottla.broker.request import Answer, Request
from ottla.wire.api.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_LARGEST_EPOCH = 2**15 - 1


def handle(broker: "Broker", request: Request) -> Answer:
    """Give out an id that nobody has, or raise the epoch of the one that is brought."""
    body: InitProducerIdRequest = request.body
    if body.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, producer_epoch=-1)
    if body.producer_id >= 0 and 0 <= body.producer_epoch < _LARGEST_EPOCH - 1:
        return InitProducerIdResponse(producer_id=body.producer_id, producer_epoch=body.producer_epoch + 1)
    return _allocate(broker)


async def _allocate(broker: "Broker") -> InitProducerIdResponse:
    try:
        return InitProducerIdResponse(producer_id=await broker.producer_ids.next(), producer_epoch=0)
    except KafkaError as error:
        return InitProducerIdResponse(error_code=error.code, producer_epoch=-1)
