"""A store inside this process: sessions over a table, which may be in memory or on the disk."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ottla.meta.store import (
    Change,
    Check,
    Conflict,
    Create,
    Delete,
    Entry,
    SessionLostError,
    StoreError,
    Watch,
    check_changes,
    check_folder,
    check_path,
    split_path,
)

T = TypeVar("T")

PERSISTENT = 0
"""The owner of an entry that belongs to no session."""


@dataclass(frozen=True, slots=True)
class Row:
    """An entry, and the number of the session that it goes with."""

    value: bytes
    version: int
    owner: int = PERSISTENT


class Table(Protocol):
    """Where the entries are. Used by one thread at a time."""

    def find(self, path: str) -> Row | None:
        """An entry."""
        ...

    def below(self, path: str) -> dict[str, Row]:
        """The entries right below a path by name, sorted."""
        ...

    def names_below(self, path: str) -> list[str]:
        """Their names alone."""
        ...

    def owned(self, owner: int) -> list[str]:
        """The paths of a session's ephemeral entries."""
        ...

    def put(self, path: str, row: Row) -> None:
        """Insert or replace an entry."""
        ...

    def remove(self, path: str) -> None:
        """Remove an entry."""
        ...

    def atomic(self) -> AbstractContextManager[None]:
        """All that is done inside, or nothing if an exception leaves it. The outermost end makes it durable."""
        ...

    def close(self) -> None:
        """Let go of the table."""
        ...


@dataclass(slots=True)
class _Commit:
    """Changes that somebody waits for, and how they ended: badly, unless shown otherwise."""

    changes: Sequence[Change]
    owner: int
    error: StoreError | None = field(default_factory=lambda: StoreError("the changes were not carried out"))


