"""What clients live through while a proxy disturbs them, and how it must end. Tests and long runs share these."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ottla.client.consumer import Consumer
from ottla.client.producer import Producer
from ottla.client.table import read_table
from ottla.net import BrokerUnreachableError, LoginMissingError, UnsupportedVersionError
from ottla.wire.errors import KafkaError

from .history import Reads, Sends, Witness, commits_that_go_back
from .proxy import FaultProxy

T = TypeVar("T")

PARTITIONS = 3
KEYS = 12
PATIENCE_S = 30.0
CANCEL_S = 5.0

IMPATIENT: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 20,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 20,
    "request_timeout_ms": 10_000,
}
"""Options of a client that tries again at once, so that tests are quick."""

SMALL_BATCHES: dict[str, Any] = {"batch_size": 300}
"""A few records each, so that several are under way."""

SMALL_FETCHES: dict[str, Any] = {"max_partition_fetch_bytes": 600, "fetch_max_wait_ms": 50}


def run(story: Coroutine[Any, Any, T], patience_s: float = PATIENCE_S) -> T:
    """Run a story; if it hangs, say where."""
    return asyncio.run(_bounded(story, patience_s))


async def _bounded(story: Coroutine[Any, Any, T], patience_s: float) -> T:
    task = asyncio.create_task(story, name="the story")
    await asyncio.wait({task}, timeout=patience_s)
    if task.done():
        return task.result()
    text = io.StringIO()
    for one in asyncio.all_tasks() - {asyncio.current_task()}:
        one.print_stack(limit=8, file=text)
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_S)
    raise AssertionError(f"nothing moves after {patience_s} s; the tasks are at\n{text.getvalue()}")


@contextmanager
def explained(proxy: FaultProxy) -> Iterator[None]:
    """Have a failure tell what the proxy did."""
    try:
        yield
    except BaseException as error:
        error.add_note(proxy.report())
        raise


# Producers.


async def send_numbers(producer: Producer, topic: str, sends: Sends, count: int, *, pause_every: int = 40) -> None:
    """Send numbered records by key, several batches in flight, and note what becomes of each."""
    deliveries: list[tuple[int, Any]] = []
    for place in range(count):
        number, value = sends.next_value()
        try:
            deliveries.append((number, await producer.send(topic, value, key=b"key-%d" % (place % KEYS))))
        except KafkaError as error:
            sends.failed[number] = error
        if pause_every and place % pause_every == pause_every - 1:
            # Some in one request, some in the next, as from a program that does other things too.
            await asyncio.sleep(0)
    for number, delivery in deliveries:
        try:
            metadata = await delivery
            sends.acknowledged[number] = (metadata.partition, metadata.offset)
        except KafkaError as error:
            sends.failed[number] = error


async def send_one_by_one(producer: Producer, topic: str, sends: Sends, count: int) -> None:
    """The same, where each record is waited for before the next."""
    for place in range(count):
        number, value = sends.next_value()
        try:
            metadata = await producer.send_and_wait(topic, value, key=b"key-%d" % (place % KEYS))
            sends.acknowledged[number] = (metadata.partition, metadata.offset)
        except KafkaError as error:
            sends.failed[number] = error


async def produce(
    bootstrap_servers: str,
    topic: str,
    sends: Sends,
    count: int = 200,
    *,
    starts: int = 1,
    send: Callable[[Producer, str, Sends, int], Awaitable[None]] = send_numbers,
    **options: Any,
) -> None:
    """A producer's life: it starts, at the last of so many attempts, sends numbers, and stops."""
    options = {**IMPATIENT, **SMALL_BATCHES, **options}
    producer = Producer(bootstrap_servers=bootstrap_servers, **options)
    await start(producer.start, starts)
    async with producer:
        await send(producer, topic, sends, count)


async def start(begin: Callable[[], Awaitable[object]], attempts: int) -> None:
    """Start a client. One that never reached its broker, or was cut off at each first request, as by brokers that ask
    for a login, says so at once, and may be started again."""
    for attempt in range(1, attempts + 1):
        try:
            await begin()
            return
        except (BrokerUnreachableError, LoginMissingError, UnsupportedVersionError):
            if attempt == attempts:
                raise


def check_log(witness: Witness, topic: str, sends: Sends, starts: list[int], **rules: bool) -> None:
    """See whether a log has what was acknowledged."""
    broken = sends.breaks(witness.read(topic, starts), **rules)
    assert not broken, "; ".join(broken)


# Consumers without a group.


def values_of(witness: Witness, topic: str) -> list[bytes]:
    """All values that a topic has."""
    return [record.value or b"" for record in witness.read(topic, [0] * PARTITIONS)]


