"""`ottla group`: what it shows, changes, and refuses, with a broker that is one."""

import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from ottla.cli import group_show, group_watch
from ottla.cli.commands import register
from ottla.client.admin import Admin, GroupDescription, NewTopic
from ottla.client.cluster import Cluster
from ottla.client.options import ClientOptions
from ottla.client.producer import Producer
from ottla.client.types import TopicPartition
from ottla.net import Connection
from ottla.testing import TestBroker
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.embedded import encode_versioned
from ottla.wire.embedded.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from ottla.wire.embedded.consumer_protocol import TopicPartition as AssignedPartitions
from ottla.wire.errors import ErrorCode, KafkaError

from .conftest import Ottla
from .interrupts import LISTEN_TO_INTERRUPTS

MEMBER_ID_REQUIRED = 79
RECORDS = 10
TIMES_MS = [1_700_000_000_000 + 60_000 * number for number in range(RECORDS)]


@pytest.fixture(scope="module")
def server() -> Iterator[TestBroker]:
    with TestBroker() as running:
        yield running


@pytest.fixture
def topic(server: TestBroker, request: pytest.FixtureRequest) -> str:
    """A topic of two partitions with ten records each, a minute apart."""
    name = f"topic-{request.node.name[:40].split('[')[0]}"

    administer(server, lambda admin: admin.create_topics([NewTopic(name, 2)]))
    on(server, lambda cluster: produce(cluster, name))
    return name


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    return f"group-{request.node.name[:40].split('[')[0]}"


@pytest.fixture
def ottla(server: TestBroker, monkeypatch: pytest.MonkeyPatch) -> Ottla:
    monkeypatch.setenv("OTTLA_BOOTSTRAP", server.bootstrap_servers)
    app = typer.Typer()
    register(app)
    return lambda *words, stdin=b"": CliRunner().invoke(app, words, input=stdin)