class LocalHome:
    """A table and the sessions open on it. With an executor, which must have one thread, nothing blocks the loop."""

    def __init__(self, table: Table, executor: Executor | None = None) -> None:
        self._table = table
        self._executor = executor
        self._queue: deque[_Commit] = deque()
        self._sessions: dict[int, LocalStore] = {}
        self._last_session = PERSISTENT
        self._closed = False

    def connect(self) -> "LocalStore":
        """Begin a session."""
        if self._closed:
            raise StoreError("the metadata store is closed; open it again")
        self._last_session += 1
        session = LocalStore(self, self._table, self._last_session)
        self._sessions[self._last_session] = session
        return session

    async def expire(self, session: "LocalStore") -> None:
        """End a session as if the store had not heard from it for too long."""
        if self._sessions.pop(session.number, None) is None:
            return
        session.end()
        while deletions := await self.run(lambda: self._ephemeral(session.number)):
            # Somebody else may change one of them in between; then look again.
            with suppress(Conflict):
                await self.commit(deletions, session.number)

    def _ephemeral(self, owner: int) -> list[Delete]:
        rows = ((path, self._table.find(path)) for path in self._table.owned(owner))
        return [Delete(path, row.version) for path, row in rows if row is not None]

    async def close(self) -> None:
        """End all sessions and let go of the table."""
        if self._closed:
            return
        self._closed = True
        try:
            for session in list(self._sessions.values()):
                await self.expire(session)
        finally:
            await self.run(self._table.close)
            if self._executor is not None:
                self._executor.shutdown(wait=False)

    async def run(self, job: Callable[[], T]) -> T:
        """Do something with the table where it may block."""
        if self._executor is None:
            return job()
        # Once begun, it goes on without whoever asked for it: what is in the queue must not wait for the next commit.
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._executor, job))

    async def commit(self, changes: Sequence[Change], owner: int) -> None:
        """Make changes on behalf of a session."""
        commit = _Commit(changes, owner)
        self._queue.append(commit)
        loop = asyncio.get_running_loop()
        await self.run(lambda: self._drain(loop))
        if commit.error is not None:
            raise commit.error

    def _drain(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make everything that waits durable at once; whoever comes here next then finds it done."""
        commits = [self._queue.popleft() for _ in range(len(self._queue))]
        if not commits:
            return
        try:
            with self._table.atomic():
                made = [commit for commit in commits if self._attempt(commit)]
        except StoreError as error:
            for commit in commits:
                commit.error = error
            return
        for commit in made:
            commit.error = None
        changed = [change.path for commit in made for change in commit.changes]
        # Handed over here and not by those who wait: they may have been cancelled, and the change was made anyway.
        if self._executor is None:
            self._publish(changed)
        else:
            loop.call_soon_threadsafe(self._publish, changed)

    def _attempt(self, commit: _Commit) -> bool:
        try:
            with self._table.atomic():
                for change in commit.changes:
                    apply(self._table, change, commit.owner)
        except Conflict as conflict:
            commit.error = conflict
            return False
        return True

    def _publish(self, paths: Sequence[str]) -> None:
        for session in self._sessions.values():
            session.publish(paths)


def apply(table: Table, change: Change, owner: int) -> None:
    """Make one change, or raise Conflict."""
    if isinstance(change, Create):
        _create(table, change, owner)
        return
    row = table.find(change.path)
    if row is None:
        raise Conflict(change.path, "is not there")
    if row.version != change.version:
        raise Conflict(change.path, f"has version {row.version}, not {change.version}")
    if isinstance(change, Delete):
        if table.names_below(change.path):
            raise Conflict(change.path, "has entries below it")
        table.remove(change.path)
    elif not isinstance(change, Check):
        table.put(change.path, Row(change.value, row.version + 1, row.owner))


def _create(table: Table, change: Create, owner: int) -> None:
    if table.find(change.path) is not None:
        raise Conflict(change.path, "is there already")
    above, _ = split_path(change.path)
    if above != "/":
        parent = table.find(above)
        if parent is None:
            raise Conflict(change.path, f"cannot be created: {above} is not there")
        if parent.owner != PERSISTENT:
            raise Conflict(change.path, f"cannot be created: {above} is ephemeral")
    table.put(change.path, Row(change.value, 0, owner if change.ephemeral else PERSISTENT))


class LocalStore:
    """A session with a store in this process."""

    def __init__(self, home: LocalHome, table: Table, number: int) -> None:
        self.number = number
        self.lost = asyncio.Event()
        self._home = home
        self._table = table
        self._watches: list[Watch] = []

    def _check_open(self) -> None:
        if self.lost.is_set():
            raise SessionLostError("the session with the metadata store is over; begin a new one")

    async def get(self, path: str) -> Entry | None:
        """An entry, or None."""
        self._check_open()
        check_path(path)
        row = await self._home.run(lambda: self._table.find(path))
        self._check_open()
        return Entry(row.value, row.version) if row is not None else None

    async def children(self, path: str) -> list[str]:
        """The names of the entries right below a path."""
        self._check_open()
        check_folder(path)
        return await self._home.run(lambda: self._table.names_below(path))

    async def entries(self, path: str) -> dict[str, Entry]:
        """The entries right below a path by name."""
        self._check_open()
        check_folder(path)
        rows = await self._home.run(lambda: self._table.below(path))
        return {name: Entry(row.value, row.version) for name, row in rows.items()}

    async def commit(self, *changes: Change) -> None:
        """Make all of these changes or none."""
        self._check_open()
        check_changes(changes)
        await self._home.commit(changes, self.number)

    def watch(self, path: str) -> Watch:
        """Follow changes of a path and all below it."""
        self._check_open()
        check_folder(path)
        watch = Watch(path)
        self._watches.append(watch)
        return watch

    def publish(self, paths: Sequence[str]) -> None:
        """Tell the watches what has changed."""
        self._watches = [watch for watch in self._watches if not watch.closed]
        for watch in self._watches:
            for path in paths:
                watch.notify(path)

    def end(self) -> None:
        """Nothing more comes of this session."""
        self.lost.set()
        for watch in self._watches:
            watch.fail(SessionLostError("the session with the metadata store is over"))

    async def close(self) -> None:
        """End the session."""
        await self._home.expire(self)
