"""Security as the Java client's options have it, for Spark and for files that Kafka's own commands read."""

import re
from collections.abc import Mapping

from ottla.client.oauth import ClientCredentials
from ottla.config.jaas import JaasLogin, parse_jaas
from ottla.config.tls import CONVERT
from ottla.net.security import MECHANISMS, PROTOCOLS, Security, SecurityOptions
from ottla.net.tls import openssl_name

JAVA_NAMES = {
    "security_protocol": "security.protocol",
    "ssl_check_hostname=False": "ssl.endpoint.identification.algorithm to nothing",
    "ssl_check_hostname": "ssl.endpoint.identification.algorithm",
    "ssl_cafile": "ssl.truststore.location",
    "ssl_certfile": "ssl.keystore.location",
    "ssl_keyfile": "ssl.keystore.key",
    "ssl_password": "ssl.key.password",
    "ssl_crlfile": "ssl.crl.location",
    "ssl_ciphers": "ssl.cipher.suites",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_plain_username": "username in sasl.jaas.config",
    "sasl_plain_password": "password in sasl.jaas.config",
    "sasl_oauth_token_provider": "sasl.oauthbearer.token.endpoint.url",
}
"""What the options of `Security` are called in Java, the longer of those that begin alike first."""


def in_other_words(message: str, names: Mapping[str, str]) -> str:
    """A message in which options are called by other names. What is quoted is somebody's value, and stays.

    >>> in_other_words("ssl_cafile: 'ssl_cafile' cannot be read", {"ssl_cafile": "--ca"})
    "--ca: 'ssl_cafile' cannot be read"
    """
    pattern = "|".join(map(re.escape, names))
    return re.sub(rf"(?<!['\w])(?:{pattern})(?!['\w])", lambda found: names[found[0]], message)


def in_java_words(message: str, prefix: str = "") -> str:
    """A message in which the options of `Security` are called as in Java, with `prefix` before them.

    >>> in_java_words("set ssl_cafile, or sasl_plain_password", "kafka.")
    'set kafka.ssl.truststore.location, or password in kafka.sasl.jaas.config'
    """
    names = {
        ours: " ".join(prefix + word if "." in word else word for word in theirs.split(" "))
        for ours, theirs in JAVA_NAMES.items()
    }
    return in_other_words(message, names)


def java_security(properties: Mapping[str, str], prefix: str = "") -> Security:
    """How to be sure of the brokers, and how to prove who one is. `prefix` is put before the names in errors.

    As in Java, the `ssl.` options are looked at only if `security.protocol` asks for TLS, and the `sasl.` options only
    if it asks for a login.

    >>> found = java_security({"security.protocol": "SSL", "ssl.truststore.location": "ca.pem"})
    >>> found.security_protocol, found.ssl_cafile
    ('SSL', 'ca.pem')
    >>> wrong = {"security.protocol": "SSL", "ssl.keystore.location": "client.jks"}
    >>> java_security(wrong, "kafka.")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: option kafka.ssl.keystore.location is a JKS or PKCS12 store; stores are PEM files here; convert ...
    """
    options: SecurityOptions = {"security_protocol": properties.get("security.protocol", "PLAINTEXT").strip()}
    protocol = options["security_protocol"].upper()
    if protocol not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        given = options["security_protocol"]
        raise ValueError(f"option {prefix}security.protocol is {given!r}; it must be one of {known}")
    if protocol.endswith("SSL"):
        options |= _tls_options(properties, prefix)
    if protocol.startswith("SASL"):
        options |= _sasl_options(properties, prefix)
    try:
        return Security(**options)
    except ValueError as error:
        raise ValueError(f"option {in_java_words(str(error), prefix)}") from None


def _tls_options(properties: Mapping[str, str], prefix: str) -> SecurityOptions:
    for store in ("ssl.keystore", "ssl.truststore"):
        _check_store(properties, store, prefix)

    def first(*names: str) -> str | None:
        return next((properties[name] for name in names if properties.get(name, "").strip()), None)

    ciphers = first("ssl.cipher.suites")
    return {
        "ssl_check_hostname": properties.get("ssl.endpoint.identification.algorithm", "https").strip() != "",
        "ssl_cafile": first("ssl.truststore.certificates", "ssl.truststore.location", "ssl.ca.location"),
        "ssl_certfile": first("ssl.keystore.certificate.chain", "ssl.keystore.location", "ssl.certificate.location"),
        "ssl_keyfile": first("ssl.keystore.key", "ssl.key.location"),
        "ssl_password": first("ssl.key.password"),
        "ssl_crlfile": first("ssl.crl.location"),
        "ssl_ciphers": None if ciphers is None else _openssl_ciphers(ciphers),
    }


