"""The contract of a metadata store: small versioned entries in a tree, changed several at a time or not at all.

What an in-memory store, SQLite and ZooKeeper can all do, and no more:

- An entry has a path such as `/topics/orders`, a value of less than 1 MB and a version. It needs the entry above it
  to be there; the root always is. It is created with version 0, and each change of the value adds one. An entry that
  was deleted and made again starts at 0 again, so what must not be taken for its predecessor bears an id of its own.
- `commit` makes all of its changes or none. Every change but a creation names the version that it expects; if that is
  not the one, Conflict names the path. When `commit` returns, its changes survive a crash and a power cut, as far as
  the home keeps anything at all.
- A store object is a session. Ephemeral entries go when the session that made them ends. A session can be lost at
  any time: then `lost` is set, every call raises SessionLostError, and whoever goes on does so with a new session.
- A watch tells which paths below a path have changed, not how: the reader reads again. It begins by asking for all to
  be read, and may ask for that again when it cannot tell what has changed, so both take the same code.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

LARGEST_COMMIT = 1_000_000
"""Bytes of the values of one commit, and thereby of one value; what ZooKeeper takes as one request, less some room."""

LONGEST_BACKLOG = 1000
"""Changed paths that a watch remembers for a slow reader before it asks for all to be read instead."""


class StoreError(Exception):
    """The store cannot do what was asked."""


class Conflict(StoreError):  # noqa: N818 - the everyday outcome of a race, which callers handle
    """An entry is not as a change expected it to be."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path = path


class SessionLostError(StoreError):
    """The session is over; its ephemeral entries are gone or will be."""


class TooLargeError(StoreError):
    """The values are more than the store takes at a time."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry's value, and the version to name when changing it."""

    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Create:
    """Make an entry, which must not be there. An ephemeral one goes with its session and has none below it."""

    path: str
    value: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Change an entry that has this version."""

    path: str
    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an entry that has this version and none below it."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing, but insist that an entry has this version."""

    path: str
    version: int


Change = Create | Set | Delete | Check


class MetaStore(Protocol):
    """A session with a metadata store."""

    lost: asyncio.Event
    """Set once the session is over, for whatever reason."""

    async def get(self, path: str) -> Entry | None:
        """An entry, or None."""
        ...

    async def children(self, path: str) -> list[str]:
        """The names of the entries right below a path, sorted; none if the path itself is not there."""
        ...

    async def entries(self, path: str) -> dict[str, Entry]:
        """The same with the entries themselves. A home may read them one by one, so each is as it was at some time."""
        ...

    async def commit(self, *changes: Change) -> None:
        """Make all of these changes or, with Conflict, none."""
        ...

    def watch(self, path: str) -> "Watch":
        """Follow changes of a path and all below it, from now on."""
        ...

    async def close(self) -> None:
        """End the session."""
        ...


@dataclass(frozen=True, slots=True)
class Changes:
    """What a watch has to tell: which paths have changed, or that everything must be read again."""

    paths: frozenset[str]
    everything: bool


class Watch:
    """An endless iteration over changes; `close` ends it. The home calls the other methods, in the event loop.

    >>> async def main() -> None:
    ...     watch = Watch("/topics")
    ...     print(await anext(watch))
    ...     watch.notify("/topics/a")
    ...     watch.notify("/brokers/1")
    ...     print(await anext(watch))
    >>> asyncio.run(main())
    Changes(paths=frozenset(), everything=True)
    Changes(paths=frozenset({'/topics/a'}), everything=False)
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._prefix = path if path == "/" else path + "/"
        self._changed: set[str] = set()
        self._everything = True
        self._error: StoreError | None = None
        self._closed = False
        self._ready = asyncio.Event()
        self._ready.set()

    @property
    def closed(self) -> bool:
        """Whether nobody listens any more."""
        return self._closed

    def notify(self, path: str) -> None:
        """A path has changed; fine if it lies elsewhere."""
        if self._everything or not (path == self.path or path.startswith(self._prefix)):
            return
        self._changed.add(path)
        if len(self._changed) > LONGEST_BACKLOG:
            self.resynchronise()
        self._ready.set()

    def resynchronise(self) -> None:
        """Nobody knows what has changed."""
        self._everything = True
        self._changed.clear()
        self._ready.set()

    def fail(self, error: StoreError) -> None:
        """Nothing more will come, for this reason."""
        self._error = error
        self._ready.set()

    def close(self) -> None:
        """End the iteration."""
        self._closed = True
        self._ready.set()

    def __aiter__(self) -> "Watch":
        return self

    async def __anext__(self) -> Changes:
        await self._ready.wait()
        if self._closed:
            raise StopAsyncIteration
        if self._error is not None:
            raise self._error
        changes = Changes(frozenset(self._changed), self._everything)
        self._changed.clear()
        self._everything = False
        self._ready.clear()
        return changes


def check_path(path: str) -> None:
    """ValueError if this is no path of an entry.

    >>> check_path("/topics/orders")
    >>> check_path("topics/")
    Traceback (most recent call last):
        ...
    ValueError: 'topics/' is no path of an entry; write one such as /topics/orders
    """
    if path[:1] != "/" or not all(part not in ("", ".", "..") for part in path[1:].split("/")):
        raise ValueError(f"{path!r} is no path of an entry; write one such as /topics/orders")


def check_folder(path: str) -> None:
    """ValueError if this is neither a path of an entry nor the root."""
    if path != "/":
        check_path(path)


def split_path(path: str) -> tuple[str, str]:
    """The path above, and the name.

    >>> split_path("/topics/orders"), split_path("/topics")
    (('/topics', 'orders'), ('/', 'topics'))
    """
    above, _, name = path.rpartition("/")
    return above or "/", name


def check_changes(changes: Iterable[Change]) -> None:
    """ValueError for a malformed path, TooLargeError for values that no home takes."""
    size = 0
    for change in changes:
        check_path(change.path)
        if isinstance(change, Create | Set):
            size += len(change.value)
    if size > LARGEST_COMMIT:
        raise TooLargeError(f"{size} bytes in one commit; at most {LARGEST_COMMIT} are possible")
