"""What the runtime of a shard promises, over a real log and with groups that do as they are told."""

import asyncio
from collections.abc import Awaitable, Iterator
from errno import ENOSPC
from pathlib import Path
from typing import Any, cast

import pytest

from ottla.broker.coordinator_shard import Shard
from ottla.config.topic import TopicConfig
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.outcome import Call, Outcome, Record, Ticket, tombstone
from ottla.log.files import OpenFiles
from ottla.log.log import Log
from ottla.ports import SystemClock, SystemDisk
from ottla.ports.disk import SystemFile
from ottla.record import Codec, batches, records
from ottla.replica.partition import Partition
from ottla.wire.embedded.offsets_topic import GroupMetadataKey
from ottla.wire.errors import ErrorCode, KafkaError
from tests.unit.broker.small_broker import Stranger

CALL = Call(0, "client", "/127.0.0.1", None)


def record(name: str) -> Record:
    return tombstone(GroupMetadataKey(group=name))


class Groups:
    """Groups that decide nothing: tests hand in the outcomes."""

    def __init__(self) -> None:
        self.replayed: list[bytes] = []
        self.next_deadline_ms: int | None = None
        self.expired: list[int] = []
        self.when_expired = Outcome()

    def replay(self, key: bytes, _value: bytes | None) -> None:
        self.replayed.append(key[4:])

    def expire(self, now_ms: int) -> Outcome:
        self.expired.append(now_ms)
        self.next_deadline_ms = None
        return self.when_expired


