"""What 002 says under "Co-ordinator failover or connection loss to the co-ordinator"; see test_restart_*.py too."""

from collections.abc import Iterator
from threading import Event

import pytest

from ottla.broker.coordinator_load import Loader
from ottla.record import Record, build_batch
from ottla.testing import TestBroker
from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.crowd import Company, all_of, both_protocols, settle
from tests.broker.consumer_design.line import Line
from tests.broker.group_client import join, of


@pytest.fixture
def may_load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Loading waits for this."""
    allowed = Event()
    replay_piece = Loader._replay_piece

    def when_allowed(loader: Loader) -> None:
        allowed.wait(30)
        replay_piece(loader)

    monkeypatch.setattr(Loader, "_replay_piece", when_allowed)
    yield allowed
    allowed.set()


def test_consumers_fetch_while_their_coordinator_is_not_there(
    broker: TestBroker, company: Company, line: Line, may_load: Event
) -> None:
    (member,) = company.settled("classic", 1)
    batch = build_batch([Record(0, 1, b"key", b"value")])
    line.produce("t", batch)
    broker.stop()
    broker.start()
    again = company.line()
    assert (
        again.commit("g", offset=9, **of(member.member_id, member.generation)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )
    assert b"value" in bytes(again.fetch("t", 0))
    may_load.set()


def test_while_it_loads_heartbeats_are_taken_and_joins_are_to_be_sent_again(
    broker: TestBroker, company: Company, may_load: Event
) -> None:
    (member,) = company.settled("classic", 1)
    broker.stop()
    broker.start()
    line = company.line()
    assert line.heartbeat("g", member.member_id, member.generation) is ErrorCode.NONE
    assert line.call(join("g"), 9).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    newcomer = company.consumer()
    assert newcomer.beat() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    may_load.set()
    assert settle([member], all_of(4)) == 1


@both_protocols
def test_members_that_ask_again_until_it_has_loaded_go_on_as_before(
    broker: TestBroker, company: Company, may_load: Event, kind: str
) -> None:
    members = company.settled(kind, 2)
    generation = members[0].generation
    broker.stop()
    broker.start()
    for member in members * 3:
        member.step()
    may_load.set()
    assert settle(members, all_of(4)) == generation
    company.ledger.check(company.line())
