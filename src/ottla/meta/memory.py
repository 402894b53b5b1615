"""The metadata store in memory: for tests, simulations, and brokers that keep nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.meta.local import LocalHome, Row
from ottla.meta.store import split_path


class MemoryTable:
    """Entries in dictionaries, with what is needed to take back a change that fails halfway."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._names: dict[str, dict[str, None]] = {}
        self._undo: list[tuple[str, Row | None]] = []
        self._depth = 0

    def find(self, path: str) -> Row | None:
        """An entry."""
        return self._rows.get(path)

    def below(self, path: str) -> dict[str, Row]:
        """The entries right below a path."""
        prefix = path if path == "/" else path + "/"
        return {name: self._rows[prefix + name] for name in self.names_below(path)}

    def names_below(self, path: str) -> list[str]:
        """Their names."""
        return sorted(self._names.get(path, ()))

    def owned(self, owner: int) -> list[str]:
        """The paths of a session's entries."""
        return [path for path, row in self._rows.items() if row.owner == owner]

    def put(self, path: str, row: Row) -> None:
        """Insert or replace an entry."""
        self._write(path, row)

    def remove(self, path: str) -> None:
        """Remove an entry."""
        self._write(path, None)

    def _write(self, path: str, row: Row | None) -> None:
        self._undo.append((path, self._rows.get(path)))
        self._place(path, row)

    def _place(self, path: str, row: Row | None) -> None:
        above, name = split_path(path)
        names = self._names.setdefault(above, {})
        if row is not None:
            self._rows[path] = row
            names[name] = None
            return
        self._rows.pop(path, None)
        names.pop(name, None)
        if not names:
            del self._names[above]

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """All or nothing."""
        start = len(self._undo)
        self._depth += 1
        try:
            yield
        except BaseException:
            while len(self._undo) > start:
                self._place(*self._undo.pop())
            raise
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._undo.clear()

    def close(self) -> None:
        """Nothing to let go of."""


def open_memory() -> LocalHome:
    """An empty store that lives as long as the object.

    >>> import asyncio
    >>> from ottla.meta.store import Create
    >>> async def main() -> None:
    ...     store = open_memory().connect()
    ...     await store.commit(Create("/topics", b""), Create("/topics/orders", b"{}"))
    ...     print(await store.children("/topics"), await store.get("/topics/orders"))
    >>> asyncio.run(main())
    ['orders'] Entry(value=b'{}', version=0)
    """
    return LocalHome(MemoryTable())
