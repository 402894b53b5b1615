"""A shard: which group a request is for, groups that change their kind, and what becomes of offsets."""

import pytest

from ottla.config.broker import BrokerConfig
from ottla.wire.embedded import encode_key, encode_versioned
from ottla.wire.embedded.offsets_topic import (
    ConsumerGroupMemberMetadataKey,
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.wire.errors import ErrorCode, ProtocolError

from .shard_world import MINUTE_MS, SESSION_MS, WEEK_MS, ShardWorld
from .topics import image_of, topic

EMPTY_SIMPLE = ("Empty", "classic", "")


# Requests for groups that are not there.


def test_members_of_no_group_are_unknown() -> None:
    world = ShardWorld()
    assert world.heartbeat("m", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.sync("m", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join(member_id="m").error is ErrorCode.UNKNOWN_MEMBER_ID
    reply = world.leave("m")
    assert (reply.error_code, [one.error_code for one in reply.members]) == (0, [ErrorCode.UNKNOWN_MEMBER_ID])
    assert world.leave("m", version=1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.listed() == {}


def test_a_group_needs_an_id_to_have_members() -> None:
    world = ShardWorld()
    assert world.join("").error is ErrorCode.INVALID_GROUP_ID
    assert world.sync("m", 1, group="").error is ErrorCode.INVALID_GROUP_ID
    assert world.heartbeat("m", 1, group="") is ErrorCode.INVALID_GROUP_ID
    assert world.leave("m", group="").error_code == ErrorCode.INVALID_GROUP_ID
    assert world.delete_offsets(0, group="") == (ErrorCode.INVALID_GROUP_ID, [])
    assert world.describe_consumer("").error_code == ErrorCode.INVALID_GROUP_ID
    assert world.consumer_heartbeat("m", 0, group="").error_code == ErrorCode.INVALID_REQUEST


def test_offsets_may_be_kept_without_a_group_id_as_the_oldest_consumers_do() -> None:
    world = ShardWorld()
    assert world.commit({0: 5}, group="") == [ErrorCode.NONE]
    assert world.committed("") == {("orders", 0): 5}
    assert world.delete("") == [ErrorCode.NONE]


@pytest.mark.parametrize("epoch", [3, -1])
def test_a_consumer_cannot_go_on_in_or_leave_a_group_that_is_not_there(epoch: int) -> None:
    world = ShardWorld()
    assert world.consumer_heartbeat("m", epoch).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.listed() == {}


def test_a_consumer_whose_group_has_become_classic_without_it_is_told_to_join_again() -> None:
    world = ShardWorld()
    world.member(session_ms=10 * MINUTE_MS)
    epoch = world.consumer_heartbeat("m", 0).member_epoch
    # The consumer is silent for longer than its session lasts, which is 45 seconds.
    world.pass_time(50_000)
    assert world.listed()["g"][1] == "classic"
    assert world.consumer_heartbeat("m", epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.consumer_heartbeat("m", 0).error_code == ErrorCode.NONE


def test_a_join_that_is_refused_leaves_no_group_behind() -> None:
    world = ShardWorld()
    assert world.join(session_ms=1).error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert world.listed() == {}
    assert world.consumer_heartbeat("m", -7).error_code == ErrorCode.INVALID_REQUEST
    assert world.listed() == {}


def test_a_member_that_was_told_its_id_finds_its_group_again() -> None:
    world = ShardWorld()
    told = world.join(version=9)
    assert told.error is ErrorCode.MEMBER_ID_REQUIRED
    assert world.join(member_id=told.reply.member_id, version=9).error is ErrorCode.NONE


# Simple consumers.


def test_the_first_commit_of_a_simple_consumer_makes_an_empty_group() -> None:
    world = ShardWorld()
    assert world.commit({0: 5, 3: 7}) == [ErrorCode.NONE, ErrorCode.NONE]
    for _ in range(2):
        assert world.listed() == {"g": EMPTY_SIMPLE}
        assert world.describe("g").group_state == "Empty"
        assert world.committed() == {("orders", 0): 5, ("orders", 3): 7}
        world.restart()


def test_a_commit_that_is_refused_makes_no_group() -> None:
    world = ShardWorld()
    assert world.commit({9: 5}) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert world.commit({0: 5}, epoch=2, member_id="m") == [ErrorCode.GROUP_ID_NOT_FOUND]
    assert world.commit({0: 5}, epoch=2, member_id="m", version=8) == [ErrorCode.ILLEGAL_GENERATION]
    assert world.listed() == {}


def test_a_simple_consumer_cannot_commit_while_a_group_of_that_name_has_members() -> None:
    world = ShardWorld()
    member_id, generation = world.member()
    assert world.commit({0: 5}) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert world.commit({0: 5}, member_id=member_id, epoch=generation) == [ErrorCode.NONE]
    assert world.commit({0: 6}, member_id=member_id, epoch=generation + 1) == [ErrorCode.ILLEGAL_GENERATION]
    world.leave(member_id)
    assert world.commit({0: 4}) == [ErrorCode.NONE]
    assert world.committed() == {("orders", 0): 4}


def test_a_consumer_of_an_older_epoch_cannot_commit_or_fetch() -> None:
    world = ShardWorld()
    epoch = world.consumer_heartbeat("m", 0).member_epoch
    assert world.commit({0: 5}, member_id="m", epoch=epoch) == [ErrorCode.NONE]
    assert world.commit({0: 5}, member_id="m", epoch=epoch + 5) == [ErrorCode.STALE_MEMBER_EPOCH]
    assert world.commit({0: 5}, member_id="other", epoch=epoch) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert world.committed() == {("orders", 0): 5}


# Groups that change their kind.


def test_an_empty_classic_group_gives_way_to_a_consumer_group_and_its_offsets_stay() -> None:
    world = ShardWorld()
    member_id, _ = world.member()
    world.leave(member_id)
    world.commit({0: 5})
    assert world.consumer_heartbeat("m", 0).error_code == 0
    for _ in range(2):
        assert world.listed()["g"][1] == "consumer"
        assert world.committed() == {("orders", 0): 5}
        world.restart()
    world.pass_time(10 * MINUTE_MS)
    assert world.listed() == {"g": ("Empty", "consumer", "consumer")}


def test_an_empty_consumer_group_gives_way_to_a_classic_one_and_its_offsets_stay() -> None:
    world = ShardWorld()
    epoch = world.consumer_heartbeat("m", 0).member_epoch
    world.commit({0: 5}, member_id="m", epoch=epoch)
    assert world.consumer_heartbeat("m", -1).error_code == 0
    assert world.listed() == {"g": ("Empty", "consumer", "consumer")}
    world.member()
    for _ in range(2):
        assert world.listed() == {"g": ("Stable", "classic", "consumer")}
        assert world.committed() == {("orders", 0): 5}
        world.restart()


def test_a_join_that_is_refused_does_not_cost_an_empty_consumer_group_its_life() -> None:
    world = ShardWorld()
    world.consumer_heartbeat("m", 0)
    world.consumer_heartbeat("m", -1)
    assert world.join(session_ms=1).error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert world.listed() == {"g": ("Empty", "consumer", "consumer")}


def test_a_heartbeat_that_is_refused_does_not_cost_a_classic_group_its_members() -> None:
    world = ShardWorld()
    member_id, generation = world.member()
    assert world.consumer_heartbeat("", 0).error_code == ErrorCode.INVALID_REQUEST
    assert world.heartbeat(member_id, generation) is ErrorCode.NONE


def test_a_classic_group_becomes_a_consumer_group_while_it_runs_and_back_again() -> None:
    world = ShardWorld()
    member_id, generation = world.member()
    world.commit({0: 5}, member_id=member_id, epoch=generation)
    assert world.consumer_heartbeat("m", 0).error_code == 0
    assert world.listed()["g"][1] == "consumer"
    assert {one.member_id for one in world.describe_consumer("g").members} == {member_id, "m"}
    assert world.committed() == {("orders", 0): 5}
    # The classic member is watched over in its new group: it is silent, and its session ends.
    world.pass_time(SESSION_MS // 2)
    world.consumer_heartbeat("m", 0)
    world.pass_time(SESSION_MS)
    assert {one.member_id for one in world.describe_consumer("g").members} == {"m"}


def test_a_consumer_group_becomes_classic_again_when_only_classic_members_are_left() -> None:
    world = ShardWorld()
    member_id, generation = world.member()
    world.consumer_heartbeat("m", 0)
    world.commit({0: 5}, member_id=member_id, epoch=generation)
    assert world.consumer_heartbeat("m", -1).error_code == 0
    assert world.listed()["g"][1] == "classic"
    world.pass_time(1)
    # It is to join again, and is still watched over.
    again = world.join(member_id=member_id)
    assert again.error is ErrorCode.NONE
    assert world.sync(member_id, again.reply.generation_id, {member_id: b""}).error is ErrorCode.NONE
    assert world.listed() == {"g": ("Stable", "classic", "consumer")}
    world.pass_time(SESSION_MS + 1)
    assert world.listed() == {"g": ("Empty", "classic", "consumer")}


def test_a_silent_member_that_came_along_into_a_classic_group_is_not_kept_for_ever() -> None:
    world = ShardWorld()
    member_id, generation = world.member()
    assert world.commit({0: 5}, member_id=member_id, epoch=generation) == [ErrorCode.NONE]
    world.consumer_heartbeat("m", 0)
    world.consumer_heartbeat("m", -1)
    assert world.listed()["g"][1] == "classic"
    world.pass_time(2 * MINUTE_MS)
    assert world.listed() == {"g": ("Empty", "classic", "consumer")}
    assert world.committed() == {("orders", 0): 5}


def test_those_who_wait_in_a_group_that_changes_its_kind_are_told_to_join_again() -> None:
    world = ShardWorld()
    world.member()
    waiting = world.join()
    assert waiting.is_waiting
    assert world.consumer_heartbeat("m", 0).error_code == 0
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert not world.waiting


@pytest.mark.parametrize(
    ("settings", "protocol_type"),
    [({"group_consumer_migration_policy": "disabled"}, "consumer"), ({}, "connect")],
)
def test_a_classic_group_stays_one_where_it_may_not_change(settings: dict[str, str], protocol_type: str) -> None:
    world = ShardWorld(**settings)
    member_id, generation = world.member(protocol_type=protocol_type)
    assert world.consumer_heartbeat("m", 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.heartbeat(member_id, generation) is ErrorCode.NONE


def test_the_consumer_protocol_is_refused_where_it_is_not_on_offer() -> None:
    world = ShardWorld(group_coordinator_rebalance_protocols="classic")
    reply = world.consumer_heartbeat("m", 0)
    assert reply.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "group.coordinator.rebalance.protocols" in reply.error_message
    assert world.listed() == {}


# Administration.


def test_groups_are_described_by_the_request_for_their_kind() -> None:
    world = ShardWorld()
    world.member("old")
    world.consumer_heartbeat("m", 0, group="new")
    assert world.describe("old").group_state == "Stable"
    assert world.describe_consumer("new").error_code == 0
    for wrong in ("new", "nobody"):
        described = world.describe(wrong)
        assert (described.group_state, described.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
        assert described.error_message
        older = world.describe(wrong, version=5)
        assert (older.group_state, older.error_code) == ("Dead", 0)
    for wrong in ("old", "nobody"):
        answer = world.describe_consumer(wrong)
        assert (answer.group_id, answer.error_code) == (wrong, ErrorCode.GROUP_ID_NOT_FOUND)


def test_groups_are_listed_by_state_and_type_in_any_case() -> None:
    world = ShardWorld()
    world.member("old")
    world.commit({0: 1}, group="simple")
    world.consumer_heartbeat("m", 0, group="new")
    assert set(world.listed()) == {"old", "simple", "new"}
    assert set(world.listed(states=("stable",), types=("CLASSIC",))) == {"old"}
    assert set(world.listed(states=("Empty", "Stable"))) >= {"old", "simple"}
    assert set(world.listed(types=("consumer",))) == {"new"}
    assert world.listed(types=("share",)) == {}


def test_only_groups_without_members_are_deleted_and_their_offsets_with_them() -> None:
    world = ShardWorld()
    world.commit({0: 1, 1: 2}, group="simple")
    member_id, generation = world.member("old")
    epoch = world.consumer_heartbeat("m", 0, group="new").member_epoch
    world.commit({0: 3}, group="new", member_id="m", epoch=epoch)
    world.consumer_heartbeat("m", -1, group="new")
    assert world.delete("simple", "old", "nobody", "new") == [
        ErrorCode.NONE,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.NONE,
    ]
    for _ in range(2):
        assert set(world.listed()) == {"old"}
        assert world.committed("simple") == world.committed("new") == {}
        world.restart()
    assert world.heartbeat(member_id, generation, "old") is ErrorCode.NONE


def test_offsets_are_deleted_only_where_nobody_can_be_reading() -> None:
    world = ShardWorld()
    member_id, generation = world.member(topics=("orders",))
    for name in ("orders", "bills"):
        world.commit({0: 1}, name=name, member_id=member_id, epoch=generation)
    assert world.delete_offsets(0, name="orders") == (ErrorCode.NONE, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC])
    assert world.delete_offsets(0, name="bills") == (ErrorCode.NONE, [ErrorCode.NONE])
    assert world.committed() == {("orders", 0): 1}
    assert world.delete_offsets(0, group="nobody") == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    worker, _ = world.member("workers", protocol_type="connect")
    assert world.delete_offsets(0, group="workers") == (ErrorCode.NON_EMPTY_GROUP, [])
    world.leave(worker, "workers")
    assert world.delete_offsets(0, group="workers") == (ErrorCode.NONE, [ErrorCode.NONE])


# Topics that come and go.


def test_offsets_go_with_their_topic() -> None:
    world = ShardWorld()
    world.commit({0: 5})
    world.commit({0: 6}, name="bills")
    world.see(image_of(topic("bills", number=2)))
    world.see(image_of(topic("bills", number=2), topic("orders", 4, number=1)))
    assert world.committed() == {("bills", 0): 6}
    world.restart()
    assert world.committed() == {("bills", 0): 6}


def test_a_topic_that_is_deleted_and_created_in_one_moment_starts_without_offsets() -> None:
    world = ShardWorld()
    # A retention time makes for a record that does not say which topic it is for.
    world.commit({0: 5}, version=3, retention_ms=WEEK_MS)
    world.commit({1: 6})
    world.see(image_of(topic("bills", number=2), topic("orders", 4, number=77)))
    assert world.committed() == {}


def test_offsets_of_topics_that_went_while_the_coordinator_was_away_are_removed_when_it_is_back() -> None:
    world = ShardWorld()
    world.commit({0: 5})
    world.commit({1: 6}, version=3, retention_ms=WEEK_MS)
    world.commit({0: 7}, name="bills")
    world.image = image_of(topic("orders", 4, number=77))
    world.restart()
    # Of the second one nothing says that it was for another topic.
    assert world.committed() == {("orders", 1): 6}


def test_a_topic_that_grows_keeps_its_offsets_and_its_readers_get_the_new_partitions() -> None:
    world = ShardWorld()
    epoch = world.consumer_heartbeat("m", 0).member_epoch
    world.commit({0: 5}, member_id="m", epoch=epoch)
    world.see(image_of(topic("bills", number=2), topic("orders", 6, number=1)))
    reply = world.consumer_heartbeat("m", epoch)
    assert reply.member_epoch > epoch
    assert sorted(reply.assignment.topic_partitions[0].partitions) == [0, 1, 2, 3, 4, 5]
    assert world.committed() == {("orders", 0): 5}


# Time.


def test_offsets_of_a_simple_consumer_are_kept_for_a_week_after_the_commit() -> None:
    world = ShardWorld()
    world.commit({0: 5})
    world.pass_time(WEEK_MS // 2)
    world.commit({1: 6})
    world.pass_time(WEEK_MS // 2 + 10 * MINUTE_MS)
    assert world.committed() == {("orders", 1): 6}
    world.pass_time(WEEK_MS)
    assert world.listed() == {}
    world.restart()
    assert world.listed() == {}


def test_offsets_of_a_group_are_kept_for_a_week_after_the_last_member_went() -> None:
    world = ShardWorld(group_max_session_timeout_ms=2 * WEEK_MS)
    member_id, generation = world.member(session_ms=2 * WEEK_MS)
    world.commit({0: 5}, member_id=member_id, epoch=generation)
    world.pass_time(WEEK_MS - MINUTE_MS)
    world.leave(member_id)
    world.restart()
    world.pass_time(WEEK_MS - 10 * MINUTE_MS)
    assert world.committed() == {("orders", 0): 5}
    world.pass_time(20 * MINUTE_MS)
    assert world.listed() == {}


def test_an_offset_that_is_set_by_hand_in_an_empty_group_has_a_week_of_its_own() -> None:
    world = ShardWorld()
    member_id, generation = world.member()
    world.commit({0: 5}, member_id=member_id, epoch=generation)
    world.leave(member_id)
    world.pass_time(WEEK_MS // 2)
    world.commit({1: 6})
    world.pass_time(WEEK_MS // 2 + 10 * MINUTE_MS)
    assert world.committed() == {("orders", 1): 6}


def test_what_members_read_does_not_expire_and_what_nobody_reads_any_more_does() -> None:
    world = ShardWorld(group_max_session_timeout_ms=2 * WEEK_MS)
    member_id, generation = world.member(topics=("orders",), session_ms=2 * WEEK_MS)
    world.commit({0: 5}, member_id=member_id, epoch=generation)
    world.commit({0: 6}, name="bills", member_id=member_id, epoch=generation)
    world.pass_time(WEEK_MS + 10 * MINUTE_MS)
    assert world.committed() == {("orders", 0): 5}


def test_offsets_of_other_protocol_types_do_not_expire_while_there_are_members() -> None:
    world = ShardWorld(group_max_session_timeout_ms=2 * WEEK_MS)
    member_id, generation = world.member(protocol_type="connect", session_ms=2 * WEEK_MS)
    world.commit({0: 5}, member_id=member_id, epoch=generation)
    world.pass_time(WEEK_MS + 10 * MINUTE_MS)
    assert world.committed() == {("orders", 0): 5}


def test_an_offset_with_its_own_retention_expires_by_that() -> None:
    world = ShardWorld()
    world.commit({0: 5}, version=2, retention_ms=30 * MINUTE_MS)
    world.commit({1: 6}, version=2, retention_ms=2 * WEEK_MS)
    world.pass_time(20 * MINUTE_MS)
    assert len(world.committed()) == 2
    world.pass_time(20 * MINUTE_MS)
    assert world.committed() == {("orders", 1): 6}
    world.pass_time(WEEK_MS)
    assert world.committed() == {("orders", 1): 6}


def test_an_empty_group_without_offsets_is_removed() -> None:
    world = ShardWorld()
    member_id, _ = world.member()
    world.leave(member_id)
    assert world.listed()["g"][0] == "Empty"
    world.pass_time(10 * MINUTE_MS)
    assert world.listed() == {}
    world.restart()
    assert world.listed() == {}


def test_settings_take_effect_when_they_change() -> None:
    world = ShardWorld()
    world.commit({0: 5})
    world.subject.config_changed(BrokerConfig({"offsets.retention.minutes": "1", "offset.metadata.max.bytes": "0"}))
    world.pass_time(10 * MINUTE_MS)
    assert world.listed() == {}


def test_members_whose_sessions_end_at_the_same_moment_all_go() -> None:
    world = ShardWorld()
    for member in ("a", "b", "c"):
        assert world.consumer_heartbeat(member, 0).error_code == 0
        assert world.consumer_heartbeat(member, 0, group="h").error_code == 0
    world.pass_time(45_000)
    assert world.listed() == {"g": ("Empty", "consumer", "consumer"), "h": ("Empty", "consumer", "consumer")}


# The log.


def test_records_of_an_unknown_kind_are_passed_over_and_counted() -> None:
    world = ShardWorld()
    world.subject.replay(b"\x00\x0a\x00\x01g", b"whatever")
    world.subject.replay(b"\x00\x0a\x00\x01h", None)
    assert world.subject.skipped == {10: 2}
    assert world.listed() == {}


def test_malformed_records_are_refused_and_change_nothing() -> None:
    world = ShardWorld()
    with pytest.raises(ProtocolError):
        world.subject.replay(encode_key(GroupMetadataKey(group="g")), b"\x00\x63")
    with pytest.raises(ProtocolError):
        world.subject.replay(b"", b"")
    assert world.listed() == {}


def test_the_oldest_offset_records_are_read() -> None:
    world = ShardWorld()
    key = LegacyOffsetCommitKey(group="g", topic="orders", partition=2)
    value = LegacyOffsetCommitValue(offset=9, commit_timestamp=1)
    world.subject.replay(encode_key(key), encode_versioned(value, 0))
    assert world.committed() == {("orders", 2): 9}
    newer = OffsetCommitKey(group="g", topic="orders", partition=2)
    world.subject.replay(encode_key(newer), encode_versioned(OffsetCommitValue(offset=10), 3))
    assert world.committed() == {("orders", 2): 10}


def test_tombstones_that_outlived_what_they_removed_do_no_harm() -> None:
    world = ShardWorld()
    for key in (
        OffsetCommitKey(group="g", topic="orders", partition=0),
        GroupMetadataKey(group="g"),
        ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
    ):
        world.subject.replay(encode_key(key), None)
    assert world.listed() == {}
