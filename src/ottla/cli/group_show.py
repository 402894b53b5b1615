"""A group on the screen: what it has read, what is left, and who reads it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ottla.cli.output import make_table
from ottla.client.admin import Admin, GroupDescription, MemberDescription
from ottla.client.admin.part import by_topic
from ottla.client.types import TopicPartition
from ottla.wire.errors import ErrorCode, KafkaError

NONE = "-"
SHORT_ID = 20
WIDEST = 10_000
"""What a table is measured in: wider than any."""


class Row(NamedTuple):
    """A partition that a group has committed for, or that a member reads."""

    place: TopicPartition
    offset: int | None
    end_offset: int | None
    member: MemberDescription | None

    @property
    def lag(self) -> int | None:
        """How many records are left to read."""
        return None if self.offset is None or self.end_offset is None else max(0, self.end_offset - self.offset)


class Shown(NamedTuple):
    """A group and its partitions."""

    group: GroupDescription
    rows: list[Row]

    @property
    def lag(self) -> int | None:
        """How many records are left in the partitions where that is known; None if it is known of none."""
        lags = [row.lag for row in self.rows if row.lag is not None]
        return sum(lags) if lags else None

    @property
    def uncommitted(self) -> int:
        """How many partitions are read without a committed offset."""
        return sum(row.offset is None for row in self.rows)


class Looked(NamedTuple):
    """Groups that were asked for: those that exist, and the ids of those that do not."""

    shown: list[Shown]
    missing: list[str]


async def look(admin: Admin, group_ids: Iterable[str]) -> Looked:
    """Ask for everything there is to show."""
    looked = Looked([], [])
    for group_id in group_ids:
        try:
            looked.shown.append(await _look(admin, group_id))
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            looked.missing.append(group_id)
    return looked


async def _look(admin: Admin, group_id: str) -> Shown:
    group = (await admin.describe_consumer_groups([group_id]))[group_id]
    committed = await admin.list_consumer_group_offsets(group_id)
    readers = {place: member for member in group.members for place in member.assignment or ()}
    places = sorted(committed.keys() | readers.keys())
    ends = await _ends(admin, places)
    rows = [
        Row(place, committed[place].offset if place in committed else None, ends.get(place), readers.get(place))
        for place in places
    ]
    return Shown(group, rows)


async def _ends(admin: Admin, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Where partitions end. Offsets may be left of topics that are no more, which end nowhere."""
    try:
        return await admin.end_offsets(places)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
    topics = (await admin.describe_topics()).values()
    there = {TopicPartition(topic.name, one.partition) for topic in topics for one in topic.partitions}
    return await admin.end_offsets([place for place in places if place in there])


def screen(looked: Looked, console: Console, *, members: bool) -> RenderableType:
    """Tables of groups, for a console of its width."""
    return Group(*[part for shown in looked.shown for part in _parts(shown, console, members=members)])


def _parts(shown: Shown, console: Console, *, members: bool) -> Iterator[RenderableType]:
    group = shown.group
    assignor = f", {group.assignor}" if group.assignor else ""
    # No title of the table, which would fold where the table ends.
    yield Text(
        f"{group.group_id}  {group.state}  {group.group_type}{assignor}  coordinator {group.coordinator}",
        style="table.title",
    )
    if shown.rows:
        table = _partitions(shown, full=True)
        wanted = console.measure(table, options=console.options.update(max_width=WIDEST)).maximum
        yield table if wanted <= console.width else _partitions(shown, full=False)
        if shown.uncommitted:
            yield f"nothing committed for {shown.uncommitted} of {_count(len(shown.rows), 'partition')}\n"
    else:
        yield f"{_count(len(group.members), 'member') if group.members else 'no members'} and no committed offsets\n"
    if members:
        yield _members(group.members)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _partitions(shown: Shown, *, full: bool) -> Table:
    columns = ["topic", "partition #", "offset #", "log end #", "lag #", "member", "host", "client id"]
    cells: list[tuple[object, ...]] = [
        (
            row.place.topic,
            row.place.partition,
            *(_or_none(number) for number in (row.offset, row.end_offset, row.lag)),
            *_reader(row.member),
        )
        for row in shown.rows
    ]
    if len(shown.rows) > 1:
        cells.append(("total", "", "", "", _or_none(shown.lag), "", "", ""))
    if full:
        return make_table(columns, cells)
    table = make_table(columns[:6], [(*row[:5], _short(str(row[5]))) for row in cells])
    # Long topics fold rather than that what is short already gets cut up.
    table.columns[5].no_wrap = True
    return table


def _reader(member: MemberDescription | None) -> tuple[str, str, str]:
    return (NONE, NONE, NONE) if member is None else (member.member_id, member.client_host, member.client_id)


def _or_none(number: int | None) -> int | str:
    return NONE if number is None else number


def _short(member_id: str) -> str:
    """An id without its middle: it begins with what a client calls itself, and ends with what tells it from others."""
    return member_id if len(member_id) <= SHORT_ID else f"{member_id[: SHORT_ID - 9]}…{member_id[-8:]}"


def _members(members: Sequence[MemberDescription]) -> RenderableType:
    columns = ["member", "instance id", "host", "client id", "partitions #", "assignment"]
    cells = [
        (
            one.member_id,
            one.group_instance_id or NONE,
            one.client_host,
            one.client_id,
            NONE if one.assignment is None else len(one.assignment),
            NONE if one.assignment is None else "  ".join(_words(one.assignment)),
        )
        for one in members
    ]
    return make_table(columns, cells, title=_count(len(members), "member"))


def _words(assignment: Sequence[TopicPartition]) -> list[str]:
    return [f"{topic}:{','.join(map(str, indexes))}" for topic, indexes in by_topic(assignment).items()]


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
        "lag": shown.lag,
        "uncommitted_partitions": shown.uncommitted,
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
                "instance_id": one.group_instance_id,
                "client_id": one.client_id,
                "host": one.client_host,
                "assignment": None if one.assignment is None else by_topic(one.assignment),
            }
            for one in group.members
        ],
    }
