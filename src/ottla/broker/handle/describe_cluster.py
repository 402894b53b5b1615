"""DescribeCluster (60): the brokers, the cluster's id and its controller.

v1 says which kind of node the client believes to talk to; v2 asks for fenced brokers too, of which there are none.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import cluster_operations
from ottla.broker.request import Answer, Request
from ottla.wire.api.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

BROKERS = 1
CONTROLLERS = 2


def handle(broker: "Broker", request: Request) -> Answer:
    """Answer from the image. Everybody may know where the brokers are: clients cannot do without."""
    body: DescribeClusterRequest = request.body
    if body.endpoint_type == CONTROLLERS:
        return _refuse(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is a broker's address, not a controller's")
    if body.endpoint_type != BROKERS:
        message = f"endpoint type {body.endpoint_type} is not known; brokers are {BROKERS}"
        return _refuse(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, message)
    image = broker.image
    response = DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=node.node_id, host=where.host, port=where.port, rack=node.rack)
            for node, where in image.reached_by(request.caller.listener)
        ],
    )
    if body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(broker, request)
    return response


def _refuse(code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message)
