"""Users: what is kept of them, and what a stranger can find out."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.broker.users import Passwords, Users
from ottla.cluster.credential import ScramCredential, ScramMechanism
from ottla.meta.memory import open_memory
from ottla.net.sasl.scram import make_credential, matches
from ottla.ports import SystemChance

HOST = "10.0.0.7"
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


async def add(users: Users, name: str, password: str, mechanism: ScramMechanism = SHA_256) -> None:
    credential = make_credential(mechanism, password, b"0123456789abcdef", 4096)
    await users.alter(name, lambda before: {**before, mechanism: credential})


def run(story: Callable[[Users, Passwords], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        users = Users(open_memory().connect(), SystemChance())
        await users.load()
        passwords = Passwords(users, SystemChance())
        try:
            await story(users, passwords)
        finally:
            passwords.close()

    asyncio.run(main())


def test_users_are_there_again_after_a_restart() -> None:
    async def main() -> None:
        home = open_memory()
        users = Users(home.connect(), SystemChance())
        await users.load()
        await add(users, "a/b", "one")
        await add(users, "..", "two", SHA_512)
        await users.alter("..", lambda before: {})
        again = Users(home.connect(), SystemChance())
        await again.load()
        assert again.names == ["a/b"]
        assert again.credential(SHA_256, "a/b") == users.credential(SHA_256, "a/b")
        # What is made up is the same as well: otherwise it could be told by waiting for a restart.
        assert again.credential(SHA_256, "nobody") == users.credential(SHA_256, "nobody")

    asyncio.run(main())


def test_a_user_who_does_not_exist_looks_like_any_other() -> None:
    async def story(users: Users, passwords: Passwords) -> None:
        await add(users, "alice", "wonder")
        real, made_up = users.credential(SHA_256, "alice"), users.credential(SHA_256, "nobody")
        assert (len(made_up.salt), made_up.iterations) == (len(real.salt), real.iterations)
        assert len(made_up.stored_key) == len(real.stored_key)
        assert users.credential(SHA_256, "somebody").salt != made_up.salt
        assert users.credential(SHA_512, "nobody").salt != made_up.salt
        assert users.names == ["alice"]

    run(story)


def test_made_up_users_have_salts_and_iterations_like_those_of_users() -> None:
    async def story(users: Users, passwords: Passwords) -> None:
        shapes = {(26, 4096), (64, 8192)}
        for number, (salt_bytes, iterations) in enumerate(sorted(shapes)):
            credential = make_credential(SHA_256, "wonder", bytes(salt_bytes), iterations)
            await users.alter(f"user {number}", lambda before, one=credential: {SHA_256: one})  # type: ignore[misc]
        made_up = [users.credential(SHA_256, f"nobody {number}") for number in range(50)]
        assert {(len(one.salt), one.iterations) for one in made_up} == shapes
        assert len({one.salt[:16] for one in made_up}) == 50

    run(story)


def test_passwords_are_those_of_credentials_or_of_settings() -> None:
    async def story(users: Users, passwords: Passwords) -> None:
        given = {"bob": "builder"}
        await add(users, "alice", "wonder", SHA_512)
        for _ in range(2):
            assert await passwords.check("alice", "wonder", given, HOST)
            assert await passwords.check("bob", "builder", given, HOST)
            assert not await passwords.check("alice", "builder", given, HOST)
            assert not await passwords.check("bob", "wonder", given, HOST)
            assert not await passwords.check("nobody", "", given, HOST)
            assert not await passwords.check("nobody", "wonder", given, HOST)

    run(story)


def test_a_changed_password_and_a_deleted_user_count_at_once() -> None:
    async def story(users: Users, passwords: Passwords) -> None:
        await add(users, "alice", "wonder")
        assert await passwords.check("alice", "wonder", {}, HOST)
        await add(users, "alice", "other")
        assert not await passwords.check("alice", "wonder", {}, HOST)
        assert await passwords.check("alice", "other", {}, HOST)
        await users.alter("alice", lambda before: {})
        assert not await passwords.check("alice", "other", {}, HOST)

    run(story)


def test_a_password_that_one_listener_gives_is_not_good_at_another() -> None:
    async def story(users: Users, passwords: Passwords) -> None:
        one, two, none = {"carol": "first"}, {"carol": "second"}, dict[str, str]()
        assert await passwords.check("carol", "first", one, HOST)
        assert not await passwords.check("carol", "first", two, HOST)
        assert not await passwords.check("carol", "first", none, HOST)
        assert await passwords.check("carol", "second", two, HOST)
        assert not await passwords.check("carol", "second", one, HOST)

    run(story)


def test_whoever_was_right_before_does_not_wait_behind_those_who_guess() -> None:
    async def story(users: Users, passwords: Passwords) -> None:
        await add(users, "alice", "wonder")
        assert await passwords.check("alice", "wonder", {}, HOST)
        guesses = [asyncio.ensure_future(passwords.check("alice", f"guess {n}", {}, HOST)) for n in range(50)]
        await asyncio.sleep(0)
        assert await passwords.check("alice", "wonder", {}, HOST)
        assert not any(guess.done() for guess in guesses[1:])
        assert not any(await asyncio.gather(*guesses))

    run(story)


def test_a_first_login_waits_for_one_guess_of_a_crowd_from_elsewhere_and_not_for_all() -> None:
    async def story(users: Users, passwords: Passwords) -> None:
        await add(users, "alice", "wonder")
        guesses = [asyncio.ensure_future(passwords.check("alice", f"guess {n}", {}, "10.6.6.6")) for n in range(50)]
        await asyncio.sleep(0)
        assert await passwords.check("alice", "wonder", {}, HOST)
        assert sum(guess.done() for guess in guesses) <= 2
        assert not any(await asyncio.gather(*guesses))

    run(story)


def test_whoever_is_deleted_while_he_waits_does_not_get_in() -> None:
    async def story(users: Users, passwords: Passwords) -> None:
        await add(users, "alice", "wonder")
        await add(users, "bob", "builder")
        guess, deleted, kept = (
            asyncio.ensure_future(passwords.check(user, password, {}, HOST))
            for user, password in (("alice", "guess"), ("alice", "wonder"), ("bob", "builder"))
        )
        await asyncio.sleep(0)
        await users.alter("alice", lambda before: {})
        assert not deleted.done()
        assert not await guess
        assert not await deleted
        assert await kept

    run(story)


def test_one_check_serves_all_who_wait_with_the_same_right_password(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []

    def counted(credential: ScramCredential, password: str) -> bool:
        checked.append(password)
        return matches(credential, password)

    monkeypatch.setattr("ottla.broker.users.matches", counted)

    async def story(users: Users, passwords: Passwords) -> None:
        await add(users, "alice", "wonder")
        said = ["wonder"] * 100 + ["guess"] * 2 + ["wonder"] * 50
        answers = await asyncio.gather(*[passwords.check("alice", password, {}, HOST) for password in said])
        assert answers == [password == "wonder" for password in said]
        assert sorted(checked) == ["guess", "guess", "wonder"]

    run(story)


@pytest.mark.parametrize("change", ["deleted", "changed"])
def test_whoever_is_deleted_or_gets_another_password_during_the_check_does_not_get_in(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checking, go_on = threading.Event(), threading.Event()

    def slow(credential: ScramCredential, password: str) -> bool:
        checking.set()
        assert go_on.wait(30)
        return matches(credential, password)

    monkeypatch.setattr("ottla.broker.users.matches", slow)

    async def story(users: Users, passwords: Passwords) -> None:
        await add(users, "alice", "wonder")
        waiting = [asyncio.ensure_future(passwords.check("alice", "wonder", {}, HOST)) for _ in range(2)]
        assert await asyncio.to_thread(checking.wait, 30)
        if change == "deleted":
            await users.alter("alice", lambda before: {})
        else:
            await add(users, "alice", "other")
        go_on.set()
        assert await asyncio.gather(*waiting) == [False, False]
        # Nor is what was found out remembered.
        assert not await passwords.check("alice", "wonder", {}, HOST)

    run(story)
