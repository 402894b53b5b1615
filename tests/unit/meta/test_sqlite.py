"""The metadata store in a SQLite file."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.meta.local import LocalHome, LocalStore
from ottla.meta.memory import MemoryTable, open_memory
from ottla.meta.sqlite import SqliteTable, open_sqlite
from ottla.meta.store import Change, Check, Conflict, Create, Delete, Entry, Set, StoreError
from tests.unit.meta.contract import Home, StoreContract, caught_up, changed
from tests.unit.meta.local import LocalSessions


class TestSqlite(StoreContract):
    async def open(self, folder: Path) -> Home:
        return LocalSessions(await open_sqlite(str(folder / "meta.sqlite")))


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "meta.sqlite")


def test_entries_and_versions_are_there_when_the_file_is_opened_again(file: str) -> None:
    async def main() -> None:
        home = await open_sqlite(file)
        store = home.connect()
        await store.commit(Create("/a", b"\x00\xff"), Create("/a/b", b"1"))
        await store.commit(Set("/a/b", b"2", 0))
        await home.close()
        home = await open_sqlite(file)
        store = home.connect()
        assert await store.get("/a") == Entry(b"\x00\xff", 0)
        assert await store.entries("/a") == {"b": Entry(b"2", 1)}
        await home.close()

    asyncio.run(main())
    assert os.listdir(os.path.dirname(file)) == ["meta.sqlite"]


def test_a_commit_is_synced_before_it_returns(file: str) -> None:
    table = SqliteTable(file)
    full = 2
    assert table._connection.execute("PRAGMA synchronous").fetchone() == (full,)
    assert table._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    table.close()


COUNTING = """
import asyncio, sys
from ottla.meta.sqlite import open_sqlite
from ottla.meta.store import Create, Set

async def main():
    store = (await open_sqlite(sys.argv[1])).connect()
    await store.commit(Create("/n", b"0"), Create("/alive", b"", ephemeral=True))
    for number in range(1000000):
        await store.commit(Set("/n", b"%d" % (number + 1), number))
        print(number + 1, flush=True)

