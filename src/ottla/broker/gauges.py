"""What is told of a broker when it is scraped: its counters, and what takes a look around.

It runs on the event loop, where everything is at rest, and lets others have their turn after every few hundred rows.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from ottla.metrics.family import Family
from ottla.net.listener import Listener
from ottla.net.memory import Memory
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

ROWS_PER_TURN = 300

Place = tuple[str, int]


class Gauges:
    """Looks around in a broker."""

    def __init__(self, broker: "Broker", listeners: Sequence[Listener], memory: Memory) -> None:
        self._broker = broker
        self._listeners = listeners
        self._memory = memory
        self._rows = 0

    async def look(self) -> list[Family]:
        """All families, as of now; those of partitions and groups as they are found one after the other."""
        families = [*self._requests(), *self._clients(), *self._connections(), *self._rare()]
        ends: dict[Place, int] = {}
        families += await self._topics(ends)
        families += await self._groups(ends)
        families.append(_left_out(families))
        return families

    async def _take_turns(self, rows: int = 1) -> None:
        self._rows += rows
        if self._rows >= ROWS_PER_TURN:
            self._rows = 0
            await asyncio.sleep(0)

    def _requests(self) -> Iterable[Family]:
        seconds = Family("ottla_request_seconds", "histogram", "Time from a request's arrival to its reply.", "api")
        errors = Family("ottla_request_errors_total", "counter", "Errors in responses.", "api", "error")
        waiting = Family("ottla_requests_waiting", "gauge", "Requests whose reply has to be waited for.", "api")
        for api in filter(attrgetter("used"), self._broker.metrics.apis):
            seconds.add(api.name, list(api.buckets), api.seconds)
            waiting.add(api.name, api.waiting)
            for code, count in api.errors.items():
                errors.add(api.name, _error_name(code), count)
        return seconds, errors, waiting

    def _clients(self) -> Iterable[Family]:
        labels = ("principal", "client_id")
        requests = Family("ottla_client_requests_total", "counter", "Requests of a client.", *labels)
        errors = Family("ottla_client_errors_total", "counter", "Errors in its responses.", *labels)
        sizes_in = Family("ottla_client_request_bytes_total", "counter", "Bytes of its requests.", *labels)
        sizes_out = Family("ottla_client_response_bytes_total", "counter", "Bytes of its responses.", *labels)
        connections = Family("ottla_client_connections", "gauge", "Its connections.", *labels)
        clients = self._broker.metrics.clients
        total_in = Family("ottla_request_bytes_total", "counter", "Bytes of all requests.")
        total_out = Family("ottla_response_bytes_total", "counter", "Bytes of all responses.")
        total_in.add(clients.bytes_in_forgotten + sum(client.bytes_in for client in clients.all()))
        total_out.add(clients.bytes_out_forgotten + sum(client.bytes_out for client in clients.all()))
        for client in clients.all():
            who = client.principal, client.client_id
            requests.add(*who, client.requests)
            errors.add(*who, client.errors)
            sizes_in.add(*who, client.bytes_in)
            sizes_out.add(*who, client.bytes_out)
            connections.add(*who, client.connections)
        return total_in, total_out, requests, errors, sizes_in, sizes_out, connections

    def _connections(self) -> Iterable[Family]:
        open_now = Family("ottla_connections", "gauge", "Clients that are connected.", "listener")
        accepted = Family("ottla_connections_accepted_total", "counter", "Clients that were let in.", "listener")
        refused = Family("ottla_connections_refused_total", "counter", "Clients that were turned away.", "listener")
        failed = Family("ottla_connections_failed_total", "counter", "Connections closed after an error.", "listener")
        queued = Family("ottla_requests_queued", "gauge", "Requests behind others of their connection.", "listener")
        for listener in self._listeners:
            open_now.add(listener.name, listener.connection_count)
            accepted.add(listener.name, listener.accepted_count)
            refused.add(listener.name, listener.refused_count)
            failed.add(listener.name, listener.failed_count)
            queued.add(listener.name, listener.requests_waiting)
        yield from (open_now, accepted, refused, failed, queued)
        memory = self._memory
        yield _single("ottla_request_memory_bytes", "Bytes of requests that arrive or are handled.", memory.used)
        yield _single("ottla_request_memory_limit_bytes", "The most there may be of them.", memory.limit)
        yield _single("ottla_reply_memory_bytes", "Bytes of replies that clients leave unread.", memory.unread)
        waiting = len(memory.wanting)
        yield _single("ottla_connections_waiting_for_memory", "Clients not read from for want of memory.", waiting)

    def _rare(self) -> Iterable[Family]:
        broker = self._broker
        events = Family("ottla_events_total", "counter", "What happens seldom.", "event")
        for name, count in broker.metrics.events.items():
            events.add(name, count)
        yield events
        yield _single("ottla_fetch_sessions", "Fetch sessions that are remembered.", len(broker.sessions))
        yield _single("ottla_telemetry_clients", "Clients that asked which metrics to push.", len(broker.telemetry))
        pushed = Family("ottla_telemetry_bytes_total", "counter", "Bytes of metrics that clients pushed.")
        pushed.add(broker.telemetry.bytes_pushed)
        yield pushed
        try:
            total, usable = broker.disk.usage()
        except OSError:
            return
        yield _single("ottla_disk_bytes", "Size of the disk with the data folder.", total)
        yield _single("ottla_disk_usable_bytes", "What is left of it.", usable)

    async def _topics(self, ends: dict[Place, int]) -> list[Family]:
        """Also writes down where each partition ends."""
        logs = self._broker.logs
        topics = self._broker.image.topics.values()
        sizes_in = Family("ottla_topic_bytes_in_total", "counter", "Bytes of records appended.", "topic")
        records_in = Family("ottla_topic_records_in_total", "counter", "Records appended.", "topic")
        sizes_out = Family("ottla_topic_bytes_out_total", "counter", "Bytes of records given to readers.", "topic")
        place = ("topic", "partition")
        sizes = Family("ottla_partition_size_bytes", "gauge", "Bytes of the log.", *place)
        start_offsets = Family("ottla_partition_start_offset", "gauge", "The first offset there is.", *place)
        end_offsets = Family("ottla_partition_end_offset", "gauge", "The offset of the next record.", *place)
        for topic in topics:
            came = records = went = 0
            for each in topic.partitions:
                found = logs.measure(topic.name, each.index)
                if found is not None:
                    size, start, end = found
                    ends[topic.name, each.index] = end
                    sizes.add(topic.name, each.index, size)
                    start_offsets.add(topic.name, each.index, start)
                    end_offsets.add(topic.name, each.index, end)
                opened = logs.partitions.get((topic.name, each.index))
                if opened is not None:
                    came += opened.bytes_in
                    records += opened.records_in
                    went += opened.bytes_out
                await self._take_turns()
            sizes_in.add(topic.name, came)
            records_in.add(topic.name, records)
            sizes_out.add(topic.name, went)
        count = _single("ottla_topics", "Topics there are.", len(topics))
        partitions = sum(len(topic.partitions) for topic in topics)
        led = _single("ottla_partitions", "Partitions of all topics.", partitions)
        return [count, led, sizes_in, records_in, sizes_out, sizes, start_offsets, end_offsets]

    async def _groups(self, ends: dict[Place, int]) -> list[Family]:
        """Lag: how many records lie between what a group has committed for a partition and its end."""
        kinds: Counter[tuple[str, str]] = Counter()
        members = Family("ottla_group_members", "gauge", "Members of a group.", "group")
        lag = Family("ottla_group_lag_records", "gauge", "Records to be read yet.", "group", "topic", "partition")
        for shard in self._broker.groups.shards():
            for group in shard.groups():
                listed = group.listed()
                kinds[listed.group_type, listed.group_state] += 1
                members.add(group.group_id, len(group.members))
                for topic, index, offset in list(shard.positions(group.group_id)):
                    end = ends.get((topic, index))
                    if end is not None:
                        lag.add(group.group_id, topic, index, max(0, end - offset))
                    await self._take_turns()
                await self._take_turns()
        groups = Family("ottla_groups", "gauge", "Groups there are.", "type", "state")
        for (kind, state), count in kinds.items():
            groups.add(kind, state, count)
        return [groups, members, lag]


def _single(name: str, documentation: str, value: float) -> Family:
    family = Family(name, "gauge", documentation)
    family.add(value)
    return family


def _left_out(families: Iterable[Family]) -> Family:
    left_out = Family("ottla_scrape_left_out", "gauge", "Samples beyond the most that a scrape tells of.", "metric")
    for family in families:
        if family.left_out:
            left_out.add(family.name, family.left_out)
    return left_out


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
