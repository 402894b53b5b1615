"""Kafka's command-line tools, driven from Python."""

from pathlib import Path
from typing import NamedTuple

from tests.java import JavaProgram, jars

SOURCES = [Path(__file__).parent / "java" / name for name in ("Tools.java", "OpenLog.java")]
VERSION = "4.3.1"
"""The newest release whose tools are published."""

CLASSES = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
}
"""What the scripts of those names start."""
OPEN_LOG = "OpenLog"
"""Ours: has Kafka's own log open the folder of a partition, and prints what it makes of it."""


class Ran(NamedTuple):
    """How a tool ended, and what it printed."""

    status: int
    output: str
    errors: str


class JavaTools:
    """The other end of `Tools.java`."""

    def __init__(self) -> None:
        self._program = JavaProgram(jars(VERSION, "tools"), *SOURCES)

    def close(self) -> None:
        """End the process."""
        self._program.close()

    def try_run(self, script: str, *arguments: str, stdin: str = "") -> Ran:
        """Run a tool, which may fail."""
        question = {"tool": CLASSES.get(script, script), "arguments": list(arguments), "input": stdin}
        return Ran(**self._program.ask(question))

    def run(self, script: str, *arguments: str, stdin: str = "") -> str:
        """What a tool prints that must end well and complain of nothing."""
        ran = self.try_run(script, *arguments, stdin=stdin)
        assert (ran.status, ran.errors) == (0, ""), ran
        return ran.output
