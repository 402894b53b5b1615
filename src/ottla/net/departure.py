"""What it may mean that a broker closed a connection: it often says nothing, and then that is all a client learns."""

from typing import NamedTuple

from ottla.net.failures import LoginMissingError
from ottla.net.negotiate import Offer
from ottla.net.receiving import TLS_ALERT, begins_like
from ottla.net.security import Security
from ottla.net.tls_errors import SecurityProtocolError, SslAuthenticationError, client_error, only_tls
from ottla.wire.errors import KafkaError

SASL_HANDSHAKE = 17


class Departure(NamedTuple):
    """A broker that left, and what had happened until then."""

    broker: str
    security: Security
    offer: Offer
    """The versions that it had told; empty if it had not come to that."""
    announced: int
    """The size of the reply that it had begun, 0 if there was none."""
    at_first_request: bool
    """Whether it had been asked for nothing but its versions before."""
    error: Exception | None

    @property
    def cause(self) -> str:
        """The end of a sentence about it."""
        cause = f": {self.error}" if self.error is not None else ""
        if not self.offer and self.security.ssl_certfile is not None and not self.security.uses_sasl:
            # It has not said a word, as to those whom it has no name for.
            cause += ", as brokers do whose ssl.principal.mapping.rules do not fit the certificate of ssl_certfile"
        return cause

    @property
    def failure(self) -> KafkaError | None:
        """What was wrong, if that can be told."""
        return self._security_failure() or self._login_missing()

    def _login_missing(self) -> LoginMissingError | None:
        if not self.at_first_request or self.security.uses_sasl or SASL_HANDSHAKE not in self.offer:
            return None
        protocol = "SASL_SSL" if self.security.uses_tls else "SASL_PLAINTEXT"
        return LoginMissingError(
            f"{self.broker} closed the connection at the first request, as brokers do that ask for a login; "
            f"if so, set security_protocol to {protocol!r}, and sasl_mechanism"
        )

    def _security_failure(self) -> SslAuthenticationError | None:
        if not self.security.uses_tls:
            # The broker has tried to say, in its own language, that it does not understand.
            if not self.offer and begins_like(self.announced, TLS_ALERT):
                return SecurityProtocolError(only_tls(self.broker))
            return None
        if self.error is None:
            return None
        # With TLS 1.3 a broker says after the handshake what it thinks of the client's certificate.
        return client_error(self.error, self.broker, has_certificate=self.security.ssl_certfile is not None)
