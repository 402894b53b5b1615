"""Groups of Java's consumer, from the oldest to the newest, in both protocols."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from ottla.testing import TestBroker
from tests.java import skip_without_maven
from tests.waiting import until

from .group_flow import Flow, Ledger
from .group_story import GROUP, PARTITIONS, PATIENCE_S, SETTINGS, TOPIC, read, tell, write
from .java_client import NEWEST, JavaClient
from .java_members import Event, JavaMember

pytestmark = [pytest.mark.maven, skip_without_maven("no consumer of Java has joined a group")]

Clients = Callable[[str], JavaClient]
Join = Callable[..., JavaMember]

SESSION_MS = 2000
BASIC: dict[str, Any] = {"metadata_max_age_ms": 500}
CLASSIC = {**BASIC, "heartbeat_interval_ms": 100, "session_timeout_ms": 10_000}
RANGE = {**CLASSIC, "partition_assignment_strategy": "org.apache.kafka.clients.consumer.RangeAssignor"}
COOPERATIVE = {
    **CLASSIC,
    "partition_assignment_strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
CONSUMER = {**BASIC, "group_protocol": "consumer"}

MEMBERS: dict[str, tuple[str, dict[str, Any]]] = {
    "newest, consumer protocol": (NEWEST, CONSUMER),
    "newest, consumer protocol by range": (NEWEST, {**CONSUMER, "group_remote_assignor": "range"}),
    "newest, classic by range": (NEWEST, RANGE),
    "newest, classic cooperative": (NEWEST, COOPERATIVE),
    "3.9": ("3.9.2", CLASSIC),
    "2.8 cooperative": ("2.8.2", COOPERATIVE),
    "0.11": ("0.11.0.3", CLASSIC),
    "0.10.2": ("0.10.2.2", CLASSIC),
    "0.9": ("0.9.0.1", CLASSIC),
}
NEWEST_KINDS = ["newest, consumer protocol", "newest, classic by range"]


def kinds(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", names)


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker(SETTINGS) as started:
        yield started


@pytest.fixture
def admin(broker: TestBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


@pytest.fixture
def join(kind: str, clients: Clients, broker: TestBroker, topic: str) -> Join:
    """Has one more member join the test's own group, for the test's own topic unless told otherwise."""
    version, usual = MEMBERS[kind]

    def joined(settings: dict[str, Any] = usual, **more: Any) -> JavaMember:
        subscription = {} if more.keys() & {"pattern", "re2"} else {"topic": topic}
        return clients(version).join(broker.bootstrap_servers, topic, **{**settings, **subscription, **more})

    return joined


def create(admin: AdminClient, name: str, partitions: int = PARTITIONS) -> None:
    (made,) = admin.create_topics([NewTopic(name, partitions, 1)]).values()
    made.result(PATIENCE_S)


def share(first: JavaMember, second: JavaMember) -> None:
    """Wait until two members have half of the partitions each."""
    until(lambda: len(first.partitions()) == len(second.partitions()) == PARTITIONS // 2)
    assert first.partitions() | second.partitions() == set(range(PARTITIONS))


def has_everything(member: JavaMember) -> bool:
    return member.partitions() == set(range(PARTITIONS))


def has_lost_something(member: JavaMember) -> bool:
    member.poll()
    return "lost" in [event.what for event in member.events]


def gather(wanted: set[bytes], *members: JavaMember) -> None:
    """Have members read until they have found all of these, perhaps more than once, and nothing else."""
    found: set[bytes] = set()

    def is_all_found() -> bool:
        found.update(value for member in members for value in member.poll())
        return found >= wanted

    until(is_all_found)
    assert found == wanted


@kinds(*MEMBERS)
def test_members_come_and_go_and_nothing_is_lost_or_read_twice(clients: Clients, kind: str) -> None:
    version, settings = MEMBERS[kind]
    commits_later = iter([False, True, False])
    with TestBroker(SETTINGS) as broker:
        join = partial(clients(version).join, broker.bootstrap_servers, GROUP, topic=TOPIC)
        tell(broker, lambda: join(commits_later=next(commits_later), **settings))


@kinds(*NEWEST_KINDS, "newest, classic cooperative", "2.8 cooperative", "0.9")
def test_listeners_hear_what_members_get_and_give_up(join: Join, admin: AdminClient, topic: str, kind: str) -> None:
    create(admin, topic)
    everything = {(topic, number) for number in range(PARTITIONS)}
    first = join()
    until(lambda: first.assigned() == everything)
    assert [event for event in first.events if event.partitions] == [Event("assigned", frozenset(everything))]
    first.events.clear()
    second = join()
    share(first, second)
    given_up = everything if "range" in kind or kind == "0.9" else second.assigned()
    assert [event.partitions for event in first.events if event.what == "revoked"] == [given_up]
    second.close()
    if kind != "0.9":  # It closes without telling its listener.
        assert second.events[-1].what == "revoked"
    until(lambda: first.assigned() == everything)
    assert {event.what for event in first.events} == {"assigned", "revoked"}
    first.close()


@kinds(*NEWEST_KINDS, "0.9")
def test_a_member_that_polls_no_more_loses_its_place(
    join: Join, broker: TestBroker, admin: AdminClient, topic: str, kind: str
) -> None:
    create(admin, topic)
    # Since 0.10.1 a client gives up its place by itself. Before, who did not poll sent no heartbeats either.
    patience = {"session_timeout_ms" if kind == "0.9" else "max_poll_interval_ms": 1500}
    slow, quick = join(**patience), join(**patience)
    share(slow, quick)
    slow.halt()
    until(lambda: has_everything(quick))
    read(quick, write(broker, "after", 40, topic))
    quick.close()
    slow.close()


def test_members_that_are_paused_or_killed_are_missed_after_their_session(clients: Clients) -> None:
    settings = {
        **SETTINGS,
        "group.consumer.session.timeout.ms": str(SESSION_MS),
        "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    }
    protocols = {"classic": {**CLASSIC, "session_timeout_ms": SESSION_MS}, "consumer": CONSUMER}
    with TestBroker(settings) as broker:
        committed = write(broker, "committed", 40)
        unlucky = JavaClient(NEWEST)
        pairs = []
        for group, config in protocols.items():
            first = unlucky.join(broker.bootstrap_servers, group, topic=TOPIC, **config)
            read(first, committed)
            first.commit()
            pairs.append((first, clients(NEWEST).join(broker.bootstrap_servers, group, topic=TOPIC, **config)))
            share(*pairs[-1])

        unlucky.program.pause()
        for _, other in pairs:
            until(partial(has_everything, other))
        missed = write(broker, "missed", 40)
        for _, other in pairs:
            read(other, missed)
            other.commit()
        unlucky.program.go_on()
        for first, other in pairs:
            until(partial(has_lost_something, first))
            share(first, other)

        uncommitted = write(broker, "uncommitted", 40)
        unlucky.program.kill()
        for _, other in pairs:
            gather(uncommitted, other)
            assert has_everything(other)
            other.close()


@kinds(*NEWEST_KINDS, "2.8 cooperative")
def test_a_static_member_comes_back_to_what_it_had_and_nobody_notices(
    join: Join, broker: TestBroker, admin: AdminClient, topic: str
) -> None:
    create(admin, topic)
    first, second = join(group_instance_id="first"), join(group_instance_id="second")
    share(first, second)
    had = first.assigned()
    second.events.clear()
    first.close()
    back = join(group_instance_id="first")
    until(lambda: back.assigned() == had)
    gather(write(broker, "later", 40, topic), back, second)
    assert second.events == []
    back.close()
    second.close()


@kinds(*NEWEST_KINDS, "0.9")
def test_partitions_that_a_topic_gets_later_are_read(
    join: Join, broker: TestBroker, admin: AdminClient, topic: str
) -> None:
    create(admin, topic, 1)
    first = join()
    until(lambda: first.partitions() == {0})
    (grown,) = admin.create_partitions([NewPartitions(topic, PARTITIONS)]).values()
    grown.result(PATIENCE_S)
    until(lambda: has_everything(first))
    read(first, write(broker, "everywhere", 40, topic))
    first.close()


@pytest.mark.parametrize(
    ("kind", "syntax"),
    [
        pytest.param("newest, consumer protocol", "re2", id="RE2"),
        pytest.param("newest, consumer protocol", "pattern", id="newest"),
        pytest.param("newest, classic by range", "pattern", id="classic"),
        pytest.param("0.9", "pattern", id="0.9"),
    ],
)
def test_topics_are_subscribed_to_by_pattern_also_those_that_come_later(
    join: Join, broker: TestBroker, admin: AdminClient, topic: str, syntax: str
) -> None:
    create(admin, f"{topic}.early", 1)
    create(admin, f"{topic}-other", 1)
    member = join(**{syntax: rf"{topic}\.(early|late)"})
    until(lambda: member.assigned() == {(f"{topic}.early", 0)})
    create(admin, f"{topic}.late", PARTITIONS)
    later = {(f"{topic}.late", number) for number in range(PARTITIONS)}
    until(lambda: member.assigned() == {(f"{topic}.early", 0)} | later)
    read(member, write(broker, "late", 40, f"{topic}.late"))
    member.close()


@kinds("newest, consumer protocol")
def test_what_is_no_pattern_is_refused(join: Join) -> None:
    member = join(re2="orders-(")

    def is_refused() -> bool:
        try:
            return member.poll() != []
        except AssertionError as failure:
            return "InvalidRegularExpression" in str(failure)

    until(is_refused)


@kinds("newest, classic by range", "newest, classic cooperative")
def test_a_group_rolls_to_the_new_protocol_and_back_while_records_flow(
    join: Join, clients: Clients, broker: TestBroker, admin: AdminClient, topic: str, kind: str
) -> None:
    create(admin, topic)
    everything = {(topic, number) for number in range(PARTITIONS)}
    ledger = Ledger()
    clients(NEWEST).journal()

    def group_type() -> str:
        (group,) = [group for group in admin.list_consumer_groups().result(PATIENCE_S).valid if group.group_id == topic]
        return str(group.type.name)

    with Flow(broker, topic) as flow:
        members = [join(always_commits=True), join(always_commits=True)]
        share(*members)
        for protocol, settings in (("CONSUMER", CONSUMER), ("CLASSIC", MEMBERS[kind][1])):
            for _ in range(2):
                members.append(join(settings, always_commits=True))
                until(lambda: members[-1].assigned() != set())
                members.pop(0).close()
                until(lambda: set.union(*(member.assigned() for member in members)) == everything)
            assert group_type() == protocol

    def is_all_read() -> bool:
        ledger.enter(clients(NEWEST).journal())
        return ledger.ends == flow.ends

    until(is_all_read)
    for member in members:
        member.close()
