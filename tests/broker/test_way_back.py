"""Locked out of a broker, and back in: by a listener on loopback, whose clients are super users for as long."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ottla.cli.commands import register
from ottla.cli.serve import settings
from ottla.client.admin import ConfigResource, ConfigResourceType, NewTopic
from ottla.errors import ClientCertificateError, KafkaError
from ottla.sync import Admin
from ottla.testing import TestBroker
from tests.certificates import Authority, written

PASSWORD = "wonder-4711"
OWN = "listener.name.sasl_ssl."


class House:
    """A data folder, the file that its broker is started with, and an admin who logs in."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        self.folder = folder
        self.ca = written(folder, "ca.pem", authority.pem)
        self.store = Path(written(folder, "broker.pem", authority.issue("broker").store))
        self.data = folder / "data"
        self.data.mkdir()
        self.file = folder / "broker.properties"
        self.file.write_text(
            "listeners=SASL_SSL://127.0.0.1:0\n"
            "advertised.listeners=SASL_SSL://localhost:0\n"
            f"ssl.keystore.location={self.store}\n"
            f"ssl.truststore.location={self.ca}\n"
            "authorizer.class.name=ottla\n"
        )

    def usual(self) -> TestBroker:
        return TestBroker(settings(self.file, [], [], [], self.data).static, folder=str(self.data))

    def way_back(self) -> TestBroker:
        """What `ottla serve FILE --listen ... --advertise ... --set ...` starts."""
        found = settings(
            self.file, ["super.users=User:ANONYMOUS"], ["PLAINTEXT://127.0.0.1:0"], ["127.0.0.1:0"], self.data
        )
        return TestBroker(found.static, folder=str(self.data))

    def admin(self, broker: TestBroker) -> Admin:
        return Admin(
            broker.bootstrap_servers,
            security_protocol="SASL_SSL",
            ssl_cafile=self.ca,
            sasl_mechanism="SCRAM-SHA-256",
            sasl_plain_username="admin",
            sasl_plain_password=PASSWORD,
        )


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.delenv("OTTLA_PASSWORD", raising=False)
    found = House(tmp_path)
    ottla("user", "add", "admin", "--data", str(found.data), stdin=f"{PASSWORD}\n")
    return found


def ottla(*words: str, stdin: str = "") -> None:
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, words, input=stdin)
    assert result.exit_code == 0, result.output


def allow(house: House) -> None:
    with house.way_back() as broker:
        words = ["--allow-principal", "User:admin", "--operation", "All", "--cluster"]
        ottla("acl", "add", *words, "-b", broker.bootstrap_servers)


def test_where_nobody_may_make_the_first_rule(house: House) -> None:
    with house.usual() as broker, house.admin(broker) as admin, pytest.raises(KafkaError, match="AUTHORIZATION_FAILED"):
        admin.create_topics([NewTopic("orders", 1)])
    allow(house)
    with house.usual() as broker, house.admin(broker) as admin:
        admin.create_topics([NewTopic("orders", 1)])


@pytest.mark.parametrize("starts", [True, False], ids=["refuses everybody", "does not start"])
def test_where_a_config_that_was_set_while_the_broker_ran_has_locked_the_admin_out(house: House, starts: bool) -> None:
    allow(house)
    name = OWN + ("ssl.client.auth" if starts else "ssl.keystore.location")
    other = house.folder / "other.pem"
    other.write_bytes(house.store.read_bytes())
    with house.usual() as broker, house.admin(broker) as admin:
        value = "required" if starts else str(other)
        admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "1", {name: value})])
    other.unlink()
    if starts:
        with house.usual() as broker, pytest.raises(ClientCertificateError), house.admin(broker) as admin:
            admin.list_topics()
    else:
        with pytest.raises(KafkaError, match="no such file"):
            house.usual().start()
    with house.way_back() as broker:
        ottla("config", "delete", name, "--broker", "1", "-b", broker.bootstrap_servers)
    with house.usual() as broker, house.admin(broker) as admin:
        admin.create_topics([NewTopic("orders", 1)])