class SlowPartition:
    """One whose appends are committed when the test says so."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.commits: list[asyncio.Future[None]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._partition, name)

    def committed(self, next_offset: int) -> Awaitable[None] | None:
        self.commits.append(asyncio.get_running_loop().create_future())
        return self.commits[-1]


class World:
    """A shard with all that it needs."""

    def __init__(self, folder: Path) -> None:
        disk = SystemDisk(str(folder))
        self.log = Log.create(
            disk, OpenFiles(disk), "__consumer_offsets-0", TopicConfig(), SystemClock(), bytes(15) + b"1"
        )
        self.partition: Partition = Partition("__consumer_offsets", 0, self.log, self.log.config, 0)
        self.groups = Groups()
        self.failures = 0
        self.shard = Shard(
            "__consumer_offsets-0",
            cast(GroupShard, self.groups),
            lambda: self.partition,
            self._failed,
            SystemClock(),
            Codec.NONE,
        )

    def _failed(self) -> None:
        self.failures += 1

    def call(self, outcome: Outcome, caller: Stranger | None = None, if_too_large: ErrorCode | None = None) -> Any:
        """The answer to a call that has this outcome."""
        return self.shard.execute(
            lambda _groups, _now, _call: outcome, CALL, caller or Stranger(), if_too_large=if_too_large
        )

    def slow_down(self) -> SlowPartition:
        """From now on the test says when something is committed."""
        slow = SlowPartition(self.partition)
        self.partition = cast(Partition, slow)
        return slow

    def written(self) -> list[list[bytes]]:
        """Group ids in the log, by batch."""
        found = self.log.read(0, 1 << 20, end=self.log.end_offset)
        if found is None:
            return []
        return [[bytes(one.key)[4:] for one in records(batch)] for batch in batches(found.read())]  # type: ignore[arg-type]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.log.close()


def test_a_call_that_writes_nothing_is_answered_at_once(world: World) -> None:
    # No event loop runs: neither a task nor a future could have been made.
    assert world.call(Outcome("pong")) == "pong"


def test_records_are_one_batch_and_are_replayed_before_the_reply(world: World) -> None:
    assert world.call(Outcome("done", [record("a"), record("b")])) == "done"
    assert world.call(Outcome("done", [record("c")])) == "done"
    assert world.written() == [[b"a", b"b"], [b"c"]]
    assert world.groups.replayed == [b"a", b"b", b"c"]


def test_a_ticket_is_answered_by_the_call_that_releases_it(world: World) -> None:
    async def story() -> None:
        ticket = Ticket()
        joining = asyncio.ensure_future(world.call(Outcome(ticket)))
        await asyncio.sleep(0)
        assert world.call(Outcome("second", [record("a")], [(ticket, "first")])) == "second"
        assert await joining == "first"

    asyncio.run(story())


def test_a_call_may_release_its_own_ticket(world: World) -> None:
    async def story() -> None:
        ticket = Ticket()
        assert world.call(Outcome(ticket, [record("a")], [(ticket, "at once")])) == "at once"

    asyncio.run(story())


def test_a_caller_that_goes_away_waits_no_more_and_its_ticket_may_still_be_released(world: World) -> None:
    async def story() -> None:
        ticket, caller = Ticket(), Stranger()
        joining = asyncio.ensure_future(world.call(Outcome(ticket), caller))
        await asyncio.sleep(0)
        assert caller.interrupt is not None
        caller.interrupt()
        assert await joining is None
        assert world.call(Outcome("heartbeat", [], [(ticket, "too late")])) == "heartbeat"

    asyncio.run(story())


def test_a_connection_that_is_cut_takes_nobody_elses_commit_with_it(world: World) -> None:
    async def story() -> None:
        slow = world.slow_down()
        first = asyncio.ensure_future(world.call(Outcome("first", [record("a")])))
        second = asyncio.ensure_future(world.call(Outcome("second")))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        slow.commits[0].set_result(None)
        assert await second == "second"

    asyncio.run(story())


def test_nobody_hears_of_what_is_not_committed(world: World) -> None:
    async def story() -> None:
        slow = world.slow_down()
        ticket = Ticket()
        waiting = asyncio.ensure_future(world.call(Outcome(ticket)))
        writing = asyncio.ensure_future(world.call(Outcome("written", [record("a")], [(ticket, "released")])))
        reading = asyncio.ensure_future(world.call(Outcome("read")))
        await asyncio.sleep(0.01)
        assert world.groups.replayed == [b"a"], "the next call is decided on it"
        assert [answer.done() for answer in (waiting, writing, reading)] == [False, False, False]
        slow.commits[0].set_result(None)
        assert [await waiting, await writing, await reading] == ["released", "written", "read"]
        assert world.call(Outcome("read")) == "read", "and then nobody waits"

    asyncio.run(story())


def test_with_a_flush_policy_the_reply_comes_when_it_is_on_the_disk(world: World) -> None:
    async def story() -> None:
        world.partition.configure(TopicConfig({"flush.messages": "1"}))
        answer = world.call(Outcome("written", [record("a")]))
        assert asyncio.iscoroutine(answer)
        assert await answer == "written"
        assert world.log.recovery_point == world.log.end_offset == 1

    asyncio.run(story())


def test_an_append_that_fails_fails_everyone_who_waits_and_the_shard(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        waiting = asyncio.ensure_future(world.call(Outcome(Ticket())))
        await asyncio.sleep(0)
        full = OSError(ENOSPC, "no space left")
        monkeypatch.setattr(SystemFile, "append", lambda *_: (_ for _ in ()).throw(full))
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
            world.call(Outcome("never", [record("a")]))
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
            await waiting
        assert world.failures == 1
        assert world.groups.replayed == []

    asyncio.run(story())


def test_a_commit_that_fails_fails_everyone_who_waits_and_the_shard(world: World) -> None:
    async def story() -> None:
        slow = world.slow_down()
        waiting = asyncio.ensure_future(world.call(Outcome(Ticket())))
        writing = asyncio.ensure_future(world.call(Outcome("never", [record("a")])))
        await asyncio.sleep(0)
        slow.commits[0].set_exception(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone"))
        for answer in (waiting, writing):
            with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
                await answer
        assert world.failures == 1

    asyncio.run(story())


def test_what_does_not_fit_in_a_segment_can_be_refused_without_harm(world: World) -> None:
    world.partition.configure(TopicConfig({"segment.bytes": "1048576"}))
    too_much = Outcome("never", [record("x" * 2_000) for _ in range(600)])
    with pytest.raises(KafkaError, match="INVALID_COMMIT_OFFSET_SIZE"):
        world.call(too_much, if_too_large=ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
    assert world.failures == 0
    assert world.call(Outcome("done", [record("a")])) == "done"
    assert world.written() == [[b"a"]]


def test_what_cannot_be_refused_gets_a_segment_for_itself(world: World) -> None:
    world.partition.configure(TopicConfig({"segment.bytes": "1048576"}))
    assert world.call(Outcome("first", [record("a")])) == "first"
    assert world.call(Outcome("large", [record("x" * 2_000) for _ in range(600)])) == "large"
    assert world.call(Outcome("last", [record("b")])) == "last"
    assert (world.failures, len(world.groups.replayed), world.log.end_offset) == (0, 602, 602)


def test_a_call_that_fails_unexpectedly_fails_the_shard_and_whoever_waits(world: World) -> None:
    def fail(_groups: GroupShard, _now_ms: int, _call: Call) -> Outcome:
        raise ValueError("a bug")

    async def story() -> None:
        waiting = asyncio.ensure_future(world.call(Outcome(Ticket())))
        await asyncio.sleep(0)
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
            world.shard.execute(fail, CALL, Stranger())
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
            await waiting
        assert world.failures == 1

    asyncio.run(story())


def test_a_stop_answers_everyone_who_waits(world: World) -> None:
    async def story() -> None:
        waiting = asyncio.ensure_future(world.call(Outcome(Ticket())))
        await asyncio.sleep(0)
        world.shard.stop()
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
            await waiting
        assert world.failures == 0, "it was asked to"

    asyncio.run(story())


def test_timers_go_off_when_they_are_due(world: World) -> None:
    async def story() -> None:
        now_ms = SystemClock().now_ms()
        ticket = Ticket()
        waiting = asyncio.ensure_future(world.call(Outcome(ticket)))
        world.groups.next_deadline_ms = now_ms + 30
        world.groups.when_expired = Outcome(None, [record("a")], [(ticket, "the time is up")])
        world.call(Outcome("heartbeat"))
        assert await waiting == "the time is up"
        assert world.groups.expired[0] >= now_ms + 29
        assert world.written() == [[b"a"]]

    asyncio.run(story())


def test_a_timer_is_moved_only_if_something_is_due_earlier(world: World) -> None:
    async def story() -> None:
        now_ms = SystemClock().now_ms()
        timers = []
        loop = asyncio.get_running_loop()
        call_later = loop.call_later

        def counted(*arguments: Any) -> asyncio.TimerHandle:
            timers.append(arguments[0])
            return call_later(*arguments)

        loop.call_later = counted  # type: ignore[method-assign,assignment]
        for delay_ms in (10_000, 10_500, 11_000, 5_000, 5_500):
            world.groups.next_deadline_ms = now_ms + delay_ms
            world.call(Outcome("heartbeat"))
        assert len(timers) == 2
        world.shard.stop()

    asyncio.run(story())


def test_groups_that_fail_by_themselves_fail_the_shard(world: World) -> None:
    def fail(_groups: GroupShard, _now_ms: int) -> Outcome:
        raise ValueError("a bug")

    world.shard.run(fail)
    assert world.failures == 1
