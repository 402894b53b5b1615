"""What 002 says under "Consumer id assignment"."""

import time
from typing import Any
from uuid import UUID

import pytest

from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.crowd import Company, all_of, both_protocols, settle
from tests.broker.consumer_design.line import Line
from tests.broker.group_client import join, of, sync


@pytest.mark.parametrize("version", range(4))
def test_a_member_learns_its_id_from_the_answer_to_its_first_join(line: Line, version: int) -> None:
    answer = line.call(join("g"), version)
    assert (answer.error_code, answer.generation_id) == (0, 1)
    assert line.call(sync("g", answer, {answer.member_id: b""}), 0).error_code == 0
    assert line.heartbeat("g", answer.member_id, 1) is ErrorCode.NONE


@pytest.mark.parametrize("version", range(4, 10))
def test_a_member_of_a_newer_version_learns_its_id_before_it_is_let_in(line: Line, version: int) -> None:
    told = line.call(join("g"), version)
    assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
    answer = line.call(join("g", member_id=told.member_id), version)
    assert (answer.error_code, answer.member_id, answer.generation_id) == (0, told.member_id, 1)


def test_a_member_of_the_consumer_protocol_brings_its_own_id_or_in_version_0_is_given_one(line: Line) -> None:
    first: dict[str, Any] = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    given = line.consumer_heartbeat("g", 0, **first)
    assert (given.error_code, len(given.member_id)) == (0, 22)
    assert line.consumer_heartbeat("g", 1, member_id="my-own", **first).member_id == "my-own"
    assert line.consumer_heartbeat("g", 1, **first).error_code == ErrorCode.INVALID_REQUEST


@both_protocols
def test_heartbeats_and_commits_under_another_id_are_refused(company: Company, line: Line, kind: str) -> None:
    (member,) = company.settled(kind, 1)
    who = of("nobody", member.generation)
    assert line.commit("g", offset=9, version=9, **who) is ErrorCode.UNKNOWN_MEMBER_ID
    if kind == "classic":
        assert line.heartbeat("g", "nobody", member.generation) is ErrorCode.UNKNOWN_MEMBER_ID
    else:
        answer = line.consumer_heartbeat("g", member_id="nobody", member_epoch=member.generation)
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    company.ledger.check(line)


def test_when_all_known_members_have_joined_with_their_ids_the_round_ends_at_once(company: Company) -> None:
    members = company.settled("classic", 2)
    begun = time.monotonic()
    assert settle([*members, company.classic()], all_of(4)) > 0
    assert time.monotonic() - begun < 8, "nobody waits for the ten seconds that sessions and rebalances may take"


def test_a_member_that_joins_without_its_id_has_the_round_wait_for_its_former_self(company: Company) -> None:
    member = company.classic(session_timeout_ms=1000)
    generation = settle([member], all_of(4))
    former, member.member_id = member.member_id, ""
    begun = time.monotonic()
    member.get_id()
    member.begin_join()
    assert member.take_answer() is ErrorCode.NONE
    assert 0.7 < time.monotonic() - begun < 8, "as long as the former self's session lasts"
    assert (member.generation, member.member_id != former) == (generation + 1, True)
    assert member.line.heartbeat("g", former, generation + 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_consumer_that_comes_under_another_id_gets_what_its_former_self_had_when_that_one_is_out(
    company: Company,
) -> None:
    former = company.consumer()
    settle([former], all_of(4))
    former.close()
    member = company.consumer()
    assert member.beat() is ErrorCode.NONE
    assert member.assigned == frozenset(), "nobody has said that it gave anything up"
    settle([member], all_of(4))
    assert former.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_given_id_is_the_client_id_and_a_uuid(line: Line) -> None:
    told = line.call(join("g"), 9)
    name, _, uuid = told.member_id.partition("-")
    assert (name, str(UUID(uuid))) == ("raw", uuid)


@both_protocols
def test_an_id_that_is_none_of_the_groups_is_not_let_in_and_disturbs_nobody(
    company: Company, line: Line, kind: str
) -> None:
    members = company.settled(kind, 2)
    generation = members[0].generation
    if kind == "classic":
        answer = line.call(join("g", member_id="nobody"), 9)
        assert line.state() == "Stable"
    else:
        answer = line.consumer_heartbeat(
            "g", member_id="nobody", member_epoch=generation, subscribed_topic_names=["t"], topic_partitions=[]
        )
        assert line.consumer_described().group_state == "Stable"
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert [member.beat() for member in members] == [ErrorCode.NONE] * 2
    assert members[0].generation == generation
