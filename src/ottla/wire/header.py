"""Request and response headers. Which version goes with which message: see `ottla.wire.frame`."""

from ottla.wire.schema import int16, int32, message, v


@message(versions="0-2", flexible="2+")
class RequestHeader:
    """Opens every request.

    v1 adds client_id.
    v2 flexible.
    """

    request_api_key: int16 = 0
    request_api_version: int16 = 0
    correlation_id: int32 = 0
    client_id: str | None = v("1+", plain=True)


@message(versions="0-1", flexible="1+")
class ResponseHeader:
    """Opens every response.

    v1 flexible.
    """

    correlation_id: int32 = 0
