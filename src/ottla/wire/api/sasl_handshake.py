"""SaslHandshake (API key 17). Choose a SASL mechanism."""

from ottla.wire.schema import int16, message, v


@message(key=17, versions="0-1")
class SaslHandshakeRequest:
    """v0 raw SASL bytes follow on the connection; v1 SaslAuthenticate requests follow."""

    mechanism: str = ""


@message(key=17, versions="0-1")
class SaslHandshakeResponse:
    """No version changed any field."""

    error_code: int16 = 0
    mechanisms: list[str] = v()
