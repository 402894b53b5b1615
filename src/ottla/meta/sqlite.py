"""The metadata store of a single node: one SQLite file, used by one process at a time."""

import asyncio
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from ottla.meta.local import PERSISTENT, LocalHome, Row
from ottla.meta.store import StoreError, split_path
from ottla.ports.files import make_private

_LAYOUT = 1
_CREATE = """
CREATE TABLE IF NOT EXISTS entry (
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    version INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    PRIMARY KEY (parent, name)
)
"""


class SqliteTable:
    """Entries in a table. A commit is on the disk when it returns: the write-ahead log is synced each time."""

    def __init__(self, file_name: str) -> None:
        self._file_name = file_name
        self._depth = 0
        # It holds what is kept of passwords, and secret settings. The files beside it get the same permissions.
        make_private(file_name)
        with self._explained():
            # One thread at a time uses it, but not always the same one.
            self._connection = sqlite3.connect(file_name, isolation_level=None, check_same_thread=False)
        try:
            with self._explained():
                self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        (layout,) = run("PRAGMA user_version").fetchone()
        if layout not in (0, _LAYOUT):
            raise StoreError(
                f"{self._file_name} has layout {layout}, and this version reads {_LAYOUT}; use a newer one"
            )
        if layout == 0:
            with self.atomic():
                run(_CREATE)
                run(f"PRAGMA user_version = {_LAYOUT}")
        # Left by a process that was killed: their sessions ended with it.
        run("DELETE FROM entry WHERE owner != ?", (PERSISTENT,))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"metadata file {self._file_name}: {error}") from error

    def find(self, path: str) -> Row | None:
        """An entry."""
        query = "SELECT value, version, owner FROM entry WHERE parent = ? AND name = ?"
        with self._explained():
            found = self._connection.execute(query, split_path(path)).fetchone()
        return Row(*found) if found is not None else None

    def below(self, path: str) -> dict[str, Row]:
        """The entries right below a path."""
        query = "SELECT name, value, version, owner FROM entry WHERE parent = ? ORDER BY name"
        with self._explained():
            return {name: Row(*rest) for name, *rest in self._connection.execute(query, (path,))}

    def names_below(self, path: str) -> list[str]:
        """Their names."""
        query = "SELECT name FROM entry WHERE parent = ? ORDER BY name"
        with self._explained():
            return [name for (name,) in self._connection.execute(query, (path,))]

    def owned(self, owner: int) -> list[str]:
        """The paths of a session's entries."""
        query = "SELECT rtrim(parent, '/') || '/' || name FROM entry WHERE owner = ?"
        with self._explained():
            return [path for (path,) in self._connection.execute(query, (owner,))]

    def put(self, path: str, row: Row) -> None:
        """Insert or replace an entry."""
        query = "INSERT OR REPLACE INTO entry (parent, name, value, version, owner) VALUES (?, ?, ?, ?, ?)"
        with self._explained():
            self._connection.execute(query, (*split_path(path), row.value, row.version, row.owner))

    def remove(self, path: str) -> None:
        """Remove an entry."""
        with self._explained():
            self._connection.execute("DELETE FROM entry WHERE parent = ? AND name = ?", split_path(path))

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """All or nothing; the outermost is a transaction, those inside it are savepoints."""
        begin, commit, rollback = _TRANSACTION if self._depth == 0 else _SAVEPOINT
        with self._explained():
            self._connection.execute(begin)
            self._depth += 1
            try:
                yield
                self._connection.execute(commit)
            except BaseException:
                # A full disk makes SQLite roll back by itself; asking again would hide why.
                if self._connection.in_transaction:
                    for statement in rollback:
                        self._connection.execute(statement)
                raise
            finally:
                self._depth -= 1

    def close(self) -> None:
        """Close the file; its write-ahead log is merged into it."""
        with self._explained():
            self._connection.close()


_TRANSACTION = ("BEGIN IMMEDIATE", "COMMIT", ("ROLLBACK",))
_SAVEPOINT = ("SAVEPOINT one", "RELEASE one", ("ROLLBACK TO one", "RELEASE one"))


async def open_sqlite(file_name: str) -> LocalHome:
    """Open a store, creating the file if need be. It works in a thread of its own.

    >>> import tempfile
    >>> from ottla.meta.store import Create
    >>> async def main(folder: str) -> None:
    ...     home = await open_sqlite(f"{folder}/meta.sqlite")
    ...     await home.connect().commit(Create("/cluster", b"1"))
    ...     await home.close()
    ...     home = await open_sqlite(f"{folder}/meta.sqlite")
    ...     print(await home.connect().get("/cluster"))
    ...     await home.close()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(main(folder))
    Entry(value=b'1', version=0)
    """
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ottla-meta")
    try:
        table = await asyncio.get_running_loop().run_in_executor(executor, SqliteTable, file_name)
    except BaseException:
        executor.shutdown(wait=False)
        raise
    return LocalHome(table, executor)
