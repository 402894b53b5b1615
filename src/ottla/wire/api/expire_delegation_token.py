"""ExpireDelegationToken (API key 40). End a delegation token."""

from ottla.wire.schema import int16, int32, int64, message


@message(key=40, versions="0-2", flexible="2+")
class ExpireDelegationTokenRequest:
    """v2 flexible."""

    hmac: bytes = b""
    expiry_time_period_ms: int64 = 0


@message(key=40, versions="0-2", flexible="2+")
class ExpireDelegationTokenResponse:
    """v2 flexible."""

    error_code: int16 = 0
    expiry_timestamp_ms: int64 = 0
    throttle_time_ms: int32 = 0
