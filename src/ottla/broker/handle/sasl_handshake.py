"""SaslHandshake (17): begins a login, on listeners that ask for one.

After v0 the messages of the mechanism follow as they are, after v1 in SaslAuthenticate requests.
"""

from typing import TYPE_CHECKING

from ottla.broker.login import Login
from ottla.broker.request import Answer, Request
from ottla.wire.api.sasl_handshake import SaslHandshakeResponse
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Say which mechanisms there are."""
    login = request.caller.context
    if not isinstance(login, Login):
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    return login.handshake(request.body.mechanism, bytes_follow=request.version == 0)
