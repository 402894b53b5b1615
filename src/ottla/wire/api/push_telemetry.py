"""PushTelemetry (API key 72). A client's metrics."""

from ottla.wire.schema import int8, int16, int32, message, uuid, v


@message(key=72, versions="0", flexible="0+")
class PushTelemetryRequest:
    """The only version so far."""

    client_instance_id: uuid = v()
    subscription_id: int32 = 0
    terminating: bool = False
    compression_type: int8 = 0
    metrics: bytes = b""


@message(key=72, versions="0", flexible="0+")
class PushTelemetryResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
