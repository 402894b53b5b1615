"""Groups behind a proxy that cuts and lies: all is read, commits are of what was read and never go back."""

import asyncio
import time
from collections.abc import Callable
from copy import deepcopy
from itertools import count
from typing import Any

import pytest

from ottla.client.consumer import Consumer
from ottla.client.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    KafkaError,
)
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_request
from tests.peers.fixtures import Broker, has_consumer_protocol

from . import (
    Action,
    Exchange,
    FaultProxy,
    Passage,
    black_hole,
    cut_reply,
    cut_request,
    drop_reply,
    duplicate_reply,
    edit_reply,
    stray_reply,
)
from .history import Reads, Witness
from .rules import QUICK_FAULTS
from .stories import IMPATIENT, PARTITIONS, GroupMember, check_group, explained, read_in_group, run, wait_for

NAMES = count(1)

KINDS: dict[str, dict[str, Any]] = {
    "eager": {"partition_assignment_strategy": ["range"]},
    "cooperative": {"partition_assignment_strategy": ["cooperative-sticky"]},
    "modern": {"group_protocol": "consumer"},
}
APIS = {
    "eager": ["FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "LeaveGroup"],
    "cooperative": ["JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "LeaveGroup"],
    "modern": ["FindCoordinator", "ConsumerGroupHeartbeat", "OffsetCommit", "OffsetFetch"],
}
CASES = [(kind, api) for kind, apis in APIS.items() for api in apis]
CUTS = [
    cut_request(0, reset=True),
    cut_request(0.5),
    cut_request(1.0),
    cut_reply(0),
    cut_reply(0.5, reset=True),
    cut_reply(1.0),
]

Tell = Callable[..., Reads]


def live(proxy: FaultProxy, witness: Witness, kind: str, name: str | None = None, **options: Any) -> Reads:
    """Have a group live behind a proxy, and check what it did."""
    name = name or f"{kind}-{next(NAMES)}"
    witness.create(name, PARTITIONS)
    reads = Reads()
    with explained(proxy):
        written = run(read_in_group(proxy, witness, name, name, reads, **{**KINDS[kind], **options}))
        check_group(witness, name, reads, written)
    # So that the broker has not hundreds of logs to close in the end.
    witness.delete(name)
    return reads


@pytest.fixture
def tell(proxy: FaultProxy, witness: Witness) -> Tell:
    def tell(kind: str, **options: Any) -> Reads:
        return live(proxy, witness, kind, **options)

    return tell


# Cuts.


@pytest.mark.parametrize("action", CUTS, ids=str)
@pytest.mark.parametrize(("kind", "api"), CASES)
def test_a_cut_anywhere_is_made_good(proxy: FaultProxy, tell: Tell, kind: str, api: str, action: Action) -> None:
    # A member whose first JoinGroup is lost is a second one to the group, which waits for the first one's session.
    for nth in (1, 2) if kind == "eager" else (2,):
        proxy.calm()
        rule = proxy.on(api, action, nth=nth)
        tell(kind, session_timeout_ms=1500)
        rule.wait()


@pytest.mark.parametrize("nth", [1, 3, 5, 8])
@pytest.mark.parametrize("action", CUTS, ids=str)
def test_heartbeats_of_the_newer_protocol_carry_everything_and_may_be_cut_anywhere(
    proxy: FaultProxy, tell: Tell, action: Action, nth: int
) -> None:
    rule = proxy.on("ConsumerGroupHeartbeat", action, nth=nth)
    tell("modern")
    rule.wait()


def only_goodbyes(action: Action) -> Action:
    """Do something to the first heartbeat that takes leave, and to no other."""
    assert action.on_request is not None
    treat, done = action.on_request, False

    def on_request(exchange: Exchange, frame: bytes) -> Passage:
        nonlocal done
        _, request = decode_request(ConsumerGroupHeartbeatRequest, exchange.version, frame[4:])
        if done or request.member_epoch >= 0:
            return Passage(frame)
        done = True
        return treat(exchange, frame)

    return Action(action.name, on_request)


@pytest.mark.parametrize(
    ("kind", "api"), [("eager", "LeaveGroup"), ("cooperative", "LeaveGroup"), ("modern", "ConsumerGroupHeartbeat")]
)
@pytest.mark.parametrize("action", [cut_request(0), cut_request(0.5, reset=True)], ids=str)
def test_a_goodbye_that_is_cut_is_said_again(
    proxy: FaultProxy, witness: Witness, kind: str, api: str, action: Action
) -> None:
    name = f"goodbye-{next(NAMES)}"
    witness.create(name, PARTITIONS)
    faults = proxy.faults[action.name]

    async def story() -> None:
        first, second = (
            GroupMember(proxy.bootstrap_servers, name, name, Reads(), **KINDS[kind], session_timeout_ms=25_000)
            for _ in range(2)
        )
        await first.start()
        await wait_for(lambda: len(first.consumer.assignment()) == PARTITIONS, [first])
        await second.start()
        await wait_for(lambda: 0 < len(second.consumer.assignment()) < PARTITIONS, [first, second])
        proxy.on(api, action if kind != "modern" else only_goodbyes(action), times=1 if kind != "modern" else None)
        await first.stop()
        assert proxy.faults[action.name] > faults
        # The group does not wait for a session that nobody keeps up.
        async with asyncio.timeout(15):
            await wait_for(lambda: len(second.consumer.assignment()) == PARTITIONS, [second])
        await second.stop()

    with explained(proxy):
        run(story())


@pytest.mark.parametrize("action", [duplicate_reply(), stray_reply()], ids=str)
@pytest.mark.parametrize(("kind", "api"), CASES)
def test_replies_that_nobody_waits_for_are_ignored(
    proxy: FaultProxy, tell: Tell, kind: str, api: str, action: Action
) -> None:
    rule = proxy.on(api, action, times=2)
    tell(kind)
    rule.wait(2)


@pytest.mark.parametrize("action", [cut_reply(0), cut_request(1.0)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_cuts_before_every_broker(broker: Broker, name: str, kind: str, action: Action) -> None:
    if kind == "modern" and not has_consumer_protocol(broker):
        pytest.skip("Kafka 3.9 has it as a preview that is off")
    with FaultProxy(broker.bootstrap_servers) as proxy:
        rules = [proxy.on(api, action, nth=2) for api in APIS[kind] if api != "LeaveGroup"]
        live(proxy, Witness(broker.bootstrap_servers), kind, name)
        for rule in rules:
            rule.wait()


# Errors.


def failed(code: int) -> Callable[[Any], None]:
    """An edit that puts an error wherever a reply of a group's API has one."""
    code = int(code)

    def edit(response: Any) -> None:
        if hasattr(response, "coordinators") and response.coordinators:
            for one in response.coordinators:
                one.error_code = code
        elif hasattr(response, "groups"):
            for group in response.groups:
                group.error_code = code
        elif hasattr(response, "topics"):
            for topic in response.topics:
                for partition in topic.partitions:
                    partition.error_code = code
        else:
            response.error_code = code

    return edit


def test_the_edits_reach_every_reply(proxy: FaultProxy, tell: Tell) -> None:
    """What the tests below rest on: each API has its error where `failed` puts it."""
    seen: dict[str, int] = {}
    for api in {*APIS["eager"], *APIS["modern"]}:

        def note(response: Any, api: str = api) -> None:
            edited = deepcopy(response)
            failed(ErrorCode.KAFKA_STORAGE_ERROR)(edited)
            seen[api] = repr(edited).count(f"error_code={int(ErrorCode.KAFKA_STORAGE_ERROR)}")

        proxy.on(api, edit_reply(note))
    tell("eager")
    tell("modern")
    assert len(seen) == 8
    assert all(seen.values()), seen


MOVED = [
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
]
LOST = [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION]
ERRORS: list[tuple[str, str, list[ErrorCode]]] = [
    ("eager", "FindCoordinator", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]),
    ("eager", "JoinGroup", [*MOVED, *LOST, ErrorCode.REBALANCE_IN_PROGRESS]),
    ("eager", "SyncGroup", [*MOVED, *LOST, ErrorCode.REBALANCE_IN_PROGRESS]),
    ("eager", "Heartbeat", [*MOVED, *LOST, ErrorCode.REBALANCE_IN_PROGRESS]),
    ("eager", "OffsetCommit", [*MOVED, *LOST, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT]),
    ("eager", "OffsetFetch", [*MOVED, ErrorCode.UNSTABLE_OFFSET_COMMIT]),
    ("eager", "LeaveGroup", [*MOVED, *LOST]),
    ("cooperative", "JoinGroup", [*MOVED, *LOST]),
    ("cooperative", "SyncGroup", [*MOVED, *LOST, ErrorCode.REBALANCE_IN_PROGRESS]),
    ("cooperative", "Heartbeat", [*MOVED, *LOST, ErrorCode.REBALANCE_IN_PROGRESS]),
    ("cooperative", "OffsetCommit", [*MOVED, *LOST, ErrorCode.REBALANCE_IN_PROGRESS]),
    (
        "modern",
        "ConsumerGroupHeartbeat",
        [*MOVED, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH],
    ),
    ("modern", "OffsetCommit", [*MOVED, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID]),
    ("modern", "OffsetFetch", MOVED),
]


@pytest.mark.parametrize(
    ("kind", "api", "code"),
    [pytest.param(kind, api, code, id=f"{kind}-{api}-{code.name}") for kind, api, listed in ERRORS for code in listed],
)
def test_an_error_that_a_member_can_get_over_is_got_over(
    proxy: FaultProxy, tell: Tell, kind: str, api: str, code: ErrorCode
) -> None:
    rule = proxy.on(api, edit_reply(failed(code)), nth=1 if api in ("FindCoordinator", "LeaveGroup") else 2)
    # Where the broker believes in a member that believes itself forgotten, the session has to end first.
    tell(kind, **({} if kind == "modern" else {"session_timeout_ms": 1500}))
    rule.wait()


@pytest.mark.parametrize(
    ("kind", "api", "code", "error"),
    [
        ("eager", "FindCoordinator", ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationFailedError),
        ("eager", "JoinGroup", ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationFailedError),
        ("eager", "JoinGroup", ErrorCode.INCONSISTENT_GROUP_PROTOCOL, InconsistentGroupProtocolError),
        ("eager", "JoinGroup", ErrorCode.GROUP_MAX_SIZE_REACHED, GroupMaxSizeReachedError),
        ("eager", "JoinGroup", ErrorCode.INVALID_GROUP_ID, InvalidGroupIdError),
        ("eager", "JoinGroup", ErrorCode.FENCED_INSTANCE_ID, FencedInstanceIdError),
        ("eager", "SyncGroup", ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationFailedError),
        ("eager", "Heartbeat", ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationFailedError),
        ("eager", "OffsetFetch", ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationFailedError),
        ("modern", "ConsumerGroupHeartbeat", ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationFailedError),
        ("modern", "ConsumerGroupHeartbeat", ErrorCode.GROUP_MAX_SIZE_REACHED, GroupMaxSizeReachedError),
        ("modern", "ConsumerGroupHeartbeat", ErrorCode.INVALID_REQUEST, KafkaError),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else None if isinstance(value, str) else "",
)
def test_an_error_for_good_is_told_to_the_user(
    proxy: FaultProxy, witness: Witness, kind: str, api: str, code: ErrorCode, error: type[KafkaError]
) -> None:
    group = f"refused-{next(NAMES)}"
    witness.create(group, PARTITIONS)

    async def story() -> None:
        async with Consumer(
            group,
            bootstrap_servers=proxy.bootstrap_servers,
            group_id=group,
            heartbeat_interval_ms=50,
            **{**IMPATIENT, **KINDS[kind]},
        ) as consumer:
            with pytest.raises(error) as caught:
                await consumer.getone()
            assert caught.value.code is code
            assert "; " in str(caught.value), "what to do comes after what was wrong"

    rule = proxy.on(api, edit_reply(failed(code)), times=None)
    with explained(proxy):
        run(story())
    rule.wait()


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_that_the_group_refuses_is_a_typed_error(proxy: FaultProxy, witness: Witness, kind: str) -> None:
    group = f"refused-commit-{next(NAMES)}"
    witness.create(group, PARTITIONS)
    witness.write(group, [b"one"], PARTITIONS)

    async def story() -> None:
        options = {**IMPATIENT, **KINDS[kind], "auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with Consumer(group, bootstrap_servers=proxy.bootstrap_servers, group_id=group, **options) as consumer:
            await consumer.getone()
            proxy.on("OffsetCommit", edit_reply(failed(ErrorCode.UNKNOWN_MEMBER_ID)))
            with pytest.raises(CommitFailedError, match="max_poll_interval_ms"):
                await consumer.commit()

    with explained(proxy):
        run(story())


# Time.


@pytest.mark.parametrize("kind", KINDS)
def test_records_come_while_the_coordinator_is_silent(proxy: FaultProxy, witness: Witness, kind: str) -> None:
    name = f"silent-{next(NAMES)}"
    witness.create(name, PARTITIONS)
    reads = Reads()
    values = [b"%d" % number for number in range(200)]

    async def story() -> None:
        member = GroupMember(proxy.bootstrap_servers, name, name, reads, **KINDS[kind])
        await member.start()
        await wait_for(lambda: len(member.consumer.assignment()) == PARTITIONS, [member])
        await asyncio.to_thread(witness.write, name, values[:10], PARTITIONS)
        await wait_for(lambda: len(reads.values) == 10, [member])
        rules = [proxy.on(api, black_hole(), times=None) for api in APIS[kind]]
        await wait_for(lambda: any(rule.done for rule in rules), [member])
        began = time.monotonic()
        # Long before the session is over, and not all at once, so that it takes several fetches.
        for start in range(10, 200, 10):
            await asyncio.to_thread(witness.write, name, values[start : start + 10], PARTITIONS)
            await wait_for(lambda start=start: len(reads.values) == start + 10, [member])  # type: ignore[misc]
        # A request would be waited for ten seconds.
        assert time.monotonic() - began < 8, "fetching waited for the coordinator"
        proxy.calm()
        proxy.cut()
        await member.stop()

    with explained(proxy):
        run(story())
    assert not reads.breaks(values)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "silent"), [*((kind, True) for kind in KINDS), ("eager", False), ("modern", False)])
def test_a_member_stops_in_bounded_time_without_its_coordinator(
    proxy: FaultProxy, witness: Witness, kind: str, silent: bool
) -> None:
    name = f"stopping-{next(NAMES)}"
    witness.create(name, PARTITIONS)
    witness.write(name, [b"one"], PARTITIONS)
    reads = Reads()

    async def story() -> float:
        member = GroupMember(
            proxy.bootstrap_servers, name, name, reads, **{**KINDS[kind], "request_timeout_ms": 30_000}
        )
        await member.start()
        await wait_for(lambda: len(reads.values) == 1, [member])
        if silent:
            proxy.freeze()
        else:
            proxy.refuse()
            proxy.cut()
        began = time.monotonic()
        await member.stop()
        return time.monotonic() - began

    with explained(proxy):
        took_s = run(story(), 25)
    # Five seconds for the last commit, five to say goodbye; a request would be waited for 30.
    assert took_s < 20


@pytest.mark.parametrize(("kind", "api"), [case for case in CASES if case[1] not in ("JoinGroup", "LeaveGroup")])
def test_silence_ends_with_the_request_timeout(proxy: FaultProxy, tell: Tell, kind: str, api: str) -> None:
    rule = proxy.on(api, drop_reply(), nth=2)
    tell(kind, request_timeout_ms=600, session_timeout_ms=3000, starts=20)
    rule.wait()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "nth"), [("eager", 2), ("cooperative", 4)])
def test_a_join_that_is_not_answered_ends_when_a_rebalance_must_have(
    proxy: FaultProxy, tell: Tell, kind: str, nth: int
) -> None:
    rule = proxy.on("JoinGroup", drop_reply(), nth=nth)
    tell(kind, rebalance_timeout_ms=1000, session_timeout_ms=1500)
    rule.wait()


# Chance.


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_random_faults_and_delays_are_got_over(proxy: FaultProxy, tell: Tell, kind: str, seed: int) -> None:
    proxy.delay(request_ms=(0, 4), reply_ms=(0, 4), seed=seed)
    proxy.random_faults(seed, 0.1, QUICK_FAULTS)
    tell(kind)
