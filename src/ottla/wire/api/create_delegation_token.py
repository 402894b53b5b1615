"""CreateDelegationToken (API key 38). Create a delegation token."""

from ottla.wire.schema import int16, int32, int64, message, part, v


@part
class CreatableRenewers:
    principal_type: str = ""
    principal_name: str = ""


@message(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest:
    """v2 flexible; v3 adds owner_principal_type, owner_principal_name."""

    owner_principal_type: str | None = v("3+")
    owner_principal_name: str | None = v("3+")
    renewers: list[CreatableRenewers] = v()
    max_lifetime_ms: int64 = 0


@message(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenResponse:
    """v2 flexible; v3 adds token_requester_principal_type, token_requester_principal_name."""

    error_code: int16 = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = v("3+")
    token_requester_principal_name: str = v("3+")
    issue_timestamp_ms: int64 = 0
    expiry_timestamp_ms: int64 = 0
    max_timestamp_ms: int64 = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int32 = 0