def on(server: TestBroker, story: Callable[[Cluster], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        async with Cluster(ClientOptions(bootstrap_servers=server.bootstrap_servers)) as cluster:
            return await story(cluster)

    return asyncio.run(run())


def administer(server: TestBroker, story: Callable[[Admin], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        async with Admin(server.bootstrap_servers) as admin:
            return await story(admin)

    return asyncio.run(run())


async def produce(cluster: Cluster, topic: str) -> None:
    async with Producer(bootstrap_servers=cluster.options.bootstrap_servers) as producer:
        for partition in range(2):
            for timestamp_ms in TIMES_MS:
                await producer.send(topic, b"x", partition=partition, timestamp_ms=timestamp_ms)


def commit(server: TestBroker, group: str, topic: str, *offsets: int) -> None:
    """Have a group that nobody is in stand at these offsets."""
    places = {TopicPartition(topic, index): offset for index, offset in enumerate(offsets)}
    administer(server, lambda admin: admin.alter_consumer_group_offsets(group, places))


def committed(server: TestBroker, group: str) -> dict[int, int]:
    found = administer(server, lambda admin: admin.list_consumer_group_offsets(group))
    return {place.partition: one.offset for place, one in found.items()}


def join(server: TestBroker, group: str, topic: str, protocol_type: str = "consumer") -> str:
    """Become the only member of a classic group, reading both partitions; its session lasts as long as the test."""

    # The coordinator has loaded when it answers.
    committed(server, group)

    async def story(cluster: Cluster) -> str:
        connection = await cluster.any_broker()
        subscription = encode_versioned(ConsumerProtocolSubscription(topics=[topic]), 0)
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )
        joined = await connection.request(request)
        if joined.error_code == MEMBER_ID_REQUIRED:
            request.member_id = joined.member_id
            joined = await connection.request(request)
        assert joined.error_code == 0
        assigned = ConsumerProtocolAssignment(assigned_partitions=[AssignedPartitions(topic=topic, partitions=[0, 1])])
        synced = await connection.request(
            SyncGroupRequest(
                group_id=group,
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                protocol_type=protocol_type,
                protocol_name="range",
                assignments=[
                    SyncGroupRequestAssignment(member_id=joined.member_id, assignment=encode_versioned(assigned, 0))
                ],
            )
        )
        assert synced.error_code == 0
        return str(joined.member_id)

    return str(on(server, story))


def cells(output: str, topic: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines() if line.strip().startswith(topic)]


def test_a_group_goes_from_first_commit_to_deletion(ottla: Ottla, server: TestBroker, topic: str, group: str) -> None:
    commit(server, group, topic, 3, 10)
    listed = ottla("group", "list")
    assert listed.exit_code == 0
    assert [line.split() for line in listed.stdout.splitlines() if group in line] == [[group, "classic", "Empty"]]

    described = ottla("group", "describe", group)
    assert described.exit_code == 0, described.stderr
    assert cells(described.stdout, topic) == [
        [topic, "0", "3", "10", "7", "-", "-", "-"],
        [topic, "1", "10", "10", "0", "-", "-", "-"],
    ]
    assert ottla("group", "delete", group).exit_code == 0
    gone = ottla("group", "describe", group)
    assert (gone.exit_code, gone.stderr) == (1, f"error: GROUP_ID_NOT_FOUND: there is no group '{group}'\n")


def test_members_are_shown_with_what_they_read(ottla: Ottla, server: TestBroker, topic: str, group: str) -> None:
    commit(server, group, topic, 4)
    member_id = join(server, group, topic)
    described = ottla("group", "describe", group, "--members")
    assert described.exit_code == 0, described.stderr
    assert "Stable  classic, range" in described.stdout
    # The second partition is read, but nothing is committed for it yet.
    assert cells(described.stdout, topic) == [
        [topic, "0", "4", "10", "6", member_id, "/127.0.0.1", "ottla"],
        [topic, "1", "-", "10", "-", member_id, "/127.0.0.1", "ottla"],
    ]
    assert [member_id, "-", "/127.0.0.1", "ottla", "2", f"{topic}:0,1"] in [
        line.split() for line in described.stdout.splitlines()
    ]


def test_the_total_counts_what_is_committed_and_says_what_is_not(
    ottla: Ottla, server: TestBroker, topic: str, group: str
) -> None:
    join(server, group, topic)
    described = ottla("group", "describe", group).stdout
    assert cells(described, "total") == [["total", "-"]]
    assert "nothing committed for 2 of 2 partitions" in described
    (shown,) = json.loads(ottla("group", "describe", group, "--json").stdout)
    assert (shown["lag"], shown["uncommitted_partitions"]) == (None, 2)

    commit(server, group + "-2", topic, 4)
    join(server, group + "-2", topic)
    described = ottla("group", "describe", group + "-2").stdout
    assert cells(described, "total") == [["total", "6"]]
    assert "nothing committed for 1 of 2 partitions" in described
    (shown,) = json.loads(ottla("group", "describe", group + "-2", "--json").stdout)
    assert (shown["lag"], shown["uncommitted_partitions"]) == (6, 1)


def test_a_narrow_terminal_gets_short_ids_and_whole_headings(
    ottla: Ottla, server: TestBroker, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    member_id = join(server, group, topic)
    monkeypatch.setattr("ottla.cli.output.WIDTH_WITHOUT_TERMINAL", 80)
    lines = ottla("group", "describe", group).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert ["topic", "partition", "offset", "log", "end", "lag", "member"] in [line.split() for line in lines]
    shortened = f"{member_id[:11]}…{member_id[-8:]}"
    assert sum(shortened in line for line in lines) == 2


def test_groups_that_exist_are_shown_beside_one_that_does_not(
    ottla: Ottla, server: TestBroker, topic: str, group: str
) -> None:
    commit(server, group, topic, 4, 9)
    described = ottla("group", "describe", "nobody", group)
    assert (described.exit_code, described.stderr) == (1, "error: GROUP_ID_NOT_FOUND: there is no group 'nobody'\n")
    assert cells(described.stdout, "total") == [["total", "7"]]


def test_a_group_with_nothing_in_it_says_so() -> None:
    empty = GroupDescription("g", "classic", "Empty", "", "", "localhost:9092")
    console = Console(file=io.StringIO(), width=80)
    console.print(group_show.screen(group_show.Looked([group_show.Shown(empty, [])], []), console, members=False))
    assert isinstance(console.file, io.StringIO)
    assert "no members and no committed offsets" in console.file.getvalue()


def test_a_list_of_no_groups_says_so_and_unknown_names_are_refused(ottla: Ottla) -> None:
    none = ottla("group", "list", "--state", "Dead")
    assert (none.exit_code, none.stdout, none.stderr) == (0, "", "there are no such groups\n")
    assert json.loads(ottla("group", "list", "--state", "Dead", "--json").stdout) == []
    refused = ottla("group", "list", "--state", "Foo")
    assert refused.exit_code == 2
    assert "PreparingRebalance" in refused.stderr
    refused = ottla("group", "list", "--type", "foo")
    assert refused.exit_code == 2
    assert "classic" in refused.stderr


def test_json_has_all_of_it(ottla: Ottla, server: TestBroker, topic: str, group: str) -> None:
    commit(server, group, topic, 4, 9)
    member_id = join(server, group, topic)
    (described,) = json.loads(ottla("group", "describe", group, "--json").stdout)
    assert (described["state"], described["type"], described["lag"]) == ("Stable", "classic", 7)
    assert described["partitions"][1] == {
        "topic": topic,
        "partition": 1,
        "offset": 9,
        "log_end_offset": 10,
        "lag": 1,
        "member_id": member_id,
    }
    assert described["members"][0]["assignment"] == {topic: [0, 1]}
    listed = json.loads(ottla("group", "list", "--json", "--state", "stable", "--type", "classic").stdout)
    assert {"group": group, "type": "classic", "protocol_type": "consumer", "state": "Stable"} in listed
    assert all(one["group"] != group for one in json.loads(ottla("group", "list", "--json", "--state", "Empty").stdout))


def test_a_group_of_the_consumer_protocol_is_shown_too(
    ottla: Ottla, server: TestBroker, topic: str, group: str
) -> None:
    async def story(cluster: Cluster) -> None:
        connection: Connection = await cluster.any_broker()
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="me",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        )
        assert (await connection.request(request)).error_code == 0

    committed(server, group)
    on(server, story)
    (described,) = json.loads(ottla("group", "describe", group, "--json").stdout)
    assert (described["type"], described["assignor"]) == ("consumer", "uniform")
    assert described["members"][0]["assignment"] == {topic: [0, 1]}
    assert [row["offset"] for row in described["partitions"]] == [None, None]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--to-earliest",), {0: 0, 1: 0}),
        (("--to-latest",), {0: 10, 1: 10}),
        (("--to-datetime", "2023-11-14T22:15:30"), {0: 3, 1: 3}),
        (("--to-datetime", "2030-01-01T00:00:00Z"), {0: 10, 1: 10}),
        (("--by-duration", "P36500D"), {0: 0, 1: 0}),
        (("--by-duration", "PT1H"), {0: 10, 1: 10}),
        (("--shift-by", "2"), {0: 6, 1: 10}),
        (("--shift-by", "-5"), {0: 0, 1: 4}),
        (("--to-offset", "7"), {0: 7, 1: 7}),
        (("--to-offset", "700"), {0: 10, 1: 10}),
        (("--to-current",), {0: 4, 1: 9}),
    ],
)
def test_offsets_are_reset_to(
    ottla: Ottla, server: TestBroker, words: tuple[str, ...], expected: dict[int, int]
) -> None:
    topic, group = f"reset{abs(hash(words))}", f"group{abs(hash(words))}"

    administer(server, lambda admin: admin.create_topics([NewTopic(topic, 2)]))
    on(server, lambda cluster: produce(cluster, topic))
    commit(server, group, topic, 4, 9)

    dry = ottla("group", "reset", group, "--all-topics", "--dry-run", "--json", *words)
    assert dry.exit_code == 0, dry.stderr
    assert [(one["before"], one["offset"]) for one in json.loads(dry.stdout)] == [(4, expected[0]), (9, expected[1])]
    assert committed(server, group) == {0: 4, 1: 9}

    done = ottla("group", "reset", group, "--all-topics", *words)
    assert done.exit_code == 0, done.stderr
    assert cells(done.stdout, topic) == [[topic, "0", "4", str(expected[0])], [topic, "1", "9", str(expected[1])]]
    assert committed(server, group) == expected


def test_some_partitions_of_a_topic_are_reset_and_the_others_stay(
    ottla: Ottla, server: TestBroker, topic: str, group: str
) -> None:
    commit(server, group, topic, 4, 9)
    assert ottla("group", "reset", group, "--topic", f"{topic}:1", "--to-earliest").exit_code == 0
    assert committed(server, group) == {0: 4, 1: 0}
    missing = ottla("group", "reset", group, "--topic", f"{topic}:7", "--to-earliest")
    assert missing.exit_code == 1
    assert "has partitions 0 to 1, not 7" in missing.stderr


def test_a_group_can_be_given_offsets_before_anyone_uses_it(
    ottla: Ottla, server: TestBroker, topic: str, group: str
) -> None:
    assert ottla("group", "reset", group, "--topic", topic, "--to-latest").exit_code == 0
    assert committed(server, group) == {0: 10, 1: 10}
    nothing = ottla("group", "reset", group + "-2", "--all-topics", "--to-latest")
    assert (nothing.exit_code, nothing.stderr) == (
        1,
        f"error: group '{group}-2' has no offsets; name the topics with --topic\n",
    )


def test_an_offset_outside_of_the_partition_and_a_new_group_are_pointed_out(
    ottla: Ottla, topic: str, group: str
) -> None:
    words = ("group", "reset", group, "--topic", f"{topic}:1", "--to-offset", "99999", "--json")
    for done in (ottla(*words, "--dry-run"), ottla(*words)):
        assert done.exit_code == 0
        warning, new, _ = done.stderr.splitlines()
        assert warning == f"{topic}-1: 99999 is beyond the end, 10 taken"
        assert new == f"group '{group}' is new"
        (moved,) = json.loads(done.stdout)
        assert (moved["asked"], moved["offset"]) == (99999, 10)


def test_going_back_too_far_is_pointed_out_and_a_group_that_exists_is_not_new(
    ottla: Ottla, server: TestBroker, topic: str, group: str
) -> None:
    commit(server, group, topic, 4)
    done = ottla("group", "reset", group, "--all-topics", "--shift-by", "-5")
    assert done.stderr.splitlines() == [f"{topic}-0: -1 is before the start, 0 taken", f"set 1 offset of {group}"]


def test_exported_offsets_can_be_read_again(
    ottla: Ottla, server: TestBroker, topic: str, group: str, tmp_path: Path
) -> None:
    commit(server, group, topic, 4, 9)
    exported = ottla("group", "reset", group, "--all-topics", "--to-current", "--export")
    assert exported.stdout == f"{topic},0,4\n{topic},1,9\n"
    assert ottla("group", "reset", group, "--all-topics", "--to-earliest").exit_code == 0
    file = tmp_path / "offsets.csv"
    file.write_text(exported.stdout)
    assert ottla("group", "reset", group, "--from-file", str(file)).exit_code == 0
    assert committed(server, group) == {0: 4, 1: 9}

    file.write_text(f"{topic},0\n")
    broken = ottla("group", "reset", group, "--from-file", str(file))
    assert broken.exit_code == 2
    assert "topic,partition,offset" in broken.stderr


def test_a_group_with_members_is_neither_reset_nor_deleted(
    ottla: Ottla, server: TestBroker, topic: str, group: str
) -> None:
    commit(server, group, topic, 4, 9)
    join(server, group, topic)
    refused = ottla("group", "reset", group, "--all-topics", "--to-earliest")
    assert (refused.exit_code, refused.stderr) == (
        1,
        f"error: group '{group}' is Stable with 1 member, who would not notice: stop them first\n",
    )
    assert ottla("group", "reset", group, "--all-topics", "--to-earliest", "--dry-run").exit_code == 0
    refused = ottla("group", "delete", group)
    assert refused.exit_code == 1
    assert "NON_EMPTY_GROUP" in refused.stderr
    refused = ottla("group", "delete", group, "--topic", topic)
    assert refused.exit_code == 1
    assert "GROUP_SUBSCRIBED_TO_TOPIC" in refused.stderr
    assert committed(server, group) == {0: 4, 1: 9}
    with pytest.raises(KafkaError) as caught:
        commit(server, group, topic, 0)
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_a_topic_are_deleted_alone(ottla: Ottla, server: TestBroker, topic: str, group: str) -> None:
    commit(server, group, topic, 4, 9)
    assert ottla("group", "delete", group, "-t", f"{topic}:0").exit_code == 0
    assert committed(server, group) == {1: 9}
    assert ottla("group", "delete", "nobody", "-t", topic).exit_code == 1
    assert ottla("group", "delete", "nobody", "--if-exists").exit_code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("group", "describe"),
        ("group", "describe", ""),
        ("group", "delete", "g", ""),
        ("group", "reset", "", "--all-topics", "--to-earliest"),
        ("group", "reset", "g", "--to-earliest"),
        ("group", "reset", "g", "--all-topics"),
        ("group", "reset", "g", "--all-topics", "--to-earliest", "--to-latest"),
        ("group", "reset", "g", "--all-topics", "--topic", "t", "--to-earliest"),
        ("group", "reset", "g", "--topic", "t:x", "--to-earliest"),
        ("group", "reset", "g", "--all-topics", "--to-datetime", "yesterday"),
        ("group", "reset", "g", "--all-topics", "--by-duration", "1h"),
        ("group", "reset", "g", "--from-file", "/no/such/file"),
    ],
)
def test_a_mistake_in_the_command_line_exits_with_2(ottla: Ottla, words: tuple[str, ...]) -> None:
    assert ottla(*words).exit_code == 2


