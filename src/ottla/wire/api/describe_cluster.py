"""DescribeCluster (API key 60). The brokers and the controller."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    """v1 adds endpoint_type; v2 adds include_fenced_brokers."""

    include_cluster_authorized_operations: bool = False
    endpoint_type: int8 = v("1+", 1)
    include_fenced_brokers: bool = v("2+")


@part
class DescribeClusterBroker:
    broker_id: int32 = 0
    host: str = ""
    port: int32 = 0
    rack: str | None = None
    is_fenced: bool = v("2+")


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    """v1 adds endpoint_type; v2 adds is_fenced."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    endpoint_type: int8 = v("1+", 1)
    cluster_id: str = ""
    controller_id: int32 = -1
    brokers: list[DescribeClusterBroker] = v()
    cluster_authorized_operations: int32 = -(2**31)
