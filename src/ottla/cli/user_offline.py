"""Users in the data folder of a broker that does not run."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from ottla.broker.server import METADATA_FILE
from ottla.broker.users import Users
from ottla.cli.ending import fail
from ottla.cluster.credential import ScramMechanism
from ottla.meta.catalog import Catalog
from ottla.meta.credentials import UserCredentials
from ottla.meta.sqlite import open_sqlite
from ottla.meta.store import StoreError
from ottla.net.sasl.scram import SALT_BYTES, make_credential
from ottla.ports import SystemChance, SystemDisk

T = TypeVar("T")


def add(folder: Path, name: str, password: str, mechanisms: list[ScramMechanism], iterations: int) -> None:
    """Add a user, or give one another password."""
    chance = SystemChance()
    added = {one: make_credential(one, password, chance.secret(SALT_BYTES), iterations) for one in mechanisms}

    async def work(users: Users) -> None:
        await users.alter(name, lambda before: {**before, **added})

    _with_users(folder, work, make=True)


def described(folder: Path) -> dict[str, dict[ScramMechanism, int]]:
    """All users: how they can log in, and how often their passwords are hashed."""

    async def work(users: Users) -> dict[str, dict[ScramMechanism, int]]:
        return {
            name: {one.mechanism: one.iterations for one in users.credentials(name).values()} for name in users.names
        }

    return _with_users(folder, work)


def delete(folder: Path, name: str, mechanisms: list[ScramMechanism]) -> None:
    """Take a user's password away, for some mechanisms, or with none given for all."""

    async def work(users: Users) -> None:
        found = users.credentials(name)
        missing = ", ".join(one.text for one in mechanisms if one not in found)
        if not found or missing:
            what = f" for {missing}" if found else ""
            fail(f"user {name} has no password{what}; `ottla user list` shows who has")

        def without(before: UserCredentials) -> UserCredentials:
            return {one: kept for one, kept in before.items() if mechanisms and one not in mechanisms}

        await users.alter(name, without)

    _with_users(folder, work)


def _with_users(folder: Path, work: Callable[[Users], Awaitable[T]], *, make: bool = False) -> T:
    """Work on the users in a folder; `make` it where no broker has been yet."""
    if not make and not (folder / METADATA_FILE).exists():
        fail(f"{folder} is no data folder of a broker: there is no {METADATA_FILE} in it; name another with --data")
    try:
        disk = SystemDisk(str(folder))
        disk.lock()
    except BlockingIOError:
        fail(f"a broker runs on {folder}; leave out --data, and name the broker with --bootstrap HOST:PORT")
    except OSError as error:
        fail(f"{folder} cannot be used: {error.strerror}")

    async def run() -> T:
        metadata = await open_sqlite(f"{disk.root}/{METADATA_FILE}")
        try:
            catalog = await Catalog.open(metadata.connect(), SystemChance())
            users = Users(catalog.store, SystemChance())
            await users.load()
            return await work(users)
        finally:
            await metadata.close()

    try:
        return asyncio.run(run())
    except StoreError as error:
        fail(str(error))
    finally:
        disk.unlock()
