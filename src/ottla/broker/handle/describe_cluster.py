"""DescribeCluster (60): the brokers, the cluster's id and its controller.

v1 says which kind of node the client believes to talk to; v2 asks for fenced brokers too, of which there are none.
"""

from typing import TYPE_CHECKING

from ottla.broker.request import Answer, Request
from ottla.wire.api.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

BROKERS = 1
CONTROLLERS = 2

CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""All that can be done to a cluster, as a set of bits: create, alter, describe, cluster action, describe and alter
configs, idempotent write. Without an authoriser everybody may."""


def handle(broker: "Broker", request: Request) -> Answer:
    """Answer from the image."""
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
            DescribeClusterBroker(broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in image.brokers.values()
        ],
    )
    if body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _refuse(code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message)
