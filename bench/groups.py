"""`python -m bench.groups`: what consumer groups cost as they grow, in members and in number.

One group with more and more members, in both protocols: how long until all of them are in and know what they read, how
long when one more comes, and what the broker holds for each. Then more and more groups with committed offsets: what a
commit takes, what a group costs in memory, and how long they take to load at a start.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ottla.client.admin import Admin, NewTopic
from ottla.net.connection import Connection
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.api.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.wire.errors import ErrorCode

from .group_members import ClassicMember, ConsumerMember, settle
from .process import BrokerProcess

TOPIC = "read"
COMMITTED_PARTITIONS = 10
CONCURRENT_COMMITS = 64


@dataclass(frozen=True)
class MembersCost:
    """One group with so many members."""

    protocol: str
    members: int
    form_seconds: float
    """From the first join until every member knows its partitions."""
    one_more_seconds: float
    """The same when one more comes."""
    resident_bytes: int
    """What the broker grew by, connections included."""


@dataclass(frozen=True)
class GroupsCost:
    """So many groups, each with the offsets of ten partitions."""

    groups: int
    commits_per_second: float
    resident_bytes: int
    """What the broker grew by."""
    load_seconds: float
    """From a start until the last of them answers."""
    loaded_bytes: int
    """What the broker holds after that start, above an empty one."""


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.groups", description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quick", action="store_true", help="100 members and 1,000 groups at most")
    options = parser.parse_args()
    sizes = (10, 100) if options.quick else (10, 100, 300, 1000)
    counts = (100, 1000) if options.quick else (1000, 3000, 10_000)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("groups", total=2 * len(sizes) + len(counts))
        members = []
        for protocol in ("classic", "consumer"):
            for size in sizes:
                members.append(asyncio.run(members_cost(protocol, size)))
                progress.advance(task)
        groups = []
        for count in counts:
            groups.append(asyncio.run(groups_cost(count)))
            progress.advance(task)
    if options.json:
        print(json.dumps({"members": [asdict(one) for one in members], "groups": [asdict(one) for one in groups]}))
    else:
        show(members, groups)
    return 0


async def _create_topic(port: int, partitions: int) -> None:
    async with Admin(f"127.0.0.1:{port}") as admin:
        await admin.create_topics([NewTopic(TOPIC, partitions)])


async def _form(members: Sequence[ClassicMember] | Sequence[ConsumerMember], partition_count: int) -> float:
    began = time.perf_counter()
    if isinstance(members[0], ClassicMember):
        classic = [member for member in members if isinstance(member, ClassicMember)]
        await asyncio.gather(*(one.follow() if one.member_id else one.take_part() for one in classic))
    else:
        await settle([member for member in members if isinstance(member, ConsumerMember)], partition_count)
    return time.perf_counter() - began


async def members_cost(protocol: str, size: int) -> MembersCost:
    """Have a group form, and one more member come."""
    settings = "group.initial.rebalance.delay.ms=500", "group.consumer.max.session.timeout.ms=600000"
    with (
        tempfile.TemporaryDirectory(prefix="ottla-groups-") as folder,
        BrokerProcess(Path(folder), *settings, "group.consumer.session.timeout.ms=600000") as broker,
    ):
        await _create_topic(broker.port, size * 2)
        before_bytes = broker.resident_bytes
        connections = [await Connection.open("127.0.0.1", broker.port, client_id="bench") for _ in range(size + 1)]
        members: list[ClassicMember] | list[ConsumerMember]
        if protocol == "classic":
            members = [ClassicMember(connection, "group", TOPIC) for connection in connections]
        else:
            members = [ConsumerMember(one, "group", TOPIC, number) for number, one in enumerate(connections)]
        form_seconds = await _form(members[:-1], size * 2)
        resident_bytes = broker.resident_bytes - before_bytes
        one_more_seconds = await _form(members, size * 2)
        for connection in connections:
            await connection.close()
        return MembersCost(protocol, size, form_seconds, one_more_seconds, resident_bytes)


async def groups_cost(count: int) -> GroupsCost:
    """Commit for so many groups, then start again."""
    with tempfile.TemporaryDirectory(prefix="ottla-groups-") as folder:
        with BrokerProcess(Path(folder)) as broker:
            await _create_topic(broker.port, COMMITTED_PARTITIONS)
            before_bytes = broker.resident_bytes
            began = time.perf_counter()
            await _commit_all(broker.port, count)
            commits_per_second = count / (time.perf_counter() - began)
            resident_bytes = broker.resident_bytes - before_bytes
        with BrokerProcess(Path(folder)) as broker:
            load_seconds = await _time_load(broker.port, count)
            loaded_bytes = broker.resident_bytes - before_bytes
    return GroupsCost(count, commits_per_second, resident_bytes, load_seconds, loaded_bytes)


async def _commit_all(port: int, count: int) -> None:
    connection = await Connection.open("127.0.0.1", port, client_id="bench")
    limit = asyncio.Semaphore(CONCURRENT_COMMITS)

    async def commit(number: int) -> None:
        parts = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=number + index)
            for index in range(COMMITTED_PARTITIONS)
        ]
        request = OffsetCommitRequest(
            group_id=f"group-{number}", topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=parts)]
        )
        async with limit:
            reply = await connection.request(request, version=8)
        codes = {part.error_code for topic in reply.topics for part in topic.partitions}
        if codes != {0}:
            raise RuntimeError(f"a commit failed with {codes}")

    # The first one makes the offsets topic, which is not what is measured.
    await commit(0)
    await asyncio.gather(*map(commit, range(1, count)))
    await connection.close()


async def _time_load(port: int, count: int) -> float:
    began = time.perf_counter()
    connection = await Connection.open("127.0.0.1", port, client_id="bench")
    while (listed := await connection.request(ListGroupsRequest())).error_code:
        if listed.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            raise RuntimeError(f"groups cannot be listed: {ErrorCode(listed.error_code).name}")
        # Asking costs the broker something too.
        await asyncio.sleep(0.05)
    took_s = time.perf_counter() - began
    wanted = [OffsetFetchRequestGroup(group_id=f"group-{number}", topics=None) for number in range(count)]
    reply = await connection.request(OffsetFetchRequest(groups=wanted), version=8)
    found = sum(len(topic.partitions) for group in reply.groups for topic in group.topics)
    if found != count * COMMITTED_PARTITIONS:
        raise RuntimeError(f"{found} offsets are there, and {count * COMMITTED_PARTITIONS} were committed")
    await connection.close()
    return took_s


def show(members: Sequence[MembersCost], groups: Sequence[GroupsCost]) -> None:
    """Print tables."""
    console = Console()
    table = Table(title="One group")
    for title in ("protocol", "members", "form s", "one more s", "ms a member", "KB a member"):
        table.add_column(title, justify="left" if title == "protocol" else "right")
    for cost in members:
        table.add_row(
            cost.protocol, f"{cost.members:,}", f"{cost.form_seconds:.2f}", f"{cost.one_more_seconds:.2f}",
            f"{cost.one_more_seconds / cost.members * 1e3:.2f}", f"{cost.resident_bytes / cost.members / 1024:.1f}",
        )  # fmt: skip
    console.print(table)
    table = Table(title=f"Groups with {COMMITTED_PARTITIONS} committed offsets each")
    for title in ("groups", "commits/s", "KB a group", "load s", "KB a group, loaded"):
        table.add_column(title, justify="right")
    for one in groups:
        table.add_row(
            f"{one.groups:,}", f"{one.commits_per_second:,.0f}", f"{one.resident_bytes / one.groups / 1024:.2f}",
            f"{one.load_seconds:.2f}", f"{one.loaded_bytes / one.groups / 1024:.2f}",
        )  # fmt: skip
    console.print(table)
    console.print(
        "form: in the classic protocol a new group waits for members, group.initial.rebalance.delay.ms = 500 here, and "
        "once more if some came. one more: classic members hear of it by heartbeats every 50 ms; with 100 members and "
        "more the consumer protocol shares out at most once a second.",
        style="dim",
    )


if __name__ == "__main__":
    sys.exit(main())
