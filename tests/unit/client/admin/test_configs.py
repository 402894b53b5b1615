"""Configs through the admin client: single changes, also with brokers that take all configs or none."""

from collections.abc import Iterator

import pytest

from ottla.client.admin import (
    Admin,
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigType,
)
from ottla.client.admin.configs import _merged
from ottla.client.errors import (
    BrokerNotAvailableError,
    InvalidConfigError,
    SeveralFailedError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from ottla.testing import TestBroker

from .tools import ABSENT, ask, make_older

INCREMENTAL_ALTER_CONFIGS = 44


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as running:
        yield running


@pytest.fixture(params=["single", "all"])
def age(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Brokers that change single configs, and those that take all configs of a resource or none."""
    if request.param == "all":
        make_older(monkeypatch, {INCREMENTAL_ALTER_CONFIGS: ABSENT})
    return str(request.param)


async def set_on(admin: Admin, topic: str) -> dict[str, str | None]:
    resource = ConfigResource("topic", topic)
    entries = (await admin.describe_configs([resource]))[resource].values()
    return {one.name: one.value for one in entries if one.source is ConfigSource.DYNAMIC_TOPIC_CONFIG}


def test_configs_that_are_not_named_stay_as_they_are(broker: TestBroker, age: str) -> None:
    topic = f"stay-{age}"

    async def story(admin: Admin) -> None:
        async def alter(**changes: object) -> None:
            configs = {name.replace("_", "."): change for name, change in changes.items()}
            await admin.alter_configs([ConfigResource("topic", topic, configs)])

        await admin.create_topics([topic])
        await alter(retention_ms="5000", segment_ms="60000")
        await alter(cleanup_policy=("append", "compact"))
        expected: dict[str, str | None] = {"retention.ms": "5000", "segment.ms": "60000"}
        assert await set_on(admin, topic) == {**expected, "cleanup.policy": "delete,compact"}
        await alter(segment_ms=None, cleanup_policy=(AlterConfigOp.SUBTRACT, "delete"))
        assert await set_on(admin, topic) == {"retention.ms": "5000", "cleanup.policy": "compact"}
        await alter(retention_ms=(AlterConfigOp.DELETE, None), cleanup_policy=("set", "delete"))
        assert await set_on(admin, topic) == {"cleanup.policy": "delete"}

    ask(broker.bootstrap_servers, story)


def test_a_trial_changes_nothing_and_says_what_is_wrong(broker: TestBroker, age: str) -> None:
    topic = f"trial-{age}"

    async def story(admin: Admin) -> None:
        await admin.create_topics([topic])
        await admin.alter_configs([ConfigResource("topic", topic, {"retention.ms": "1"})], validate_only=True)
        assert await set_on(admin, topic) == {}
        with pytest.raises(InvalidConfigError, match="retention"):
            await admin.alter_configs([ConfigResource("topic", topic, {"retention.ms": "soon"})])

    ask(broker.bootstrap_servers, story)


def test_configs_of_a_broker_are_asked_for_at_that_broker(broker: TestBroker) -> None:
    async def story(admin: Admin) -> None:
        one = ConfigResource("broker", 1, ["log.retention.hours"])
        entries = (await admin.describe_configs([one], include_synonyms=True, include_documentation=True))[one]
        assert list(entries) == ["log.retention.hours"]
        entry = entries["log.retention.hours"]
        assert (entry.value, entry.config_type, entry.is_sensitive) == ("168", ConfigType.INT, False)
        assert entry.documentation
        assert entry.synonyms[-1].source is ConfigSource.DEFAULT_CONFIG
        with pytest.raises(BrokerNotAvailableError, match="there is no broker 7"):
            await admin.describe_configs([ConfigResource("broker", 7)])
        await admin.alter_configs([ConfigResource("broker", "1", {"log.retention.ms": "7000"})])
        changed = await admin.describe_configs([ConfigResource("broker", 1, ["log.retention.ms"])])
        assert changed[one]["log.retention.ms"].source is ConfigSource.DYNAMIC_BROKER_CONFIG
        await admin.alter_configs([ConfigResource("broker", "1", {"log.retention.ms": None})])

    ask(broker.bootstrap_servers, story)


def test_resources_fail_each_for_itself(broker: TestBroker, age: str) -> None:
    topic = f"itself-{age}"

    async def story(admin: Admin) -> None:
        await admin.create_topics([topic])
        missing, bad = ConfigResource("topic", "nope"), ConfigResource("topic", topic, {"no.such": "1"})
        with pytest.raises(UnknownTopicOrPartitionError, match="'nope'"):
            await admin.describe_configs([missing, ConfigResource("topic", topic)])
        if age == "single":
            good = ConfigResource("broker", "", {"log.retention.ms": "8000"})
            changes = [ConfigResource("topic", "nope", {"retention.ms": "1"}), bad, good]
            with pytest.raises(SeveralFailedError) as caught:
                await admin.alter_configs(changes)
            assert {key: type(error) for key, error in caught.value.failures.items()} == {
                missing: UnknownTopicOrPartitionError,
                bad: InvalidConfigError,
            }
            await admin.alter_configs([ConfigResource("broker", "", {"log.retention.ms": None})])

    ask(broker.bootstrap_servers, story)


def test_a_sensitive_config_is_not_lost_where_all_are_written_at_once() -> None:
    def entry(name: str, value: str | None, *, sensitive: bool = False) -> ConfigEntry:
        return ConfigEntry(
            name, value, ConfigSource.DYNAMIC_BROKER_CONFIG, False, sensitive, ConfigType.STRING, (), None
        )

    before = {"a": entry("a", "1"), "secret": entry("secret", None, sensitive=True)}
    with pytest.raises(UnsupportedVersionError, match="does not tell secret: set that again as well"):
        _merged(ConfigResource("broker", 1, {"a": "2"}), before)
    changes = {"a": "2", "secret": "again"}
    assert _merged(ConfigResource("broker", 1, changes), before) == changes


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("tpoic", "orders", "resource_type is 'tpoic'; it is one of topic, broker"),
        ("broker", "orders", "'orders' is no broker id"),
    ],
)
def test_a_resource_that_makes_no_sense_is_refused(kind: str, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConfigResource(kind, name)


def test_changes_that_make_no_sense_are_refused_before_anything_is_sent(broker: TestBroker) -> None:
    async def story(admin: Admin) -> None:
        with pytest.raises(TypeError, match="give a dict of names and new values"):
            await admin.alter_configs([ConfigResource("topic", "orders", ["retention.ms"])])
        with pytest.raises(ValueError, match=r"operation 'add' on cleanup\.policy is none of set, delete"):
            await admin.alter_configs([ConfigResource("topic", "orders", {"cleanup.policy": ("add", "compact")})])

    ask(broker.bootstrap_servers, story)


def test_resources_are_told_apart_by_type_and_name() -> None:
    topic = ConfigResource(ConfigResourceType.TOPIC, "orders")
    assert {topic: 1}[ConfigResource("TOPIC", "orders", {"a": "b"})] == 1
    assert topic != ConfigResource("group", "orders")
    assert str(topic) == "topic 'orders'"
