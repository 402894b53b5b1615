"""RenewDelegationToken (API key 39). Prolong a delegation token."""

from ottla.wire.schema import int16, int32, int64, message


@message(key=39, versions="0-2", flexible="2+")
class RenewDelegationTokenRequest:
    """v2 flexible."""

    hmac: bytes = b""
    renew_period_ms: int64 = 0


@message(key=39, versions="0-2", flexible="2+")
class RenewDelegationTokenResponse:
    """v2 flexible."""

    error_code: int16 = 0
    expiry_timestamp_ms: int64 = 0
    throttle_time_ms: int32 = 0
