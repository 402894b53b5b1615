import asyncio
import logging
from mmap import mmap
from random import Random

import pytest

from ottla.net.serving import ServerConnection

from .door import MOST_GROWTH_BYTES, Door, opened, resident_bytes, run_door
from .door_words import ATTACKS, MECHANISMS, people, quick_client


def test_strangers_do_not_get_in_whatever_they_say_and_friends_still_do() -> None:
    outcome = run_door(3000, seed=20)
    assert outcome.findings == []
    total = outcome.taken.total() + outcome.refused.total()
    assert total == 3000
    assert outcome.refused.total() > 0.8 * total, "hardly anybody was sent away, so hardly anything was hostile"
    assert len({*outcome.taken, *outcome.refused}) >= len(ATTACKS)


def test_strangers_at_real_sockets_find_no_way_in_either() -> None:
    outcome = run_door(120, seed=21, socket_one_in=1)
    assert outcome.findings == []
    seen = outcome.taken + outcome.refused
    assert set(seen) == {"sockets: SSL", "sockets: SASL_SSL", "sockets: SASL_PLAINTEXT"}


# What watches the door is watched here.


def test_every_attack_reaches_what_is_behind_the_first_message() -> None:
    """With the right secret some get in under each attack, so that with a wrong one it is the secret that counts."""

    async def story() -> None:
        friend, _ = people()
        async with opened() as door:
            for attack in ATTACKS:
                random = Random(4)
                got_in = 0
                for _ in range(60):
                    principal, _ = await door.visit(random, attack(random, "SCRAM-SHA-256", friend))
                    got_in += principal == "User:alice"
                assert got_in, f"nobody could have got in under {attack.__name__}"

    with quick_client:
        asyncio.run(story())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_gate_that_lets_everybody_through_is_found(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.broker import authentication

    def open_gate(self: authentication.Authenticator, caller: ServerConnection, frame: bytes) -> object:
        return self.handler(caller, frame)

    monkeypatch.setattr(authentication.Authenticator, "handle", open_gate)
    assert "was reached without a login" in _seen_after_a_visit(mechanism)


def test_a_secret_in_the_log_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> list[str]:
        async with opened() as door:
            logging.getLogger("ottla.broker").debug("the password is %s", people()[0].password)
            logging.getLogger("ottla.net").error("something broke")
            return door.eyes.seen

    seen = asyncio.run(story())
    assert len(seen) == 2
    assert "a secret" in seen[0]


def test_growth_is_measured() -> None:
    before = resident_bytes()
    # Pages of its own: what other tests have freed might be used again.
    with mmap(-1, 2 * MOST_GROWTH_BYTES) as held:
        held.write(bytes(range(256)) * (MOST_GROWTH_BYTES // 128))
        assert resident_bytes() - before > MOST_GROWTH_BYTES


def _seen_after_a_visit(mechanism: str) -> str:
    async def story(door: Door) -> None:
        random = Random(1)
        friend, _ = people()
        for _ in range(20):
            await door.visit(random, ATTACKS[4](random, mechanism, friend))

    async def run() -> list[str]:
        async with opened() as door:
            await story(door)
            return door.eyes.seen

    with quick_client:
        return "\n".join(asyncio.run(run()))
