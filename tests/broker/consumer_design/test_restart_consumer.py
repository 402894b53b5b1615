"""A coordinator killed in each of the phases of a rebalance: groups of the consumer protocol go on.

There is no round that all wait for. The phases are: something has happened; the epoch has risen; some members have
given up what they were to give up; it is decided who gets what; some members have been told.
"""

import shutil
from pathlib import Path

import pytest

from ottla.broker.coordinator import shard_index
from ottla.cluster.names import OFFSETS_TOPIC
from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.consumer_member import ConsumerMember
from tests.broker.consumer_design.crowd import Company, all_of, go_on, settle
from tests.crash.run import Process
from tests.waiting import until

pytestmark = pytest.mark.slow


def two(company: Company, partitions: int = 4) -> list[ConsumerMember]:
    """Two members that share so many partitions, each with something committed."""
    if partitions > 4:
        assert company.line().grow("t", partitions) is ErrorCode.NONE
    members = [company.consumer(), company.consumer()]
    settle(members, all_of(partitions))
    assert len(company.ledger.offsets) == partitions
    return members


def restart(process: Process, *unanswered: ConsumerMember) -> None:
    """Kill the broker and start it on the same data. Whoever waited for an answer never gets it."""
    process.kill()
    for member in unanswered:
        member.lose_connection()
    process.start()


def check_calm(company: Company, members: list[ConsumerMember], partitions: int, epoch: int) -> None:
    """Members share the partitions in an epoch after this one, nobody was thrown out, no commit is lost."""
    assert settle(members, all_of(partitions)) > epoch
    thrown_out = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}
    assert not any(thrown_out.intersection(member.heard) for member in members)
    line = company.line()
    until(lambda: line.consumer_described().group_state == "Stable")
    company.ledger.check(line)


def test_phase_1_a_topic_has_grown_and_nobody_was_told(process: Process, survivors: Company) -> None:
    members = two(survivors)
    epoch = members[0].generation
    assert survivors.line().grow("t", 6) is ErrorCode.NONE
    restart(process)
    check_calm(survivors, members, 6, epoch)


def test_phase_1_a_topic_has_grown_and_the_coordinator_had_not_written_that_down(
    process: Process, survivors: Company, tmp_path: Path
) -> None:
    members = two(survivors)
    epoch = members[0].generation
    groups, before = tmp_path / f"{OFFSETS_TOPIC}-{shard_index('g', 50)}", tmp_path.with_name(f"{tmp_path.name}-before")
    process.kill()
    shutil.copytree(groups, before)
    process.start()
    line = survivors.line()
    assert line.consumer_described().group_epoch == epoch
    assert line.grow("t", 6) is ErrorCode.NONE
    process.kill()
    # As if it had been killed after the topic was in the catalog, and before the group's next record was.
    shutil.rmtree(groups)
    before.rename(groups)
    process.start()
    assert survivors.line().consumer_described().group_epoch == epoch + 1, "it saw by itself what it had missed"
    check_calm(survivors, members, 6, epoch)


def test_phase_1_a_member_has_died_and_nobody_was_told(process: Process, survivors: Company) -> None:
    members = two(survivors)
    dead = survivors.consumer()
    epoch = settle([*members, dead], all_of(4))
    dead.close()
    restart(process)
    check_calm(survivors, members, 4, epoch)


def test_phase_2_some_were_told_to_give_up_partitions(process: Process, survivors: Company) -> None:
    members = told, untold = two(survivors, 6)
    epoch = told.generation
    newcomer = survivors.consumer()
    assert newcomer.beat() is ErrorCode.NONE
    assert told.beat() is ErrorCode.NONE
    assert (len(told.assigned), told.generation, len(untold.assigned)) == (2, epoch, 3), "told, and not done with it"
    restart(process)
    check_calm(survivors, [*members, newcomer], 6, epoch)


def test_phase_2_a_member_that_was_thought_dead_joins_again(process: Process, survivors: Company) -> None:
    members = alive, slow = two(survivors)
    epoch = alive.generation
    line = survivors.line()
    # Its session has ended, and nobody was told.
    go_on([alive], lambda: len(line.consumer_described().members) == 1)
    restart(process)
    slow.step()
    until(lambda: slow.beat() is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert slow.heard[-1] is ErrorCode.UNKNOWN_MEMBER_ID, "that it is out was written down"
    assert settle(members, all_of(4)) > epoch
    survivors.ledger.check(survivors.line())


def test_phase_3_some_have_given_up_partitions(process: Process, survivors: Company) -> None:
    members = done, other = two(survivors, 6)
    epoch = done.generation
    newcomer = survivors.consumer()
    assert newcomer.beat() is ErrorCode.NONE
    # The first heartbeat tells it to give up, the second says that it did.
    go_on([done], lambda: done.generation > epoch)
    assert (len(done.assigned), len(other.assigned), len(newcomer.assigned)) == (2, 3, 0)
    restart(process)
    check_calm(survivors, [*members, newcomer], 6, epoch)


def test_phase_4_it_is_decided_and_nobody_has_heard_of_it(process: Process, survivors: Company) -> None:
    members = two(survivors)
    epoch = members[0].generation
    newcomer = survivors.consumer()
    newcomer.begin_beat()
    line = survivors.line()
    until(lambda: line.consumer_described().assignment_epoch > epoch)
    restart(process, newcomer)
    described = survivors.line().consumer_described()
    assert (described.assignment_epoch, len(described.members)) == (epoch + 1, 3), "what was decided is not forgotten"
    check_calm(survivors, [*members, newcomer], 4, epoch)


def test_phase_5_some_were_told_what_they_get_and_others_were_not(process: Process, survivors: Company) -> None:
    members = two(survivors)
    leaving = survivors.consumer()
    epoch = settle([*members, leaving], all_of(4))
    leaving.leave()
    told, untold = members
    assert told.beat() is ErrorCode.NONE
    assert told.generation > epoch
    untold.begin_beat()
    line = survivors.line()
    until(lambda: all(member.member_epoch > epoch for member in line.consumer_described().members))
    restart(process, untold)
    # It comes with the epoch of before, and that is fine: it has nothing that it was not given.
    check_calm(survivors, members, 4, epoch)
