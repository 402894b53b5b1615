"""AlterUserScramCredentials (API key 51). Set and delete SCRAM credentials."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@part
class ScramCredentialDeletion:
    name: str = ""
    mechanism: int8 = 0


@part
class ScramCredentialUpsertion:
    name: str = ""
    mechanism: int8 = 0
    iterations: int32 = 0
    salt: bytes = b""
    salted_password: bytes = b""


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest:
    """The only version so far."""

    deletions: list[ScramCredentialDeletion] = v()
    upsertions: list[ScramCredentialUpsertion] = v()


@part
class AlterUserScramCredentialsResult:
    user: str = ""
    error_code: int16 = 0
    error_message: str | None = ""


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    results: list[AlterUserScramCredentialsResult] = v()
