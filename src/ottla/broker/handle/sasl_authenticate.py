"""SaslAuthenticate (36): one message of a login.

v1 says how long the session lasts; v2 is flexible.
"""

from typing import TYPE_CHECKING

from ottla.broker.login import Login, Phase
from ottla.broker.request import Answer, Request
from ottla.wire.api.sasl_authenticate import SaslAuthenticateResponse
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Go on with a login, if one was begun."""
    login = request.caller.context
    if not isinstance(login, Login) or login.phase is not Phase.EXCHANGE:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="no login was begun on this connection; a SaslHandshake request comes first",
        )
    return login.authenticate(bytes(request.body.auth_bytes))
