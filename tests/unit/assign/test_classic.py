"""From the bytes of JoinGroup to those of SyncGroup."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.assign.assignor import Member, Topic
from ottla.assign.classic import (
    assign_members,
    decode_assignment,
    encode_subscription,
    find,
    is_cooperative,
    subscribed_topics,
    subscription_user_data,
)
from ottla.assign.sticky import CooperativeStickyAssignor
from ottla.wire.compile import encode
from ottla.wire.embedded import decode_versioned, encode_versioned, read_prefix
from ottla.wire.embedded.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from ottla.wire.embedded.sticky_user_data import StickyAssignorUserData
from ottla.wire.errors import ProtocolError

from .groups import Assignment

NAMES = ["range", "roundrobin", "sticky", "cooperative-sticky"]
Owned = dict[str, tuple[int, ...]]


class LastComesFirst:
    """Gives everything to the member whose id is the greatest."""

    name = "last-comes-first"

    def __init__(self) -> None:
        self.seen: dict[str, object] = {}

    def assign(
        self, members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int]
    ) -> dict[str, dict[Topic, tuple[int, ...]]]:
        self.seen = dict(members)
        everything = {topic: tuple(range(count)) for topic, count in partition_counts.items()}
        return {member_id: everything if member_id == max(members) else {} for member_id in members}


class Twice(LastComesFirst):
    """Gives everything to everybody."""

    def assign(
        self, members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int]
    ) -> dict[str, dict[Topic, tuple[int, ...]]]:
        everything = {topic: tuple(range(count)) for topic, count in partition_counts.items()}
        return dict.fromkeys(members, everything)


def joining(name: str, owned: Owned, generation: int) -> bytes:
    """What a member of our own sends that read these partitions until now."""
    kept = owned if is_cooperative(name) else {}
    return encode_subscription(["apples"], subscription_user_data(name, owned, generation), kept, generation)


def assigned(assignments: Mapping[str, bytes]) -> Assignment:
    return {member_id: decode_assignment(data) for member_id, data in assignments.items()}


class TestSubscriptions:
    def test_are_written_as_java_writes_them_with_the_parts_that_old_members_know_in_front(self) -> None:
        written = encode_subscription({"b", "a"}, b"u", {"b": (1,), "a": (0, 2)}, 7, "r")
        assert written == bytes.fromhex(
            "0003 00000002 0001 61 0001 62 00000001 75"
            "00000002 0001 61 00000002 00000000 00000002 0001 62 00000001 00000001"
            "00000007 0001 72"
        )

    def test_have_empty_user_data_and_not_null_where_there_are_none(self) -> None:
        assert decode_versioned(ConsumerProtocolSubscription, encode_subscription(["a"])).user_data == b""

    def test_of_all_members_name_the_topics_of_the_group(self) -> None:
        subscriptions = {"a": encode_subscription(["x", "y"]), "b": encode_subscription(["z", "x"])}
        assert subscribed_topics(subscriptions) == ["x", "y", "z"]

    @pytest.mark.parametrize("data", [b"", b"\0", bytes.fromhex("0001 00000001 0001 61 00000000"), b"\xff\xff"])
    def test_that_cannot_be_read_are_an_error_that_names_the_member(self, data: bytes) -> None:
        subscriptions = {"good": encode_subscription(["apples"]), "bad-7": data}
        with pytest.raises(ProtocolError, match="the subscription of member 'bad-7' cannot be read"):
            assign_members("range", subscriptions, {}, {"apples": 1})
        with pytest.raises(ProtocolError, match="bad-7"):
            subscribed_topics(subscriptions)

    @given(data=st.binary(max_size=60))
    def test_of_any_bytes_are_read_or_refused(self, data: bytes) -> None:
        for name in NAMES:
            try:
                assignments = assign_members(name, {"a": data}, {}, {"apples": 3})
            except ProtocolError:
                continue
            assert decode_assignment(assignments["a"]) in ({}, {"apples": (0, 1, 2)})


class TestAssignments:
    @pytest.mark.parametrize("version", [0, 1, 2, 3])
    def test_come_in_the_version_in_which_the_member_speaks(self, version: int) -> None:
        old = encode_versioned(ConsumerProtocolSubscription(topics=["apples"], user_data=None), version)
        written = assign_members("range", {"old": old}, {}, {"apples": 1})["old"]
        assert written == version.to_bytes(2) + bytes.fromhex("00000001 0006 6170706c6573 00000001 00000000 00000000")

    def test_for_a_newer_member_come_in_the_newest_version_known(self) -> None:
        newer = b"\0\x09" + encode_subscription(["apples"], rack_id="r")[2:] + b"what nobody knows yet"
        written = assign_members("range", {"newer": newer}, {}, {"apples": 1})["newer"]
        assert read_prefix(written) == 3
        assert decode_assignment(written) == {"apples": (0,)}

    @pytest.mark.parametrize("name", NAMES)
    def test_leave_topics_out_that_do_not_exist(self, name: str) -> None:
        subscriptions = {"a": encode_subscription(["apples", "nothing"])}
        assert assigned(assign_members(name, subscriptions, {}, {"apples": 2})) == {"a": {"apples": (0, 1)}}

    @pytest.mark.parametrize("name", ["range", "roundrobin"])
    def test_follow_the_names_of_static_members(self, name: str) -> None:
        subscriptions = {"a": encode_subscription(["apples"]), "b": encode_subscription(["apples"])}
        assignments = assigned(assign_members(name, subscriptions, {"a": "two", "b": "one"}, {"apples": 1}))
        assert assignments == {"a": {}, "b": {"apples": (0,)}}

    def test_without_bytes_are_empty(self) -> None:
        assert decode_assignment(b"") == {}

    def test_of_another_leader_are_read_whatever_their_order_and_version(self) -> None:
        assignment = ConsumerProtocolAssignment(
            assigned_partitions=[TopicPartition(topic="b", partitions=[2, 0]), TopicPartition(topic="a")], user_data=b""
        )
        assert decode_assignment(b"\0\x07" + encode(assignment, 3) + b"more") == {"b": (0, 2)}


class TestOwnedPartitions:
    @pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
    def test_stay_where_they_are(self, name: str) -> None:
        owned: Assignment = {"a": {"apples": (1, 4)}, "b": {"apples": (0, 5)}, "c": {"apples": (2, 3)}}
        subscriptions = {member_id: joining(name, owned[member_id], 4) for member_id in owned}
        assert assigned(assign_members(name, subscriptions, {}, {"apples": 6})) == owned

    @pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
    def test_belong_to_the_member_that_got_them_last(self, name: str) -> None:
        subscriptions = {"a": joining(name, {"apples": (0, 1)}, 4), "b": joining(name, {"apples": (0, 1)}, 5)}
        assignments = assigned(assign_members(name, subscriptions, {}, {"apples": 4}))
        assert assignments == {"a": {"apples": (2, 3)}, "b": {"apples": (0, 1)}}

    def test_of_an_eager_member_are_in_its_user_data_and_of_no_account_elsewhere(self) -> None:
        data = encode(StickyAssignorUserData(previous_assignment=[TopicPartition(topic="apples", partitions=[0])]), 0)
        liar = encode_subscription(["apples"], data, {"apples": (1,)}, 9)
        subscriptions = {"a": encode_subscription(["apples"]), "b": liar}
        assignments = assigned(assign_members("sticky", subscriptions, {}, {"apples": 2}))
        assert assignments == {"a": {"apples": (1,)}, "b": {"apples": (0,)}}

    @pytest.mark.parametrize("user_data", ["00000005", "00000000 00000005"], ids=["java", "librdkafka"])
    def test_of_an_older_cooperative_member_are_as_old_as_its_user_data_say(self, user_data: str) -> None:
        claim = ConsumerProtocolSubscription(
            topics=["apples"],
            user_data=bytes.fromhex(user_data),
            owned_partitions=[TopicPartition(topic="apples", partitions=[0, 1])],
        )
        for generation, owner in ((4, "old"), (6, "new")):
            new = joining("cooperative-sticky", {"apples": (0, 1)}, generation)
            subscriptions = {"old": encode_versioned(claim, 1), "new": new}
            assignments = assigned(assign_members("cooperative-sticky", subscriptions, {}, {"apples": 4}))
            assert assignments[owner] == {"apples": (0, 1)}

    def test_move_in_two_steps_under_the_cooperative_assignor(self) -> None:
        name, counts = "cooperative-sticky", {"apples": 4}
        owned: Assignment = {"a": {"apples": (0, 1, 2, 3)}, "b": {}}
        seen = []
        for generation in (1, 2):
            subscriptions = {member_id: joining(name, owned[member_id], generation) for member_id in owned}
            owned = assigned(assign_members(name, subscriptions, {}, counts))
            seen.append(owned)
        assert seen == [{"a": {"apples": (0, 1)}, "b": {}}, {"a": {"apples": (0, 1)}, "b": {"apples": (2, 3)}}]


class TestAssignorsOfOnesOwn:
    def test_share_out(self) -> None:
        own = LastComesFirst()
        subscriptions = {
            "a": encode_subscription(["apples"], owned={"apples": (1,)}, generation=3, rack_id="r"),
            "b": encode_subscription(["apples"]),
        }
        assignments = assigned(assign_members(own, subscriptions, {"a": "one"}, {"apples": 2}))
        assert assignments == {"a": {}, "b": {"apples": (0, 1)}}
        assert own.seen["a"] == Member(frozenset({"apples"}), {"apples": (1,)}, "one", "r", 3)
        assert not is_cooperative(own)
        assert subscription_user_data(own, {"apples": (0,)}, 3) == b""

    def test_are_not_believed_when_a_partition_has_two_owners(self) -> None:
        subscriptions = {"a": encode_subscription(["apples"]), "b": encode_subscription(["apples"])}
        with pytest.raises(
            ValueError, match="'last-comes-first' failed: partition 0 of topic 'apples' went to a and to b"
        ):
            assign_members(Twice(), subscriptions, {}, {"apples": 1})

    def test_do_not_take_the_names_of_kafkas(self) -> None:
        impostor = LastComesFirst()
        impostor.name = "range"
        with pytest.raises(ValueError, match=r"calls itself 'range'.*give it another name"):
            find(impostor)

    def test_have_a_name_and_a_method(self) -> None:
        for wrong in (LastComesFirst, object(), None):
            with pytest.raises(ValueError, match="is no assignor: give an object with a name and a method assign"):
                find(wrong)  # type: ignore[arg-type]

    def test_that_are_kafkas_after_all_are_known_as_such(self) -> None:
        assert find(CooperativeStickyAssignor()) is find("cooperative-sticky")


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=f"'uniform': give {', '.join(NAMES)} or"):
        find("uniform")


def test_only_the_cooperative_assignor_lets_members_read_on() -> None:
    assert [name for name in NAMES if is_cooperative(name)] == ["cooperative-sticky"]
