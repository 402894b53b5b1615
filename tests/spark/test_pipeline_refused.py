"""What `ottla pipeline` says, before Spark starts, to those who may not read or whom the broker does not let in."""

from pathlib import Path

import typer
from tests.certificates import Authority, written
from typer.testing import CliRunner, Result

from ottla.cli.commands import register
from ottla.client.admin import NewTopic, UserScramCredentialUpsertion
from ottla.sync import Admin
from ottla.testing import TestBroker

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def run(file: Path, broker: str, **options: str) -> Result:
    """Run a pipeline over a topic `orders`, with options whose names have underscores in place of dots."""
    lines = [f"\"kafka.{name.replace('_', '.')}\" = '{value}'" for name, value in options.items()]
    source = ["[source]", f'bootstrap_servers = "{broker}"', 'topics = "orders"', "[source.options]", *lines]
    file.write_text("\n".join([*source, "[[sink]]", 'delta = "table"']))
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, ["pipeline", "run", str(file), "--available-now"])


def test_a_user_who_may_not_read_is_told_what_is_missing(tmp_path: Path) -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "authorizer.class.name": "ottla",
        "super.users": "User:ANONYMOUS",
    }
    with TestBroker(settings) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 1)])
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion("bob", "SCRAM-SHA-256", "builder")])
        refused = run(
            tmp_path / "pipeline.toml",
            str(broker.endpoints["SASL_PLAINTEXT"]),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_jaas_config=f'{MODULE} required username="bob" password="builder";',
        )
    assert refused.exit_code == 1
    assert "TOPIC_AUTHORIZATION_FAILED: User:bob needs READ on topic 'orders'\n" in refused.stderr
    assert "ottla acl add --allow-principal User:bob --operation Read --topic orders" in refused.stderr


def test_options_are_called_as_in_the_file(tmp_path: Path) -> None:
    store = written(tmp_path, "broker.pem", Authority().issue("broker").store)
    with TestBroker({"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": store}) as broker:
        refused = run(tmp_path / "pipeline.toml", broker.bootstrap_servers, security_protocol="SSL")
    assert refused.exit_code == 1
    assert "set kafka.ssl.truststore.location to the certificate of the authority" in refused.stderr
