"""The configs of TLS, which a broker has as a whole and may have for each listener."""

from ottla.config.check import Check, at_least, each_of, one_of
from ottla.config.definition import INT, LIST, PASSWORD, STRING, Configs, option
from ottla.config.parse import Value

CONVERT = (
    "stores are PEM files here; convert a JKS store with `keytool -importkeystore -srckeystore FILE -destkeystore "
    "store.p12 -deststoretype PKCS12`, and a PKCS12 store with `openssl pkcs12 -in store.p12 -out store.pem`"
)
"""What to do about stores that only Java reads."""


def _only_pem(value: Value) -> str | None:
    return None if value == "PEM" else CONVERT


def _never(complaint: str) -> Check:
    return lambda value: complaint


class TlsConfigs(Configs):
    """What a broker's listeners show, whom they trust, and how careful they are."""

    ssl_keystore_type: str = option(STRING, "PEM", "The format of the key store.", _only_pem, dynamic=True)
    ssl_keystore_location: str | None = option(
        STRING, None, "The file with the broker's certificate, those above it, and its key.", dynamic=True
    )
    ssl_keystore_certificate_chain: str | None = option(
        PASSWORD, None, "The certificate and those above it as PEM text, in place of a file.", dynamic=True
    )
    ssl_keystore_key: str | None = option(
        PASSWORD, None, "The certificate's key as PEM text, in place of a file.", dynamic=True
    )
    ssl_keystore_password: str | None = option(
        PASSWORD,
        None,
        "Refused: PEM files have no password of their own.",
        _never("PEM files have no password of their own; set ssl.key.password if the key is encrypted"),
    )
    ssl_key_password: str | None = option(PASSWORD, None, "What the key is encrypted with.", dynamic=True)
    ssl_truststore_type: str = option(STRING, "PEM", "The format of the trust store.", _only_pem, dynamic=True)
    ssl_truststore_location: str | None = option(
        STRING, None, "The file with the authorities whose clients are trusted.", dynamic=True
    )
    ssl_truststore_certificates: str | None = option(
        PASSWORD, None, "Those authorities' certificates as PEM text, in place of a file.", dynamic=True
    )
    ssl_truststore_password: str | None = option(
        PASSWORD,
        None,
        "Refused: PEM files have no password of their own.",
        _never("PEM files have no password of their own; leave it out"),
    )
    ssl_crl_location: str | None = option(
        STRING, None, "The file with lists of revoked certificates, as PEM; one of each authority.", dynamic=True
    )
    ssl_client_auth: str = option(
        STRING,
        "none",
        "Whether clients show a certificate.",
        one_of("none", "requested", "required"),
        dynamic=True,
    )
    ssl_principal_mapping_rules: str = option(
        STRING,
        "DEFAULT",
        "From a certificate's name to a user's: RULE:PATTERN/REPLACEMENT/[LU] with commas between, or DEFAULT.",
        dynamic=True,
    )
    ssl_enabled_protocols: tuple[str, ...] = option(
        LIST, ("TLSv1.2", "TLSv1.3"), "The versions of TLS on offer.", each_of("TLSv1.2", "TLSv1.3"), dynamic=True
    )
    ssl_protocol: str = option(
        STRING,
        "TLSv1.3",
        "Accepted from Kafka's files; ssl.enabled.protocols says what is on offer.",
        one_of("TLS", "TLSv1.2", "TLSv1.3"),
    )
    ssl_cipher_suites: tuple[str, ...] = option(
        LIST, (), "The cipher suites on offer; good ones if not set.", dynamic=True
    )
    ssl_refresh_interval_ms: int = option(
        INT, 10_000, "How often the files of TLS are looked at, and taken into use if they changed.", at_least(1)
    )
    ssl_endpoint_identification_algorithm: str = option(
        STRING, "https", "Accepted from Kafka's files; the names of clients' hosts are not looked at."
    )
