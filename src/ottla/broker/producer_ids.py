"""Ids for producers, taken from the catalog a block at a time."""

import asyncio

from ottla.meta.catalog import Catalog


class ProducerIds:
    """Gives out ids that no producer ever had, and no other broker gives out."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._left: list[int] = []
        self._one_at_a_time = asyncio.Lock()

    async def next(self) -> int:
        """An id of its own for one producer."""
        async with self._one_at_a_time:
            if not self._left:
                block = await self._catalog.allocate_producer_ids()
                self._left = list(reversed(block))
            return self._left.pop()
