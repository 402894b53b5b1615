"""A pytest plugin for kafka-python's suite: its tests of SASL and TLS run on a broker that it did not start itself.

They start a Kafka for each mechanism. Here one broker has a listener for all of them, and another for TLS.
"""

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

EXTERNAL = "Testing on external Kafka Broker"
"""Why their tests of SASL skip themselves where `KAFKA_URI` is set."""


def _fixture(listener: str, **options: Any) -> Any:
    """Their fixture for a broker that runs already, at one of its other listeners."""
    from test.integration.fixtures import KafkaFixture  # type: ignore[import-not-found]

    class Running(KafkaFixture):  # type: ignore[misc]
        def get_topic_names(self) -> list[str]:
            # Theirs runs kafka-topics.sh.
            from kafka import KafkaAdminClient

            with KafkaAdminClient(**self._enrich_client_params({})) as admin:
                return [topic["name"] if isinstance(topic, dict) else topic for topic in admin.list_topics()]

        def dump_logs(self) -> None:
            pass

    found = Running("127.0.0.1", int(os.environ[f"OTTLA_SUITE_{listener}_PORT"]), 0, external=True, **options)
    found.ssl_dir = os.environ["OTTLA_SUITE_TLS"]
    found.child = SimpleNamespace(dump_logs=lambda: None, stop=lambda: None)
    return found


STAND_INS: dict[str, Callable[[pytest.FixtureRequest], object]] = {
    "sasl_kafka": lambda request: _fixture(
        "SASL_PLAINTEXT", transport="SASL_PLAINTEXT", sasl_mechanism=request.param, partitions=4
    ),
    "ssl_kafka": lambda request: _fixture("SSL", transport="SSL"),
}


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> object:
    stand_in = STAND_INS.get(fixturedef.argname)
    if stand_in is None:
        return None
    value = stand_in(request)
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)  # type: ignore[arg-type]
    return value


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for module in {item.getparent(pytest.Module) for item in items}:
        if module is not None and module.name.endswith("test_sasl_integration.py"):
            module.own_markers[:] = [mark for mark in module.own_markers if mark.kwargs.get("reason") != EXTERNAL]
