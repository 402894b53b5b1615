"""A group on the screen: what it has read, what is left, and who reads it."""

from typing import Any, NamedTuple

from rich.console import Group, RenderableType

from ottla.cli.output import make_table
from ottla.client.cluster import Cluster, TopicPartition
from ottla.client.groups import GroupAdmin, GroupDescription, GroupMember
from ottla.client.offsets import LATEST, list_offsets

NONE = "-"


class Row(NamedTuple):
    """A partition that a group has committed for, or that a member reads."""

    place: TopicPartition
    offset: int | None
    end_offset: int | None
    member: GroupMember | None

    @property
    def lag(self) -> int | None:
        """How many records are left to read."""
        return None if self.offset is None or self.end_offset is None else max(0, self.end_offset - self.offset)


class Shown(NamedTuple):
    """A group and its partitions."""

    group: GroupDescription
    rows: list[Row]


async def look(cluster: Cluster, group_id: str) -> Shown:
    """Ask for everything there is to show."""
    admin = GroupAdmin(cluster)
    group = await admin.describe(group_id)
    committed = await admin.committed(group_id)
    readers = {
        TopicPartition(topic, index): member
        for member in group.members
        for topic, indexes in (member.assignment or {}).items()
        for index in indexes
    }
    places = sorted(committed.keys() | readers.keys())
    ends = await _ends(cluster, places)
    rows = [
        Row(place, committed[place].offset if place in committed else None, ends.get(place), readers.get(place))
        for place in places
    ]
    return Shown(group, rows)


async def _ends(cluster: Cluster, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Where partitions end. Offsets may be left of topics that are no more, which end nowhere."""
    if not places:
        return {}
    topics = (await cluster.metadata(sorted({place.topic for place in places}))).topics
    there = {TopicPartition(topic.name or "", one.partition_index) for topic in topics for one in topic.partitions}
    found = [place for place in places if place in there]
    return await list_offsets(cluster, dict.fromkeys(found, LATEST)) if found else {}


def screen(shown: Shown, *, members: bool) -> RenderableType:
    """Tables of a group."""
    group = shown.group
    assignor = f", {group.assignor}" if group.assignor else ""
    title = f"{group.group_id}  {group.state}  {group.group_type}{assignor}  coordinator {group.coordinator}"
    tables: list[RenderableType] = [_partitions(shown.rows, title)]
    if members:
        tables.append(_members(group.members))
    return Group(*tables)


def _partitions(rows: list[Row], title: str) -> RenderableType:
    columns = ["topic", "partition #", "offset #", "log end #", "lag #", "member", "host", "client id"]
    cells = [
        (
            row.place.topic,
            row.place.partition,
            *(NONE if number is None else number for number in (row.offset, row.end_offset, row.lag)),
            *((NONE,) * 3 if row.member is None else (row.member.member_id, row.member.host, row.member.client_id)),
        )
        for row in rows
    ]
    lags = [row.lag for row in rows if row.lag is not None]
    if len(rows) > 1:
        cells.append(("", "", "", "", sum(lags), "", "", ""))
    return make_table(columns, cells, title=title)


def _members(members: list[GroupMember]) -> RenderableType:
    columns = ["member", "instance id", "host", "client id", "partitions #", "assignment"]
    cells = [
        (
            one.member_id,
            one.instance_id or NONE,
            one.host,
            one.client_id,
            NONE if one.assignment is None else sum(map(len, one.assignment.values())),
            NONE if one.assignment is None else "  ".join(_words(one.assignment)),
        )
        for one in members
    ]
    return make_table(columns, cells, title=f"{len(members)} member{'' if len(members) == 1 else 's'}")


def _words(assignment: dict[str, list[int]]) -> list[str]:
    return [f"{topic}:{','.join(map(str, indexes))}" for topic, indexes in sorted(assignment.items())]


def as_json(shown: Shown) -> dict[str, Any]:
    """The same for programs."""
    group = shown.group
    return {
        "group": group.group_id,
        "type": group.group_type,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        "lag": sum(row.lag for row in shown.rows if row.lag is not None),
        "partitions": [
            {
                "topic": row.place.topic,
                "partition": row.place.partition,
                "offset": row.offset,
                "log_end_offset": row.end_offset,
                "lag": row.lag,
                "member_id": row.member and row.member.member_id,
            }
            for row in shown.rows
        ],
        "members": [
            {
                "member_id": one.member_id,
                "instance_id": one.instance_id,
                "client_id": one.client_id,
                "host": one.host,
                "assignment": one.assignment,
            }
            for one in group.members
        ],
    }
