"""Kafka's command-line tools on groups of both protocols."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from ottla.testing import TestBroker
from tests.java import skip_without_maven
from tests.waiting import until

from .group_story import PARTITIONS, SETTINGS, TOPIC, read, write
from .java_client import NEWEST, JavaClient
from .java_members import JavaMember
from .java_tools import JavaTools

pytestmark = [pytest.mark.maven, skip_without_maven("Kafka's command-line tools looked at no group")]

Run = Callable[..., str]
Clients = Callable[[str], JavaClient]
PROTOCOLS = ["classic", "consumer"]
EACH = 10
"""Records in each partition."""


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker(SETTINGS) as started:
        write(started, "first", PARTITIONS * EACH)
        yield started


@pytest.fixture
def here(broker: TestBroker) -> tuple[str, str]:
    """The option that all tools have."""
    return "--bootstrap-server", broker.bootstrap_servers


@pytest.fixture
def groups(tools: JavaTools, here: tuple[str, str]) -> Run:
    return partial(tools.run, "kafka-consumer-groups", *here)


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def member(broker: TestBroker, clients: Clients, topic: str, protocol: str) -> JavaMember:
    """The only member of the test's group, which has read everything."""
    return join(broker, clients, topic, protocol)


def join(broker: TestBroker, clients: Clients, group: str, protocol: str) -> JavaMember:
    """Have a member join a group, read everything and commit it."""
    joined = clients(NEWEST).join(
        broker.bootstrap_servers, group, topic=TOPIC, group_protocol=protocol, client_id="reader"
    )
    read(joined, {b"first-%d" % number for number in range(PARTITIONS * EACH)})
    joined.commit()
    return joined


def table(printed: str) -> list[dict[str, str]]:
    """The rows of a table by their headings."""
    heading, *rows = [line.split() for line in printed.splitlines() if line]
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_groups_are_listed(
    tools: JavaTools, here: tuple[str, str], groups: Run, member: JavaMember, topic: str, protocol: str
) -> None:
    kind = protocol.capitalize()
    assert topic in groups("--list").splitlines()
    assert {"GROUP": topic, "TYPE": kind, "STATE": "Stable"} in table(groups("--list", "--state", "--type"))
    assert topic in groups("--list", "--state", "stable", "--type", protocol)
    assert topic not in groups("--list", "--state", "empty")
    listed = tools.run("kafka-groups", *here, "--list", "--group-type", protocol)
    assert {"GROUP": topic, "TYPE": kind, "PROTOCOL": "consumer"} in table(listed)
    member.close()
    assert topic in groups("--list", "--state", "empty", "--type", protocol)


def test_a_group_is_described(groups: Run, broker: TestBroker, member: JavaMember, topic: str, protocol: str) -> None:
    describe = partial(groups, "--describe", "--group", topic)
    rows = table(describe("--offsets", "--verbose"))
    assert [(row["PARTITION"], row["CURRENT-OFFSET"], row["LAG"]) for row in rows] == [
        (str(number), str(EACH), "0") for number in range(PARTITIONS)
    ]
    assert {(row["TOPIC"], row["HOST"], row["CLIENT-ID"]) for row in rows} == {(TOPIC, "/127.0.0.1", "reader")}
    (row,) = table(describe("--members", "--verbose"))
    everything = f"{TOPIC}:{','.join(map(str, range(PARTITIONS)))}"
    assert (row["#PARTITIONS"], row["CURRENT-ASSIGNMENT"]) == (str(PARTITIONS), everything)
    assert row["TARGET-ASSIGNMENT"] == (everything if protocol == "consumer" else "-")
    (row,) = table(describe("--state", "--verbose"))
    assert (row["STATE"], row["#MEMBERS"]) == ("Stable", "1")
    assert row["ASSIGNMENT-STRATEGY"] == ("uniform" if protocol == "consumer" else "range")
    assert row["GROUP-EPOCH"] == row["TARGET-ASSIGNMENT-EPOCH"] == ("1" if protocol == "consumer" else "-")
    member.close()


