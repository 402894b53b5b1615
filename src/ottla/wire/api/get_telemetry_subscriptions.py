"""GetTelemetrySubscriptions (API key 71). Which metrics the broker wants of a client."""

from ottla.wire.schema import int8, int16, int32, message, uuid, v


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest:
    """The only version so far."""

    client_instance_id: uuid = v()


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    client_instance_id: uuid = v()
    subscription_id: int32 = 0
    accepted_compression_types: list[int8] = v()
    push_interval_ms: int32 = 0
    telemetry_max_bytes: int32 = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = v()