async def consume(bootstrap_servers: str, topic: str, count: int, *, starts: int = 1, **options: Any) -> Reads:
    """Read so many records from the beginning, and then until nothing more comes for a moment."""
    reads = Reads()
    settings = {**IMPATIENT, **SMALL_FETCHES, "auto_offset_reset": "earliest", **options}
    consumer = Consumer(topic, bootstrap_servers=bootstrap_servers, **settings)
    await start(consumer.start, starts)
    try:
        while len(reads.values) < count:
            reads.take(await consumer.getone())
        for records in (await consumer.getmany(timeout_ms=20)).values():
            for record in records:
                reads.take(record)
    finally:
        await consumer.stop()
    return reads


async def tabulate(bootstrap_servers: str, topic: str, **options: Any) -> Reads:
    """Read a whole topic as a table."""
    table = await read_table(topic, bootstrap_servers=bootstrap_servers, **{**IMPATIENT, **options})
    reads = Reads()
    columns = (table.column(name).to_pylist() for name in ("partition", "offset", "value"))
    reads.values = list(zip(*columns, strict=True))
    return reads


def check_reads(reads: Reads, expected: Iterable[bytes], **rules: bool) -> None:
    """See whether what was read is what was written."""
    broken = reads.breaks(expected, **rules)
    assert not broken, "; ".join(broken)


# Groups.


class GroupMember:
    """A member of a group that reads and commits by itself, one record after another."""

    def __init__(self, bootstrap_servers: str, topic: str, group: str, reads: Reads, **options: Any) -> None:
        settings = {
            **IMPATIENT,
            "fetch_max_wait_ms": 50,
            "auto_offset_reset": "earliest",
            "auto_commit_interval_ms": 20,
            "heartbeat_interval_ms": 50,
            "session_timeout_ms": 6000,
            **options,
        }
        self.consumer = Consumer(topic, bootstrap_servers=bootstrap_servers, group_id=group, **settings)
        self._reads = reads
        self._reading: asyncio.Task[None] | None = None

    async def start(self, attempts: int = 1) -> None:
        """Join, and read from then on."""
        await start(self.consumer.start, attempts)
        self._reading = asyncio.create_task(self._read(), name="a member reads")

    async def _read(self) -> None:
        async for record in self.consumer:
            self._reads.take(record)
            # As one who works on a record for a moment now and then, in which others get their turn.
            if record.offset % 7 == 0:
                await asyncio.sleep(0)
            self._reads.finish(record)

    async def stop(self) -> None:
        """Leave; raises what reading raised."""
        await self.consumer.stop()
        if self._reading is not None:
            await self._reading

    def check(self) -> None:
        """Raise what ended the reading, if something did."""
        if self._reading is not None and self._reading.done():
            self._reading.result()
            raise AssertionError("a member has stopped to read")


async def wait_for(condition: Callable[[], bool], members: Iterable[GroupMember] = ()) -> None:
    """Wait until something is so, while members read."""
    while not condition():
        for member in members:
            member.check()
        await asyncio.sleep(0.002)


async def read_in_group(
    proxy: FaultProxy,
    witness: Witness,
    topic: str,
    group: str,
    reads: Reads,
    *,
    count: int = 40,
    starts: int = 1,
    **options: Any,
) -> list[bytes]:
    """One member reads, a second one comes, the first one goes; records are written all the while. All values."""
    members: list[GroupMember] = []
    written: list[bytes] = []
    names: dict[bytes, str] = {}
    proxy.watch("OffsetCommit", lambda request: reads.see_commit(request, names))

    async def join() -> None:
        member = GroupMember(proxy.bootstrap_servers, topic, group, reads, **options)
        await member.start(starts)
        members.append(member)

    def is_shared() -> bool:
        parts = [member.consumer.assignment() for member in members]
        return all(parts) and sum(map(len, parts)) == PARTITIONS

    async def write_and_read() -> None:
        values = [f"{group}:{len(written) + number}".encode() for number in range(count)]
        written.extend(values)
        await asyncio.to_thread(witness.write, topic, values, PARTITIONS)
        await wait_for(lambda: {value for _, _, value in reads.values} >= set(values), members)

    try:
        names[await asyncio.to_thread(witness.topic_id, topic)] = topic
        await join()
        await write_and_read()
        await join()
        await wait_for(is_shared, members)
        await write_and_read()
        await members.pop(0).stop()
        await wait_for(is_shared, members)
        await write_and_read()
    finally:
        for member in members:
            await member.stop()
    return written


def check_group(witness: Witness, group: str, reads: Reads, expected: Iterable[bytes]) -> None:
    """See whether a group has read everything, and committed no more than that, and never backwards."""
    broken = reads.breaks(expected, exactly_once=False)
    commits = witness.commits(group)
    broken += commits_that_go_back(commits)
    for place, offsets in commits.items():
        if max(offsets) > reads.finished.get(place, 0):
            broken.append(f"{place}: {max(offsets)} is committed, {reads.finished.get(place, 0)} were finished")
    assert not broken, "; ".join(broken)