def _openssl_ciphers(ciphers: str) -> str | None:
    # TLS 1.3 has its own, which are always on.
    names = [openssl_name(name.strip()) for name in ciphers.split(",")]
    return ":".join(name for name in names if not name.startswith("TLS_")) or None


def _check_store(properties: Mapping[str, str], store: str, prefix: str) -> None:
    kind = properties.get(f"{store}.type", "PEM").strip().upper()
    location = properties.get(f"{store}.location", "").strip().lower()
    if kind != "PEM":
        raise ValueError(f"option {prefix}{store}.type is {kind}; {CONVERT}; then set it to PEM")
    if location.endswith((".jks", ".p12", ".pfx", ".pkcs12")):
        raise ValueError(f"option {prefix}{store}.location is a JKS or PKCS12 store; {CONVERT}")
    if properties.get(f"{store}.password"):
        raise ValueError(
            f"option {prefix}{store}.password is set, but PEM files have no password of their own; leave it out, and "
            f"set {prefix}ssl.key.password if the key is encrypted"
        )


_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
}


def _sasl_options(properties: Mapping[str, str], prefix: str) -> SecurityOptions:
    """Who to log in as, and how. Names and passwords are never part of an error.

    >>> jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="wonder";'
    >>> _sasl_options({"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas}, "")["sasl_plain_username"]
    'alice'
    """
    mechanism = properties.get("sasl.mechanism", "").strip().upper()
    if mechanism not in MECHANISMS:
        given = properties.get("sasl.mechanism")
        is_said = "is missing" if given is None else f"is {given!r}"
        raise ValueError(f"option {prefix}sasl.mechanism {is_said}; set it to one of {', '.join(MECHANISMS)}")
    login = _login(properties, mechanism, prefix)
    if mechanism == "OAUTHBEARER":
        return {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": _provider(properties, login, prefix)}
    user = login.options.get("username") or properties.get("sasl.username")
    password = login.options.get("password") or properties.get("sasl.password")
    if not user or not password:
        what = "username" if not user else "password"
        raise ValueError(f'option {prefix}sasl.jaas.config has no {what}; add {what}="..." to it')
    return {"sasl_mechanism": mechanism, "sasl_plain_username": user, "sasl_plain_password": password}


def _login(properties: Mapping[str, str], mechanism: str, prefix: str) -> JaasLogin:
    text = properties.get("sasl.jaas.config", "").strip()
    if not text:
        return JaasLogin("", {})
    try:
        found = parse_jaas(text)
    except ValueError as error:
        raise ValueError(f"option {prefix}sasl.jaas.config cannot be read: {error}") from None
    if found.module != _MODULES[mechanism]:
        raise ValueError(
            f"option {prefix}sasl.jaas.config is for {found.module[:50]}, but {prefix}sasl.mechanism is {mechanism}; "
            f"write {_MODULES[mechanism]} there"
        )
    return found


def _provider(properties: Mapping[str, str], login: JaasLogin, prefix: str) -> ClientCredentials:
    url = properties.get("sasl.oauthbearer.token.endpoint.url", "").strip()
    credentials = "sasl.oauthbearer.client.credentials."
    try:
        return ClientCredentials(
            token_endpoint_url=url,
            client_id=login.options.get("clientId") or properties.get(credentials + "client.id", ""),
            client_secret=login.options.get("clientSecret") or properties.get(credentials + "client.secret", ""),
            scope=login.options.get("scope") or properties.get("sasl.oauthbearer.scope"),
        )
    except ValueError as error:
        raise ValueError(
            f"option {prefix}sasl.oauthbearer.token.endpoint.url, or clientId and clientSecret of "
            f"{prefix}sasl.jaas.config: {error}"
        ) from None