asyncio.run(main())
"""


def test_what_was_committed_survives_a_kill_and_ephemeral_entries_do_not(file: str) -> None:
    with subprocess.Popen([sys.executable, "-c", COUNTING, file], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(20)]
        process.kill()
        lines += process.stdout.read().splitlines()
    acknowledged = int(lines[-1])

    async def main() -> None:
        home = await open_sqlite(file)
        store = home.connect()
        entry = await store.get("/n")
        assert entry is not None
        assert int(entry.value) == entry.version
        # The last one may have been made and not yet been told of.
        assert entry.version in (acknowledged, acknowledged + 1)
        assert await store.children("/") == ["n"]
        await home.close()

    asyncio.run(main())


def test_the_loop_goes_on_while_the_disk_is_slow(file: str) -> None:
    async def main() -> None:
        home = await open_sqlite(file)
        store = home.connect()
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            commit = asyncio.create_task(store.commit(Create("/a", b"")))
            ticks = 0
            while ticks < 20:
                await asyncio.sleep(0.005)
                ticks += 1
            assert not commit.done()
            other.execute("ROLLBACK")
        await commit
        assert await store.get("/a") == Entry(b"", 0)
        await home.close()

    asyncio.run(main())


class CountingTable(SqliteTable):
    """Counts transactions."""

    transactions = 0

    @contextmanager
    def atomic(self) -> Iterator[None]:
        self.transactions += self._depth == 0
        with super().atomic():
            yield


def test_commits_that_wait_together_become_durable_together_and_fail_alone(file: str) -> None:
    async def main() -> None:
        plain = await open_sqlite(file)
        executor = plain._executor
        table = CountingTable(file)
        home = LocalHome(table, executor)
        store = home.connect()
        before = table.transactions
        attempts = [store.commit(Create(f"/{n // 2}", b"%d" % n)) for n in range(200)]
        outcomes = await asyncio.gather(*attempts, return_exceptions=True)
        assert table.transactions - before < 20
        assert [outcome is None for outcome in outcomes] == [True, False] * 100
        assert all(isinstance(outcome, Conflict) for outcome in outcomes[1::2])
        assert {name: entry.value for name, entry in (await store.entries("/")).items()} == {
            str(n): b"%d" % (2 * n) for n in range(100)
        }
        await home.run(plain._table.close)
        await home.close()

    asyncio.run(main())


def test_a_commit_goes_on_without_whoever_asked_for_it(file: str) -> None:
    async def main() -> None:
        home = await open_sqlite(file)
        store = home.connect()
        watch = await caught_up(store, "/")
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            tasks = [asyncio.create_task(store.commit(Create(path, b""))) for path in ("/a", "/b")]
            await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert all(task.cancelled() for task in tasks)
            other.execute("ROLLBACK")
        await changed(watch, "/a", "/b")
        assert await store.children("/") == ["a", "b"]
        await home.close()

    asyncio.run(main())


def test_a_full_disk_fails_the_commit_and_changes_nothing(file: str) -> None:
    async def main() -> None:
        home = await open_sqlite(file)
        store = home.connect()
        await store.commit(Create("/a", b"small"))
        table = home._table
        assert isinstance(table, SqliteTable)
        table._connection.execute("PRAGMA max_page_count = 20")
        with pytest.raises(StoreError, match=r"meta\.sqlite.*full"):
            await store.commit(Set("/a", b"changed", 0), Create("/b", bytes(500_000)))
        assert await store.entries("/") == {"a": Entry(b"small", 0)}
        table._connection.execute("PRAGMA max_page_count = 10000")
        await store.commit(Create("/b", bytes(500_000)))
        await home.close()

    asyncio.run(main())


def test_a_file_that_is_something_else_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "meta.sqlite"
    file.write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreError, match=r"meta\.sqlite: file is not a database"):
        asyncio.run(open_sqlite(str(file)))
    assert file.read_bytes() == b"not a database" * 1000


def test_a_file_of_a_later_version_is_refused(file: str) -> None:
    SqliteTable(file).close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(StoreError, match="has layout 2, and this version reads 1"):
        asyncio.run(open_sqlite(file))


def test_a_closed_store_takes_no_new_session(file: str) -> None:
    async def main() -> None:
        home = await open_sqlite(file)
        session = home.connect()
        await home.close()
        await home.close()
        assert session.lost.is_set()
        with pytest.raises(StoreError, match="closed"):
            home.connect()

    asyncio.run(main())


paths = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
versions = st.integers(0, 2)
changes = st.one_of(
    st.builds(Create, paths, st.binary(max_size=3), st.booleans()),
    st.builds(Set, paths, st.binary(max_size=3), versions),
    st.builds(Delete, paths, versions),
    st.builds(Check, paths, versions),
)


@given(commits=st.lists(st.lists(changes, min_size=1, max_size=4), max_size=12))
@settings(max_examples=60, deadline=None)
def test_memory_and_sqlite_agree_on_every_commit(commits: list[list[Change]]) -> None:
    async def outcome(store: LocalStore, commit: list[Change]) -> str:
        try:
            await store.commit(*commit)
        except Conflict as conflict:
            return str(conflict)
        return "made"

    async def main(folder: str) -> None:
        homes = [open_memory(), LocalHome(SqliteTable(f"{folder}/metadata.sqlite"))]
        stores = [home.connect() for home in homes]
        for commit in commits:
            one, other = [await outcome(store, commit) for store in stores]
            assert one == other
        for path in ("/", "/a", "/b", "/a/a", "/a/b", "/b/a", "/b/b"):
            assert await stores[0].entries(path) == await stores[1].entries(path)
        for store in stores:
            await store.close()
        leftovers = [await home.connect().children("/") for home in homes]
        assert leftovers[0] == leftovers[1]
        for home in homes:
            await home.close()

    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))


def test_a_copy_taken_at_any_moment_is_whole(file: str, tmp_path: Path) -> None:
    async def main() -> None:
        home = await open_sqlite(file)
        store = home.connect()
        for number in range(30):
            await store.commit(Create(f"/{number}", bytes(1000)), Create(f"/{number}/twin", b""))
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in ("meta.sqlite", "meta.sqlite-wal"):
            shutil.copy(tmp_path / name, copy / name)
        wal = copy / "meta.sqlite-wal"
        wal.write_bytes(wal.read_bytes()[: wal.stat().st_size * 2 // 3])
        await home.close()
        home = await open_sqlite(str(copy / "meta.sqlite"))
        store = home.connect()
        names = await store.children("/")
        assert 0 < len(names) < 30
        for name in names:
            assert await store.children(f"/{name}") == ["twin"]
        await home.close()

    asyncio.run(main())


def test_memory_takes_a_failed_change_back() -> None:
    table = MemoryTable()
    home = LocalHome(table)

    async def main() -> None:
        store = home.connect()
        await store.commit(Create("/a", b""), Create("/a/b", b"old"))
        with pytest.raises(Conflict):
            await store.commit(Delete("/a/b", 0), Delete("/a", 0), Create("/c", b""), Set("/missing", b"", 0))

    asyncio.run(main())
    assert table.names_below("/") == ["a"]
    assert table.names_below("/a") == ["b"]
    assert not table._undo


@pytest.mark.parametrize("is_there", [False, True])
def test_nobody_else_on_the_machine_reads_the_file(tmp_path: Path, is_there: bool) -> None:
    if is_there:
        SqliteTable(str(tmp_path / "meta.sqlite")).close()
        (tmp_path / "meta.sqlite").chmod(0o644)
    before = os.umask(0o022)
    try:
        with closing(SqliteTable(str(tmp_path / "meta.sqlite"))):
            assert {file.name: file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {
                "meta.sqlite": 0,
                "meta.sqlite-shm": 0,
                "meta.sqlite-wal": 0,
            }
    finally:
        os.umask(before)
