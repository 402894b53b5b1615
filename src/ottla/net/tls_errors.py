"""Why a connection with TLS could not be had, as exceptions that say what to do."""

import ssl

from ottla.wire.errors import ErrorCode, KafkaError


class SslAuthenticationError(KafkaError):
    """The two sides could not agree on TLS, or one does not trust the other. Trying again does not help.

    >>> SslAuthenticationError("broker-1:9093: no cipher in common").retriable
    False
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)
        # There is no code for it on the wire, and the name of this one would blame the network.
        self.args = (self.message,)

    @property
    def retriable(self) -> bool:
        """Whether trying again can help."""
        return False


class CertificateExpiredError(SslAuthenticationError):
    """A certificate is out of date, or not valid yet.

    >>> isinstance(CertificateExpiredError("the certificate of broker-1:9093 has expired"), SslAuthenticationError)
    True
    """


class CertificateRevokedError(SslAuthenticationError):
    """A certificate was revoked, or no list of its authority says that it was not.

    >>> isinstance(CertificateRevokedError("the certificate of broker-1:9093 was revoked"), SslAuthenticationError)
    True
    """


class UntrustedCertificateError(SslAuthenticationError):
    """A certificate was signed by nobody who is trusted.

    >>> isinstance(UntrustedCertificateError("nobody vouches for broker-1:9093"), SslAuthenticationError)
    True
    """


class WrongHostnameError(SslAuthenticationError):
    """A certificate is for another host.

    >>> isinstance(WrongHostnameError("the certificate is for broker-2"), SslAuthenticationError)
    True
    """


class ClientCertificateError(SslAuthenticationError):
    """The broker does not accept the client's certificate, or wants one and got none.

    >>> isinstance(ClientCertificateError("broker-1:9093 wants a certificate"), SslAuthenticationError)
    True
    """


class SecurityProtocolError(SslAuthenticationError):
    """One side speaks TLS, and the other does not.

    >>> isinstance(SecurityProtocolError("broker-1:9093 does not speak TLS"), SslAuthenticationError)
    True
    """


_EXPIRED, _NOT_YET_VALID = 10, 9
_REVOKED, _NO_LIST, _OLD_LIST = 23, 3, 12
_WRONG_HOST, _WRONG_ADDRESS = 62, 64

_NOT_TLS = frozenset(
    {
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
        "HTTPS_PROXY_REQUEST",
        "PACKET_LENGTH_TOO_LONG",
        "RECORD_LAYER_FAILURE",
        "UNKNOWN_PROTOCOL",
        "BAD_RECORD_TYPE",
        "UNEXPECTED_RECORD",
        "INVALID_ALERT",
    }
)
"""What OpenSSL says of bytes that are no TLS."""

_WANTS_CERTIFICATE = ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE")
_BROKERS_WORDS = {
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "has expired; get a new one, and set ssl_certfile and ssl_keyfile to it",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "was revoked; get a new one, and set ssl_certfile and ssl_keyfile to it",
    "TLSV1_ALERT_UNKNOWN_CA": "was signed by nobody whom it trusts; get one from an authority of its trust store",
    "SSLV3_ALERT_BAD_CERTIFICATE": "is not good; see the broker's log",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "is not of a kind that it takes; see the broker's log",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "is not accepted; see the broker's log",
    "TLSV1_ALERT_ACCESS_DENIED": "is not accepted; see the broker's log",
}


def client_error(error: Exception, broker: str, *, has_certificate: bool = False) -> SslAuthenticationError | None:
    """What a failure of TLS means to a client; None if it is none, such as a connection that was cut.

    >>> error = ssl.SSLError(1, "x")
    >>> error.reason = "WRONG_VERSION_NUMBER"
    >>> client_error(error, "broker-1:9092").message
    "broker-1:9092 does not speak TLS; set security_protocol to 'PLAINTEXT' or 'SASL_PLAINTEXT', or give its TLS port"
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return _verification_error(error, broker)
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return None
    reason = error.reason or ""
    if is_not_tls(error):
        return SecurityProtocolError(no_tls(broker))
    if reason in _WANTS_CERTIFICATE and not has_certificate:
        return ClientCertificateError(
            f"{broker} ended the TLS handshake, as brokers do that want a certificate; set ssl_certfile and ssl_keyfile"
        )
    if reason in _BROKERS_WORDS:
        return ClientCertificateError(f"{broker} says that this client's certificate {_BROKERS_WORDS[reason]}")
    words = reason.replace("_", " ").lower() or str(error)
    return SslAuthenticationError(f"no TLS with {broker}: {words}; compare the versions and ciphers of both sides")


def is_not_tls(error: BaseException) -> bool:
    """Whether the peer sent something else than TLS."""
    return isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS


def no_tls(broker: str) -> str:
    """What to tell those who speak TLS to a listener that does not."""
    return (
        f"{broker} does not speak TLS; set security_protocol to 'PLAINTEXT' or 'SASL_PLAINTEXT', or give its TLS port"
    )


def only_tls(broker: str) -> str:
    """What to tell those who do not speak TLS to a listener that does."""
    return f"{broker} speaks TLS; set security_protocol to 'SSL' or 'SASL_SSL', or give its port without TLS"


def _verification_error(error: ssl.SSLCertVerificationError, broker: str) -> SslAuthenticationError:
    code = error.verify_code
    if code == _EXPIRED:
        return CertificateExpiredError(f"the certificate of {broker} has expired; have the broker given a new one")
    if code == _NOT_YET_VALID:
        return CertificateExpiredError(
            f"the certificate of {broker} is not valid yet; see whether the clocks are right"
        )
    if code == _REVOKED:
        return CertificateRevokedError(f"the certificate of {broker} was revoked; have the broker given a new one")
    if code in (_NO_LIST, _OLD_LIST):
        what = "is no current list" if code == _OLD_LIST else "is no list"
        return CertificateRevokedError(
            f"there {what} of revoked certificates by the authority that signed the certificate of {broker}; "
            "put one into the file of ssl_crlfile"
        )
    if code in (_WRONG_HOST, _WRONG_ADDRESS):
        return WrongHostnameError(
            f"the certificate of {broker} is for another host ({error.verify_message}); connect by a name that it "
            "has, have the broker given one for this name, or set ssl_check_hostname=False"
        )
    return UntrustedCertificateError(
        f"nobody who is trusted vouches for the certificate of {broker} ({error.verify_message}); set ssl_cafile to "
        "the certificate of the authority that signed it"
    )


def handshake_trouble(error: BaseException) -> str:
    """What a failed handshake means to a broker, for its log.

    >>> handshake_trouble(ConnectionAbortedError())
    'it did not finish the TLS handshake in time'
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ConnectionAbortedError):
        return "it did not finish the TLS handshake in time"
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError):
        return "it left during the TLS handshake; it may not trust this broker's certificate"
    reason = error.reason or ""
    if is_not_tls(error):
        return "it does not speak TLS, which this listener asks for; set its security.protocol to SSL or SASL_SSL"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "it has no certificate, which ssl.client.auth=required asks for"
    if "ALERT" in reason:
        return f"it does not accept this broker: {reason.partition('ALERT_')[2].replace('_', ' ').lower()}"
    return f"no TLS with it: {reason.replace('_', ' ').lower() or error}"
