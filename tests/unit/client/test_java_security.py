"""Security by the Java client's names."""

import pytest

from ottla.client.java_security import java_security
from ottla.net.security import Security

SSL = {"security.protocol": "SSL"}


def test_stores_in_pem_are_taken_over() -> None:
    properties = {
        **SSL,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca.pem",
        "ssl.keystore.type": "pem",
        "ssl.keystore.location": "client.pem",
        "ssl.key.password": "hidden",
    }
    assert java_security(properties) == Security(
        security_protocol="SSL", ssl_cafile="ca.pem", ssl_certfile="client.pem", ssl_password="hidden"
    )


def test_texts_in_pem_are_taken_over() -> None:
    properties = {
        **SSL,
        "ssl.truststore.certificates": "-----BEGIN A",
        "ssl.keystore.certificate.chain": "-----BEGIN B",
        "ssl.keystore.key": "-----BEGIN C",
    }
    found = java_security(properties)
    assert (found.ssl_cafile, found.ssl_certfile, found.ssl_keyfile) == ("-----BEGIN A", "-----BEGIN B", "-----BEGIN C")


def test_an_empty_algorithm_leaves_the_hosts_name_unchecked() -> None:
    assert java_security(SSL).ssl_check_hostname
    assert not java_security({**SSL, "ssl.endpoint.identification.algorithm": ""}).ssl_check_hostname


def test_ciphers_are_called_as_openssl_does() -> None:
    suites = "TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    found = java_security({**SSL, "ssl.cipher.suites": suites})
    assert found.ssl_ciphers == "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256"
    assert java_security({**SSL, "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}).ssl_ciphers is None


def test_without_tls_its_options_have_no_effect_as_in_java() -> None:
    assert java_security({"ssl.truststore.location": "ca.jks", "ssl.truststore.type": "JKS"}) == Security()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"security.protocol": "TLS"}, "option kafka.security.protocol is 'TLS'; it must be one of"),
        ({"ssl.keystore.type": "PKCS12"}, "option kafka.ssl.keystore.type is PKCS12; stores are PEM files here"),
        ({"ssl.truststore.location": "ca.JKS"}, "option kafka.ssl.truststore.location is a JKS or PKCS12 store"),
        ({"ssl.truststore.password": "hidden"}, "option kafka.ssl.truststore.password is set, but PEM files have no"),
        (
            {"ssl.keystore.key": "-----BEGIN SECRET"},
            "option kafka.ssl.keystore.key is set without kafka.ssl.keystore.location; give the certificate",
        ),
    ],
)
def test_what_cannot_be_is_named_with_what_to_do(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError) as caught:
        java_security({**SSL, **wrong}, "kafka.")
    assert said in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert "SECRET" not in str(caught.value)
