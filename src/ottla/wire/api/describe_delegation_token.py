"""DescribeDelegationToken (API key 41). List delegation tokens."""

from ottla.wire.schema import int16, int32, int64, message, part, v


@part
class DescribeDelegationTokenOwner:
    principal_type: str = ""
    principal_name: str = ""


@message(key=41, versions="0-3", flexible="2+")
class DescribeDelegationTokenRequest:
    """v2 flexible."""

    owners: list[DescribeDelegationTokenOwner] | None = v()


@part
class DescribedDelegationTokenRenewer:
    principal_type: str = ""
    principal_name: str = ""


@part
class DescribedDelegationToken:
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = v("3+")
    token_requester_principal_name: str = v("3+")
    issue_timestamp: int64 = 0
    expiry_timestamp: int64 = 0
    max_timestamp: int64 = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = v()


@message(key=41, versions="0-3", flexible="2+")
class DescribeDelegationTokenResponse:
    """v2 flexible; v3 adds token_requester_principal_type, token_requester_principal_name."""

    error_code: int16 = 0
    tokens: list[DescribedDelegationToken] = v()
    throttle_time_ms: int32 = 0
