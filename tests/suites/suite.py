"""Whose suites there are: what the broker must be set to, and how each suite is told where it is."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Suite:
    """Somebody else's tests of their client, to be run against a broker of ours."""

    client: str
    folder: str
    """Where the tests lie in the checkout."""
    broker: Mapping[str, str]
    """Settings of the broker, by Kafka's names. Here and in the environment, `{address}` stands for where it listens.
    In the environment `{ports[SASL_SSL]}` stands for the port of another listener, `{tls}` for a folder with
    certificates, and `{scratch}` for an empty one."""
    plugins: Sequence[str]
    arguments: Sequence[str]
    environment: Mapping[str, str]
    users: Mapping[str, str] = field(default_factory=dict)
    """Who can log in with SCRAM and PLAIN, with their passwords."""
    repository: str = ""
    """What the checkout is of, if there is more than one suite in it."""
    lists: Path = HERE

    @property
    def variable(self) -> str:
        """The environment variable that names a checkout."""
        return f"OTTLA_{(self.repository or self.client).upper().replace('-', '_')}_CHECKOUT"

    @property
    def allowed(self) -> Path:
        """The tests that must pass."""
        return self.lists / "allowed" / f"{self.client}.txt"

    @property
    def left_out(self) -> Path:
        """The tests that are not run, each with the reason that `findings.md` explains."""
        return self.lists / "left_out" / f"{self.client}.txt"

    def checkout(self) -> Path | None:
        """The checkout that the environment names, if it does."""
        path = os.environ.get(self.variable)
        return Path(path) if path else None


WHERE: Mapping[str, str] = {
    "OTTLA_SUITE_ADDRESS": "{address}",
    "OTTLA_SUITE_TLS": "{tls}",
    "OTTLA_SUITE_SSL_PORT": "{ports[SSL]}",
    "OTTLA_SUITE_SASL_PLAINTEXT_PORT": "{ports[SASL_PLAINTEXT]}",
    "OTTLA_SUITE_SASL_SSL_PORT": "{ports[SASL_SSL]}",
}
"""How our plugins learn where it is."""


RULES: Mapping[str, str] = {
    "authorizer.class.name": "ottla",
    "allow.everyone.if.no.acl.found": "true",
    # Who sets the rules here comes in plain text.
    "super.users": "User:ANONYMOUS",
}
"""Settings of a broker that has rules of access, and forbids nothing without one."""


def _confluent(protocol: str) -> Suite:
    """The suite of confluent-kafka, whose tests are written once for both protocols of groups."""
    # Schemas and share groups are no business of ours yet, and one file is a program of its own.
    ignored = ("schema_registry", *(f"share_consumer{kind}" for kind in ("", "_oauth", "_sasl")), "integration_test.py")
    return Suite(
        client=f"confluent-kafka-{protocol}",
        folder="tests/integration",
        broker={**RULES, "num.partitions": "4"},
        plugins=("ottla_suite_confluent", "ottla_suite"),
        arguments=tuple(f"--ignore=tests/integration/{name}" for name in ignored),
        environment={"BROKERS": "{address}", "TEST_CONSUMER_GROUP_PROTOCOL": protocol},
        repository="confluent-kafka",
    )


SUITES: Mapping[str, Suite] = {
    suite.client: suite
    for suite in (
        Suite(
            client="aiokafka",
            folder="tests",
            # Their own broker has number 0, and their tests know it.
            broker={
                "num.partitions": "2",
                "node.id": "0",
                "ssl.client.auth": "required",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                    'PlainLoginModule required user_admin="admin" user_test="test" user_test2="test2";'
                ),
                **RULES,
            },
            plugins=("ottla_suite_aiokafka", "ottla_suite"),
            # Their tests ask the image's tag which features to expect; 2.8.1 is the newest that they name themselves.
            # Warnings are errors there, and our pytest is newer than theirs: it warns of more.
            arguments=(
                *("--docker-image", "ottla:2.13_2.8.1"),
                *("-o", "asyncio_default_fixture_loop_scope=function"),
                *("-W", "ignore::pytest.PytestRemovedIn10Warning"),
            ),
            # A checkout has no compiled modules.
            environment={"AIOKAFKA_NO_EXTENSIONS": "1", **WHERE},
        ),
        Suite(
            client="kafka-python",
            folder="test/integration",
            # Their own broker has number 0 and says what it advertises, and their tests know both.
            broker={**RULES, "num.partitions": "4", "node.id": "0", "advertised.listeners": "PLAINTEXT://{address}"},
            users={"alice": "alice-secret"},
            plugins=("ottla_suite_kafka_python", "ottla_suite"),
            arguments=(),
            # Their fixtures insist on a folder of Kafka's programs, and start none of them for a broker that runs.
            environment={
                "KAFKA_URI": "kafka://{address}",
                "KAFKA_VERSION": "4.3.0",
                "KAFKA_ROOT": "{scratch}",
                **WHERE,
            },
        ),
        _confluent("classic"),
        _confluent("consumer"),
    )
}
