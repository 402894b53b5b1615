"""FindCoordinator (10): which broker looks after a group or a transaction.

v1 tells groups from transactions. Up to v3 one key is asked for, from v4 on many, each answered for itself. v6 has
share groups, which are not served.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.wire.api.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

GROUP = 0
TRANSACTION = 1
NOBODY = -1


def handle(broker: "Broker", request: Request) -> Answer:
    """Look up each key; the first group that anybody asks for has the offsets topic made."""
    return _find_all(broker, request)


async def _find_all(broker: "Broker", request: Request) -> FindCoordinatorResponse:
    body: FindCoordinatorRequest = request.body
    if request.version >= 4:
        found = [await _find(broker, request, key) for key in body.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    one = await _find(broker, request, body.key)
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


async def _find(broker: "Broker", request: Request, key: str) -> Coordinator:
    key_type = request.body.key_type
    try:
        if key_type == TRANSACTION:
            check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key)
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "transactions are not served yet")
        if key_type != GROUP:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"key type {key_type} is none that is served; groups are 0")
        check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.GROUP, key)
        node = await broker.groups.find(key)
        where = node.endpoints.get(request.caller.listener)
        if where is None:
            message = f"broker {node.node_id} has no listener {request.caller.listener}, through which you came"
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    except KafkaError as error:
        return Coordinator(key=key, node_id=NOBODY, port=NOBODY, error_code=error.code, error_message=error.message)
    return Coordinator(key=key, node_id=node.node_id, host=where.host, port=where.port, error_message=None)
