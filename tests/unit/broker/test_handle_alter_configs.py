"""AlterConfigs and IncrementalAlterConfigs: what they have in common, and each by itself."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ottla.config.alter import AlterOperation
from ottla.wire.api import alter_configs as legacy
from ottla.wire.api import incremental_alter_configs as incremental
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = AlterOperation

Alter = Callable[..., list[Any]]
Change = tuple[str, int, str | None]


def replace(
    small: SmallBroker,
    *resources: tuple[int, str, dict[str, str | None]],
    version: int = 2,
    validate_only: bool = False,
) -> list[Any]:
    body = legacy.AlterConfigsRequest(
        resources=[
            legacy.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[legacy.AlterableConfig(name=key, value=value) for key, value in configs.items()],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    results: list[Any] = small.ask(body, version).responses
    return results


def change(
    small: SmallBroker,
    *resources: tuple[int, str, list[Change]],
    version: int = 1,
    validate_only: bool = False,
) -> list[Any]:
    body = incremental.IncrementalAlterConfigsRequest(
        resources=[
            incremental.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in configs
                ],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    results: list[Any] = small.ask(body, version).responses
    return results


def set_with_change(
    small: SmallBroker, *resources: tuple[int, str, dict[str, str | None]], validate_only: bool = False
) -> list[Any]:
    """The same call as `replace`, made with the incremental API."""
    changes: list[tuple[int, str, list[Change]]] = [
        (kind, name, [(key, SET, value) for key, value in configs.items()]) for kind, name, configs in resources
    ]
    return change(small, *changes, validate_only=validate_only)


both = pytest.mark.parametrize("alter", [replace, set_with_change])


def configs_of(small: SmallBroker, topic: str = "orders") -> Mapping[str, str]:
    return dict(small.broker.image.topics[topic].configs)


@pytest.mark.parametrize("version", range(3))
def test_every_version_of_the_older_call_replaces_all(small: SmallBroker, version: int) -> None:
    small.create("orders", retention_ms="1000", segment_bytes="5000")
    (result,) = replace(small, (TOPIC, "orders", {"retention.ms": " 2000 "}), version=version)
    assert (result.error_code, result.error_message) == (0, None)
    assert (result.resource_type, result.resource_name) == (TOPIC, "orders")
    assert configs_of(small) == {"retention.ms": "2000"}


@pytest.mark.parametrize("version", range(2))
def test_every_version_of_the_newer_call_changes_single_configs(small: SmallBroker, version: int) -> None:
    small.create("orders", retention_ms="1000", segment_bytes="5000", flush_ms="7")
    changes: list[Change] = [
        ("retention.ms", SET, "2000"),
        ("segment.bytes", DELETE, None),
        ("cleanup.policy", APPEND, "compact"),
    ]
    (result,) = change(small, (TOPIC, "orders", changes), version=version)
    assert (result.error_code, result.error_message) == (0, None)
    assert configs_of(small) == {"retention.ms": "2000", "flush.ms": "7", "cleanup.policy": "delete,compact"}


@pytest.mark.parametrize("settings", [{"log.cleanup.policy": "compact"}])
def test_a_list_is_appended_to_what_the_broker_says(small: SmallBroker) -> None:
    small.create("orders")
    change(small, (TOPIC, "orders", [("cleanup.policy", APPEND, "delete")]))
    assert configs_of(small) == {"cleanup.policy": "compact,delete"}
    change(small, (TOPIC, "orders", [("cleanup.policy", SUBTRACT, "compact")]))
    assert configs_of(small) == {"cleanup.policy": "delete"}


@both
def test_a_change_takes_effect_at_once(small: SmallBroker, alter: Alter) -> None:
    small.create("orders")
    partition = small.broker.leader("orders", 0)
    alter(small, (TOPIC, "orders", {"max.message.bytes": "100"}))
    assert partition.config.max_message_bytes == partition.log.config.max_message_bytes == 100


@both
@pytest.mark.parametrize(
    ("kind", "name", "configs"),
    [(TOPIC, "orders", {"retention.ms": "5"}), (BROKER, "1", {"message.max.bytes": "5"})],
)
def test_validate_only_changes_nothing(
    small: SmallBroker, alter: Alter, kind: int, name: str, configs: dict[str, str | None]
) -> None:
    small.create("orders", retention_ms="1000")
    before = small.broker.config
    (result,) = alter(small, (kind, name, configs), validate_only=True)
    assert result.error_code == 0
    assert configs_of(small) == {"retention.ms": "1000"}
    assert small.broker.config is before


@both
@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    ("kind", "name", "configs", "code"),
    [
        (TOPIC, "nothing", {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "orders", {"retention.ms": "soon"}, ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", {"no.such.config": "1"}, ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", {"retention.ms": None}, ErrorCode.INVALID_REQUEST),
        (
            TOPIC,
            "orders",
            {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"},
            ErrorCode.INVALID_CONFIG,
        ),
        (BROKER, "2", {}, ErrorCode.INVALID_REQUEST),
        (BROKER, "1", {"message.max.bytes": "large"}, ErrorCode.INVALID_CONFIG),
        (BROKER, "1", {"num.partitions": "5"}, ErrorCode.INVALID_CONFIG),
        (BROKER, "", {"retention.ms": "5"}, ErrorCode.INVALID_CONFIG),
        (BROKER_LOGGER, "1", {"root": "DEBUG"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_changed_says_why_and_leaves_the_others_alone(
    small: SmallBroker,
    alter: Alter,
    validate_only: bool,
    kind: int,
    name: str,
    configs: dict[str, str | None],
    code: ErrorCode,
) -> None:
    small.create("orders", retention_ms="1000")
    small.create("other")
    refused, changed = alter(
        small, (kind, name, configs), (TOPIC, "other", {"flush.ms": "7"}), validate_only=validate_only
    )
    assert (refused.error_code, refused.resource_type, refused.resource_name) == (code, kind, name)
    assert refused.error_message
    assert changed.error_code == 0
    assert configs_of(small) == {"retention.ms": "1000"}
    assert configs_of(small, "other") == ({} if validate_only else {"flush.ms": "7"})


@both
def test_a_resource_that_is_there_twice_is_refused_each_time(small: SmallBroker, alter: Alter) -> None:
    small.create("orders")
    results = alter(small, (TOPIC, "orders", {"flush.ms": "1"}), (TOPIC, "orders", {"flush.ms": "2"}))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert configs_of(small) == {}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([("retention.ms", APPEND, "5")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", 9, "5")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "5"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([("flush.ms", SET, "5"), ("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_resource_is_changed_as_a_whole_or_not_at_all(
    small: SmallBroker, changes: list[Change], code: ErrorCode
) -> None:
    small.create("orders")
    (result,) = change(small, (TOPIC, "orders", changes))
    assert result.error_code == code
    assert configs_of(small) == {}


@both
def test_a_broker_config_reaches_the_topics_that_do_not_set_it(small: SmallBroker, alter: Alter) -> None:
    small.create("orders")
    small.create("other", max_message_bytes="700")
    (result,) = alter(small, (BROKER, "", {"message.max.bytes": "5000"}))
    assert result.error_code == 0, result.error_message
    assert small.broker.config.message_max_bytes == 5000
    assert small.broker.leader("orders", 0).config.max_message_bytes == 5000
    assert small.broker.leader("other", 0).config.max_message_bytes == 700


@both
def test_what_is_set_for_a_broker_stands_above_what_is_set_for_all(small: SmallBroker, alter: Alter) -> None:
    results = alter(small, (BROKER, "1", {"message.max.bytes": "6000"}), (BROKER, "", {"message.max.bytes": "5000"}))
    assert [result.error_code for result in results] == [0, 0]
    assert small.broker.config.message_max_bytes == 6000
    change(small, (BROKER, "1", [("message.max.bytes", DELETE, None)]))
    assert small.broker.config.message_max_bytes == 5000


def test_a_brokers_list_is_appended_to_what_stands_below(small: SmallBroker) -> None:
    change(small, (BROKER, "", [("log.cleanup.policy", APPEND, "compact")]))
    assert small.broker.config.dynamic_default == {"log.cleanup.policy": "delete,compact"}
    change(small, (BROKER, "1", [("log.cleanup.policy", SUBTRACT, "delete")]))
    assert small.broker.config.dynamic == {"log.cleanup.policy": "compact"}


@both
def test_a_broker_config_that_a_topics_own_do_not_go_with_is_refused(small: SmallBroker, alter: Alter) -> None:
    small.create("orders", min_compaction_lag_ms="5000")
    (result,) = alter(small, (BROKER, "", {"log.cleaner.max.compaction.lag.ms": "4000"}))
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert small.broker.config.dynamic_default == {}
