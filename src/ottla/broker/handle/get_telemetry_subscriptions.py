"""GetTelemetrySubscriptions (71): which metrics a client should push, how often, and under which id."""

from typing import TYPE_CHECKING

from ottla.broker.request import Answer, Request
from ottla.broker.telemetry import ACCEPTED_COMPRESSION
from ottla.wire.api.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Answer with what the broker is configured to want; mostly nothing, and then clients push nothing."""
    body: GetTelemetrySubscriptionsRequest = request.body
    telemetry = broker.telemetry
    try:
        instance_id = telemetry.subscribe(body.client_instance_id)
    except KafkaError as error:
        return GetTelemetrySubscriptionsResponse(error_code=error.code)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=telemetry.subscription_id(instance_id),
        accepted_compression_types=[int(codec) for codec in ACCEPTED_COMPRESSION],
        push_interval_ms=telemetry.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=list(telemetry.wanted),
    )
