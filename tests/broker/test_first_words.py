"""What a broker says at its start of settings that do something else than somebody may think."""

from pathlib import Path

import pytest

from ottla.client.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from ottla.cluster.credential import ScramMechanism
from ottla.sync import Admin
from ottla.testing import TestBroker
from tests.broker.sasl_world import add_users
from tests.waiting import until

NOBODY = "nobody can log in at listener SASL_PLAINTEXT"
OPEN = "everybody who gets in may do everything; set authorizer.class.name = ottla"
BOTH = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
CAROL = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_carol="carols-password";'


def first_words(caplog: pytest.LogCaptureFixture, settings: dict[str, str], folder: str | None = None) -> list[str]:
    caplog.clear()
    with TestBroker({"listeners": BOTH, **settings}, folder=folder):
        return list(caplog.messages)


def told_of(words: list[str], beginning: str) -> list[str]:
    return [one for one in words if one.startswith(beginning)]


def test_super_users_without_an_authorizer_are_told_to_mean_nothing(caplog: pytest.LogCaptureFixture) -> None:
    beginning, settings = "super.users is set", {"super.users": "User:root"}
    (said,) = told_of(first_words(caplog, settings), beginning)
    assert OPEN in said
    assert told_of(first_words(caplog, {**settings, "authorizer.class.name": "ottla"}), beginning) == []
    assert told_of(first_words(caplog, {}), beginning) == []


def test_rules_of_access_without_an_authorizer_are_told_to_mean_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, settings = str(tmp_path), {"authorizer.class.name": "ottla", "super.users": "User:ANONYMOUS"}
    orders = ResourcePattern(ResourceType.TOPIC, "orders")
    rule = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, orders)
    with TestBroker(settings, folder=folder) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_acls([rule])
    (said,) = told_of(first_words(caplog, {}, folder), "there are rules of access")
    assert OPEN in said
    assert told_of(first_words(caplog, settings, folder), "there are rules of access") == []


def test_an_authorizer_by_which_nobody_could_make_the_first_rule_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    beginning, settings = "there are neither rules of access nor super users", {"authorizer.class.name": "ottla"}
    (said,) = told_of(first_words(caplog, settings), beginning)
    assert said.endswith("set super.users = User:NAME")
    for others in ({"super.users": "User:root"}, {"allow.everyone.if.no.acl.found": "true"}):
        assert told_of(first_words(caplog, {**settings, **others}), beginning) == []


@pytest.mark.parametrize(
    ("mechanisms", "has", "advised"),
    [
        ("SCRAM-SHA-256,SCRAM-SHA-512", None, "SCRAM-SHA-256"),
        ("PLAIN", None, "SCRAM-SHA-256"),
        ("PLAIN,SCRAM-SHA-512", None, "SCRAM-SHA-512"),
        ("SCRAM-SHA-512", ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512"),
    ],
)
def test_a_listener_where_nobody_can_log_in_is_told_of_with_what_to_do(
    mechanisms: str, has: ScramMechanism | None, advised: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings, folder = {"sasl.enabled.mechanisms": mechanisms}, str(tmp_path)
    if has is not None:
        with TestBroker(folder=folder) as broker:
            add_users(broker, ["alice"], [has])
    (said,) = told_of(first_words(caplog, settings, folder), NOBODY)
    assert f"no user has a password for {' or '.join(mechanisms.split(','))};" in said
    assert f"`ottla user add NAME --mechanism {advised} --data {folder}`" in said
    with TestBroker(folder=folder) as broker:
        add_users(broker, ["alice"], [ScramMechanism[advised.replace("-", "_")]])
    assert told_of(first_words(caplog, settings, folder), NOBODY) == []


def test_users_in_the_settings_and_those_with_tokens_are_users_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "keys.json").write_text('{"keys": []}')
    given = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.sasl_plaintext.plain.sasl.jaas.config": CAROL}
    signed = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "keys.json").as_uri(),
    }
    for settings in (given, signed):
        assert told_of(first_words(caplog, settings), NOBODY) == []
    # Those of the settings have passwords for PLAIN alone.
    assert told_of(first_words(caplog, {**given, "sasl.enabled.mechanisms": "SCRAM-SHA-256"}), NOBODY)


def test_a_key_set_that_is_not_there_is_told_of_before_the_first_token_comes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = (tmp_path / "keys.json").as_uri()
    settings = {"listeners": BOTH, "sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.jwks.endpoint.url": url}
    with TestBroker(settings):
        until(lambda: told_of(list(caplog.messages), f"cannot get the keys for OAUTHBEARER from {url}: "))
