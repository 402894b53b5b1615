"""A store of this process as the contract wants it."""

from ottla.meta.local import LocalHome, LocalStore
from ottla.meta.store import MetaStore


class LocalSessions:
    """Sessions over a local home."""

    def __init__(self, home: LocalHome) -> None:
        self._home = home

    async def connect(self) -> MetaStore:
        return self._home.connect()

    async def expire(self, session: MetaStore) -> None:
        assert isinstance(session, LocalStore)
        await self._home.expire(session)

    async def close(self) -> None:
        await self._home.close()
