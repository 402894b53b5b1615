"""What `ottla top` shows: topics, clients, groups and lag at two moments, and what happened in between.

Topics and groups are asked for as any client can, so it works with other brokers too. What single clients do only a
broker knows: that is read from its port for metrics.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from ottla.client.admin import Admin
from ottla.client.types import TopicPartition
from ottla.ports import Clock
from ottla.wire.errors import ErrorCode, KafkaError

MOST_METRICS_BYTES = 64 * 1024 * 1024
METRICS_TIMEOUT_S = 10.0

Client = tuple[str, str]
"""Principal and client id."""


class Sample(NamedTuple):
    """One number of a scrape."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass
class Look:
    """The numbers of one moment."""

    at_s: float
    partitions: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    groups: list["GroupLine"] = field(default_factory=list)
    samples: list[Sample] | None = None
    """None if there is no port for metrics."""

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """The values of a metric, added up by one of its labels."""
        found: dict[str, float] = {}
        for sample in self.samples or ():
            if sample.name == name:
                key = sample.labels.get(label, "")
                found[key] = found.get(key, 0.0) + sample.value
        return found

    def by_client(self, name: str) -> dict[Client, float]:
        """The values of a metric that each client has."""
        return {
            (sample.labels.get("principal", ""), sample.labels.get("client_id", "")): sample.value
            for sample in self.samples or ()
            if sample.name == name
        }


@dataclass
class TopicLine:
    """A topic; rates are per second, and None where nobody tells."""

    topic: str
    partitions: int
    records: int
    """The sum of its end offsets: all that were ever written."""
    records_in: float
    bytes_in: float | None
    bytes_out: float | None


@dataclass
class GroupLine:
    """A group, and how far it is behind."""

    group: str
    state: str
    members: int
    clients: list[str]
    partitions: int
    lag: int | None
    """None if it has committed nothing that is there."""
    lag_growth: float | None = None
    """Records a second by which the lag grows; below 0 it shrinks."""


@dataclass
class ClientLine:
    """A client as the broker counts it; rates are per second."""

    client_id: str
    principal: str
    connections: int
    requests: float
    errors: float
    bytes_in: float
    bytes_out: float


@dataclass
class Snapshot:
    """All that is shown at once, the busiest first."""

    topics: list[TopicLine]
    groups: list[GroupLine]
    clients: list[ClientLine] | None
    """None if there is no port for metrics to ask."""
    interval_s: float

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return asdict(self)


async def look(admin: Admin, metrics: str | None, clock: Clock, *, internal: bool) -> Look:
    """Ask for everything."""
    scrape = asyncio.create_task(asyncio.to_thread(_scrape, metrics)) if metrics is not None else None
    try:
        topics = [one for one in (await admin.describe_topics()).values() if internal or not one.is_internal]
        found = Look(clock.monotonic(), {one.name: len(one.partitions) for one in topics})
        places = [TopicPartition(one.name, each.partition) for one in topics for each in one.partitions]
        ends = await _ends(admin, places)
        for place, end in ends.items():
            found.ends[place.topic] = found.ends.get(place.topic, 0) + end
        found.groups = await _groups(admin, ends)
        found.samples = None if scrape is None else await scrape
    finally:
        if scrape is not None:
            scrape.cancel()
    return found


async def _ends(admin: Admin, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    try:
        return await admin.end_offsets(list(places))
    except KafkaError as error:
        # A topic was deleted just now; the next look will not ask for it.
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return {}


async def _groups(admin: Admin, ends: Mapping[TopicPartition, int]) -> list[GroupLine]:
    names = [listed.group_id for listed in await admin.list_groups() if listed.group_type in ("classic", "consumer")]
    lines = await asyncio.gather(*[_group(admin, name, ends) for name in names])
    return [line for line in lines if line is not None]


async def _group(admin: Admin, name: str, ends: Mapping[TopicPartition, int]) -> GroupLine | None:
    try:
        group = (await admin.describe_consumer_groups([name]))[name]
        committed = await admin.list_consumer_group_offsets(name)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise
    lags = [max(0, ends[place] - mark.offset) for place, mark in committed.items() if place in ends]
    clients = sorted({member.client_id for member in group.members})
    return GroupLine(name, group.state, len(group.members), clients, len(lags), sum(lags) if lags else None)


def _scrape(address: str) -> list[Sample]:
    from prometheus_client.parser import text_string_to_metric_families

    url = address if "://" in address else f"http://{address}"
    try:
        with urlopen(url.rstrip("/").removesuffix("/metrics") + "/metrics", timeout=METRICS_TIMEOUT_S) as reply:
            text = reply.read(MOST_METRICS_BYTES).decode()
        families = list(text_string_to_metric_families(text))
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        why = getattr(reason, "strerror", None) or (
            reason if isinstance(error, URLError) else "what answers there is no port for metrics"
        )
        message = f"no metrics from {address}: {why}; give the address that `ottla serve --metrics` was given"
        raise KafkaError(ErrorCode.NETWORK_EXCEPTION, message) from error
    return [Sample(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]


def compare(before: Look, now: Look) -> Snapshot:
    """What there is now, and what happened since."""
    seconds = max(now.at_s - before.at_s, 1e-3)

    def rate(then: Mapping[Any, float], since: Mapping[Any, float], key: Any) -> float:
        # What starts anew, as after a restart, would count backwards.
        return max(0.0, since.get(key, 0.0) - then.get(key, since.get(key, 0.0))) / seconds

    topics = []
    in_before, in_now = (one.by_label("ottla_topic_bytes_in_total", "topic") for one in (before, now))
    out_before, out_now = (one.by_label("ottla_topic_bytes_out_total", "topic") for one in (before, now))
    for name, count in now.partitions.items():
        topics.append(
            TopicLine(
                name,
                count,
                now.ends.get(name, 0),
                rate(before.ends, now.ends, name),
                None if now.samples is None else rate(in_before, in_now, name),
                None if now.samples is None else rate(out_before, out_now, name),
            )
        )
    topics.sort(key=lambda line: (-line.records_in, -(line.bytes_out or 0), line.topic))
    lags = {line.group: line.lag for line in before.groups}
    for line in now.groups:
        earlier = lags.get(line.group)
        line.lag_growth = None if line.lag is None or earlier is None else (line.lag - earlier) / seconds
    groups = sorted(now.groups, key=lambda line: (-(line.lag or 0), line.group))
    return Snapshot(topics, groups, None if now.samples is None else _clients(before, now, rate), seconds)


def _clients(before: Look, now: Look, rate: Any) -> list[ClientLine]:
    def rates(name: str) -> dict[Client, float]:
        then, since = before.by_client(name), now.by_client(name)
        return {client: rate(then, since, client) for client in since}

    requests, errors = rates("ottla_client_requests_total"), rates("ottla_client_errors_total")
    bytes_in, bytes_out = rates("ottla_client_request_bytes_total"), rates("ottla_client_response_bytes_total")
    lines = [
        ClientLine(
            client[1],
            client[0],
            int(connections),
            *(found.get(client, 0.0) for found in (requests, errors, bytes_in, bytes_out)),
        )
        for client, connections in now.by_client("ottla_client_connections").items()
        if connections or requests.get(client)
    ]
    return sorted(lines, key=lambda line: (-(line.bytes_in + line.bytes_out), -line.requests, line.client_id))
