"""SaslAuthenticate (API key 36). One step of a SASL exchange."""

from ottla.wire.schema import int16, int64, message, v


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    """v2 flexible."""

    auth_bytes: bytes = b""


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """v1 adds session_lifetime_ms; v2 flexible."""

    error_code: int16 = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int64 = v("1+")
