"""The metadata store in memory."""

from pathlib import Path

from ottla.meta.memory import open_memory
from tests.unit.meta.contract import Home, StoreContract
from tests.unit.meta.local import LocalSessions


class TestMemory(StoreContract):
    async def open(self, folder: Path) -> Home:
        return LocalSessions(open_memory())
