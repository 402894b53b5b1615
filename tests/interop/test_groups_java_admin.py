"""Java's administration client, of Kafka 4 and of Kafka 3, on groups of both protocols."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from ottla.testing import TestBroker
from tests.java import JavaError, skip_without_maven
from tests.waiting import until

from .group_story import PARTITIONS, SETTINGS, read, write
from .java_admin import JavaAdmin
from .java_client import NEWEST, JavaClient
from .java_members import JavaMember

pytestmark = [pytest.mark.maven, skip_without_maven("Java's administration client looked at no group")]

Call = Callable[..., Any]
Join = Callable[..., JavaMember]
BROKER_ID = 1
EACH = 10
"""Records in each partition."""


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker(SETTINGS) as started:
        yield started


@pytest.fixture
def call(java_admin: JavaAdmin, broker: TestBroker) -> Call:
    return partial(java_admin.call, broker.bootstrap_servers)


@pytest.fixture
def join(clients: Callable[[str], JavaClient], broker: TestBroker, topic: str) -> Join:
    """Has a member join the test's group, read what is there and commit it."""
    written = write(broker, "first", PARTITIONS * EACH, topic)

    def joined(protocol: str, **settings: Any) -> JavaMember:
        member = clients(NEWEST).join(
            broker.bootstrap_servers, topic, topic=topic, group_protocol=protocol, client_id="reader", **settings
        )
        read(member, written)
        member.commit()
        return member

    return joined


def refuses(exception: str) -> Any:
    """Expect that exception of Java."""
    return pytest.raises(JavaError, match=rf"org\.apache\.kafka\.common\.errors\.{exception}")


each_protocol = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@each_protocol
def test_groups_are_listed_by_state_and_type(
    java_admin: JavaAdmin, call: Call, join: Join, topic: str, protocol: str
) -> None:
    member = join(protocol)
    kind = protocol.capitalize()
    other = "consumer" if protocol == "classic" else "classic"
    find = partial(call, "list_consumer_groups")
    assert find(states=[], types=[])[topic] == ["Stable", kind]
    assert find(states=["Stable"], types=[protocol])[topic] == ["Stable", kind]
    assert topic not in find(states=["Empty"], types=[])
    assert topic not in find(states=[], types=[other])
    if java_admin.release >= (4,):
        find = partial(call, "list_groups")
        assert find(states=["Stable"], types=[protocol])[topic] == ["Stable", kind, "consumer"]
        assert topic not in find(states=["Empty"], types=[])
    member.close()
    until(lambda: call("list_consumer_groups", states=["Empty"], types=[]).get(topic) == ["Empty", kind])


@each_protocol
def test_a_group_is_described(java_admin: JavaAdmin, call: Call, join: Join, topic: str, protocol: str) -> None:
    member = join(protocol, group_instance_id="desk")
    group = call("describe_consumer_group", group=topic)
    everything = [f"{topic}-{number}" for number in range(PARTITIONS)]
    assert (group["state"], group["type"]) == ("Stable", protocol.capitalize())
    assert group["assignor"] == ("range" if protocol == "classic" else "uniform")
    assert (group["simple"], group["coordinator"]) == (False, BROKER_ID)
    target = everything if protocol == "consumer" else None
    (described,) = group["members"]
    assert described == {
        "instance": "desk",
        "client": "reader",
        "host": "/127.0.0.1",
        "partitions": everything,
        "target": target,
    }
    if java_admin.release >= (4,):
        if protocol == "classic":
            group = call("describe_classic_group", group=topic)
            assert (group["state"], group["assignor"], group["protocol"]) == ("Stable", "range", "consumer")
            assert group["members"] == [described]
        with refuses("GroupIdNotFoundException"):
            call("describe_classic_group" if protocol == "consumer" else "describe_consumer_group", group="nowhere")
    member.close()


@each_protocol
def test_a_group_s_offsets_are_listed_altered_and_deleted(
    call: Call, join: Join, broker: TestBroker, topic: str, protocol: str
) -> None:
    member = join(protocol)
    alter = partial(call, "alter_group_offset", group=topic, topic=topic, metadata="by hand")
    delete = partial(call, "delete_group_offset", group=topic, topic=topic)
    listed = call("list_group_offsets", group=topic)
    assert listed == {f"{topic}-{number}": [EACH, 0, ""] for number in range(PARTITIONS)}
    with refuses("UnknownMemberIdException"):
        alter(partition=0, offset=3)
    with refuses("GroupSubscribedToTopicException"):
        delete(partition=0)
    with refuses("GroupNotEmptyException"):
        call("delete_group", group=topic)
    member.close()
    alter(partition=0, offset=3)
    delete(partition=1)
    listed = call("list_group_offsets", group=topic)
    assert (listed[f"{topic}-0"], listed.get(f"{topic}-1")) == ([3, 0, "by hand"], None)
    call("delete_group", group=topic)
    assert topic not in call("list_consumer_groups", states=[], types=[])
    with refuses("GroupIdNotFoundException"):
        call("delete_group", group=topic)


def test_offsets_of_a_group_that_never_had_members_are_kept(call: Call, topic: str, broker: TestBroker) -> None:
    write(broker, "first", PARTITIONS * EACH, topic)
    call("alter_group_offset", group=topic, topic=topic, partition=2, offset=7, metadata="")
    assert call("list_group_offsets", group=topic) == {f"{topic}-2": [7, 0, ""]}
    group = call("describe_consumer_group", group=topic)
    assert (group["state"], group["type"], group["simple"], group["members"]) == ("Empty", "Classic", True, [])
    call("delete_group", group=topic)


@each_protocol
def test_members_are_removed_and_have_to_join_again(call: Call, join: Join, topic: str, protocol: str) -> None:
    heartbeats = {"heartbeat_interval_ms": 100} if protocol == "classic" else {}
    member = join(protocol, group_instance_id="desk", **heartbeats)
    for named in ({"instance": "desk"}, {}):
        member.events.clear()
        call("remove_members", group=topic, **named)
        until(lambda: not member.poll() and "lost" in [event.what for event in member.events])
        until(lambda: member.partitions() == set(range(PARTITIONS)))
    member.close()
