"""DescribeUserScramCredentials (API key 50). Which users have SCRAM credentials."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@part
class UserName:
    name: str = ""


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    """The only version so far."""

    users: list[UserName] | None = v()


@part
class CredentialInfo:
    mechanism: int8 = 0
    iterations: int32 = 0


@part
class DescribeUserScramCredentialsResult:
    user: str = ""
    error_code: int16 = 0
    error_message: str | None = ""
    credential_infos: list[CredentialInfo] = v()


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = v()