def test_what_is_wrong_with_the_command_line_is_said(ottla: Ottla) -> None:
    both = ottla("group", "reset", "g", "--all-topics", "--to-earliest", "--to-latest")
    assert "only one of --to-earliest" in " ".join(both.stderr.split())
    assert "a group id must not be empty" in ottla("group", "describe", "").stderr


def test_watching_draws_again_until_it_is_interrupted(server: TestBroker, topic: str, group: str) -> None:
    commit(server, group, topic, 4, 9)
    program = LISTEN_TO_INTERRUPTS + "from ottla.cli.main import app; app()"
    command = [sys.executable, "-c", program, "group", "describe", group, "--watch", "--json"]
    environment = {**os.environ, "OTTLA_BOOTSTRAP": server.bootstrap_servers}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as watching:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())[0]["lag"] == 7
        commit(server, group, topic, 10, 10)
        deadline = time.monotonic() + 20
        while json.loads(watching.stdout.readline())[0]["lag"] and time.monotonic() < deadline:
            pass
        assert json.loads(watching.stdout.readline())[0]["lag"] == 0
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 130


def test_watching_waits_for_groups_to_come_and_for_brokers_to_return() -> None:
    program = LISTEN_TO_INTERRUPTS + "from ottla.cli.main import app; app()"
    command = [sys.executable, "-c", program, "group", "describe", "later", "--watch"]
    with TestBroker() as running:
        administer(running, lambda admin: admin.create_topics([NewTopic("t", 1)]))
        environment = {**os.environ, "OTTLA_BOOTSTRAP": running.bootstrap_servers}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as watching:
            assert watching.stdout is not None
            assert watching.stderr is not None
            assert watching.stderr.readline() == "there is no group 'later' yet: waiting for it\n"
            commit(running, "later", "t", 0)
            assert watching.stdout.readline().startswith("later  Empty")
            running.stop()
            assert re.fullmatch(r"no answer since \d\d:\d\d:\d\d, still trying\n", watching.stderr.readline())
            running.start()
            commit(running, "later", "t", 7)
            assert any(line.split()[:3] == ["t", "0", "7"] for line in watching.stdout)
            assert any(re.fullmatch(r"at \d\d:\d\d:\d\d\n", line) for line in watching.stdout)
            watching.send_signal(signal.SIGINT)
            assert watching.wait(20) == 130


def test_a_terminal_keeps_the_last_picture_while_nobody_answers() -> None:
    async def sights() -> AsyncIterator[group_watch.Sight]:
        empty = GroupDescription("g", "classic", "Empty", "", "", "localhost:9092")
        seen = group_watch.Sight(group_show.Looked([group_show.Shown(empty, [])], ["h"]), TIMES_MS[0], silent=False)
        yield seen
        yield seen._replace(silent=True)

    screen = io.StringIO()
    console = Console(file=screen, width=80, height=24, force_terminal=True, highlight=False)
    asyncio.run(group_watch.draw(sights(), console, members=False))
    first, last = re.split(r"at \d\d:\d\d:\d\d", screen.getvalue())
    for picture in (first, last):
        assert "no members and no committed offsets" in picture
        assert "there is no group 'h' yet: waiting for it" in picture
    assert "no answer since" in last
