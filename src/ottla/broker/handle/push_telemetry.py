"""PushTelemetry (72): metrics of a client. They are counted, and told at level DEBUG; nobody keeps them."""

import logging
from typing import TYPE_CHECKING

from ottla.broker.request import Answer, Request
from ottla.wire.api.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.telemetry")


def handle(broker: "Broker", request: Request) -> Answer:
    """Check that it is in time and what was asked for, and take note."""
    body: PushTelemetryRequest = request.body
    size = len(body.metrics)
    try:
        broker.telemetry.push(
            body.client_instance_id, body.subscription_id, body.terminating, body.compression_type, size
        )
    except KafkaError as error:
        log.debug("telemetry from %s is refused: %s", request.caller.peer, error, extra=request.caller.identity)
        return PushTelemetryResponse(error_code=error.code)
    log.debug(
        "%d bytes of telemetry from %s, client id %r, compression %d%s",
        *(size, request.caller.peer, request.client_id, body.compression_type),
        ", its last" if body.terminating else "",
        extra=request.caller.identity,
    )
    return PushTelemetryResponse()