def test_offsets_are_reset_and_deleted_and_the_group_too(
    groups: Run, tools: JavaTools, here: tuple[str, str], member: JavaMember, topic: str, tmp_path: Path
) -> None:
    reset = partial(groups, "--reset-offsets", "--group", topic)
    reset_all = partial(reset, "--topic", TOPIC)

    def committed() -> list[int]:
        described = tools.try_run("kafka-consumer-groups", *here, "--describe", "--group", topic)
        assert described.errors.strip() == f"Consumer group '{topic}' has no active members."
        return [int(row["CURRENT-OFFSET"]) for row in table(described.output)]

    assert "Assignments can only be reset if the group" in reset_all("--to-earliest", "--execute")
    assert "GroupNotEmptyException" in groups("--delete", "--group", topic)
    member.close()
    assert committed() == [EACH] * PARTITIONS
    assert {row["NEW-OFFSET"] for row in table(reset_all("--to-earliest", "--dry-run"))} == {"0"}
    assert committed() == [EACH] * PARTITIONS
    for how, offset in {
        ("--to-earliest",): 0,
        ("--shift-by", "3"): 3,
        ("--to-datetime", "2020-01-01T00:00:00.000"): 0,
        ("--to-latest",): EACH,
    }.items():
        assert {row["NEW-OFFSET"] for row in table(reset_all(*how, "--execute"))} == {str(offset)}
        assert committed() == [offset] * PARTITIONS
    plan = tmp_path / "plan.csv"
    plan.write_text(reset("--topic", f"{TOPIC}:1,2", "--to-offset", "4", "--dry-run", "--export"))
    reset("--from-file", str(plan), "--execute")
    assert committed() == [EACH, 4, 4, EACH]
    assert "Successful" in groups("--delete-offsets", "--group", topic, "--topic", f"{TOPIC}:1")
    assert committed() == [EACH, 4, EACH]
    assert "was successful" in groups("--delete", "--group", topic)
    assert topic not in groups("--list").splitlines()
    assert "GroupIdNotFoundException" in groups("--delete", "--group", topic)


def test_the_console_consumer_goes_on_where_its_group_was(
    tools: JavaTools, here: tuple[str, str], topic: str, protocol: str
) -> None:
    options = (*here, "--topic", TOPIC, "--group", topic, "--command-property", f"group.protocol={protocol}")
    read_some = partial(tools.try_run, "kafka-console-consumer", *options, "--from-beginning")
    found = [
        line
        for count in (15, PARTITIONS * EACH - 15)
        for line in read_some("--max-messages", str(count)).output.splitlines()
    ]
    assert sorted(found) == sorted(f"first-{number}" for number in range(PARTITIONS * EACH))
    assert read_some("--timeout-ms", "500").output == ""


def test_the_verifiable_consumer_verifies(tools: JavaTools, here: tuple[str, str], topic: str, protocol: str) -> None:
    count = PARTITIONS * EACH
    options = ("--topic", TOPIC, "--group-id", topic, "--reset-policy", "earliest", "--max-messages", str(count))
    printed = tools.run("kafka-verifiable-consumer", *here, *options, "--group-protocol", protocol)
    events = [json.loads(line) for line in printed.splitlines()]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == count
    assert all(event["success"] for event in events if event["name"] == "offsets_committed")


def test_the_dump_tool_decodes_all_that_coordinators_write_down(
    tools: JavaTools, clients: Clients, tmp_path: Path
) -> None:
    with TestBroker({**SETTINGS, "offsets.topic.num.partitions": "1"}, folder=str(tmp_path)) as broker:
        write(broker, "first", PARTITIONS * EACH)
        for protocol in PROTOCOLS:
            join(broker, clients, protocol, protocol).close()
        enter = partial(clients(NEWEST).join, broker.bootstrap_servers)
        by_pattern = enter("by pattern", re2="or.*", group_protocol="consumer")
        until(lambda: len(by_pattern.partitions()) == PARTITIONS)
        by_pattern.close()
        # A group that is upgraded, and downgraded again.
        old = enter("rolling", topic=TOPIC, heartbeat_interval_ms=100)
        until(lambda: len(old.partitions()) == PARTITIONS)
        new = enter("rolling", topic=TOPIC, group_protocol="consumer")
        until(lambda: len(old.partitions()) == len(new.partitions()) == PARTITIONS // 2)
        new.close()
        until(lambda: len(old.partitions()) == PARTITIONS)
        old.close()
    (segment,) = (tmp_path / "__consumer_offsets-0").glob("*.log")
    printed = tools.run("kafka-dump-log", "--files", str(segment), "--offsets-decoder")
    records = [line for line in printed.splitlines() if line.startswith("| offset: ")]
    last_offset = re.findall(r"lastOffset: (\d+)", printed)[-1]
    assert len(records) == int(last_offset) + 1
    found = []
    for record in records:
        decoded = re.search(r" key: ({.*}) payload: (<DELETE>|{.*})$", record)
        assert decoded is not None, record
        found.append((int(json.loads(decoded[1])["type"]), decoded[2] != "<DELETE>"))
    # 4 was for what 3 holds since Kafka 4.1.
    assert {kind for kind, written in found if written} == {1, 2, 3, 5, 6, 7, 8, 16}
    assert {kind for kind, written in found if not written} == {2, 3, 5, 6, 7, 8, 16}
